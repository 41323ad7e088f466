"""What bounds the likeness of each row from above, at a sixth of what comparing with it costs.

For any orthonormal directions, a vector is its part along them, `a`, and what is left of it, `r`:

    q·x  =  qa·xa + qr·xr  <=  qa·xa + |qr| |xr|                   (Cauchy and Schwarz)

The right side is an inner product too, of `(qa, |qr|)` and `(xa, |xr|)`, which are short where the
directions are few. So one pass over short rows says which rows can be among the nearest, and only
those are compared. Prompts of one tenant are alike: their vectors lie close to few directions.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors

SHARE = 6
"""Dimensions a direction: a short row takes a sixth of the room of its row."""
ROUNDED = 1e-4
"""Share of its squared length that is added to what is left of a vector. It makes the bound of two
vectors larger by at least that share of the product of their lengths, which is a hundred times what
float32 loses in sums of some hundred products."""
_SAMPLE = 10_000
"""Rows that directions are chosen from."""
_BLOCK = 16_384
"""Rows that are shortened at once."""


class Leading:
    """The short rows of a growing matrix. Not safe from several threads while one changes it."""

    def __init__(self, directions: NDArray[np.float32], short: Vectors, chosen: int) -> None:
        """Go on with what another one had."""
        self.directions = directions
        """Orthonormal columns, of the dimension of the rows."""
        self.chosen = chosen
        """How many rows there were when the directions were chosen."""
        self._short = short

    @classmethod
    def of(cls, rows: Vectors) -> Self:
        """Return `rows`, shortened along the directions in which they extend most."""
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        _, directions = np.linalg.eigh((sample.T @ sample).astype(np.float64))
        count = max(1, rows.shape[1] // SHARE)
        short = np.empty((len(rows), count + 1), np.float32)
        leading = cls(np.ascontiguousarray(directions[:, -count:], np.float32), short, len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            short[block] = leading._shortened(rows[block])
        return leading

    def short(self, count: int) -> Vectors:
        """Return the first `count` short rows, one number longer than there are directions."""
        return self._short[:count]

    def write(self, place: int, row: Vector) -> None:
        """Take in that `row` is at `place` now, which is at most one behind the last."""
        if place >= len(self._short):
            grown = np.empty((place + place // 4 + 1, self._short.shape[1]), np.float32)
            grown[:place] = self._short
            self._short = grown
        elif not self._short.flags.writeable:  # the bytes of a snapshot
            self._short = self._short.copy()
        self._short[place] = self._shortened(row[None])[0]

    def bounds(self, query: Vector, count: int) -> NDArray[np.float32]:
        """Return for each of the first `count` rows what its product with `query` is at most."""
        return products(self._short[:count], self._shortened(query[None])[0])

    def _shortened(self, rows: Vectors) -> Vectors:
        short = np.empty((len(rows), self.directions.shape[1] + 1), np.float32)
        along = np.matmul(rows, self.directions, out=short[:, :-1])
        squares = np.einsum("ij,ij->i", rows, rows)
        left = np.maximum(squares - np.einsum("ij,ij->i", along, along), 0)
        short[:, -1] = np.sqrt(left + ROUNDED * squares)
        return short


def products(rows: Vectors, query: Vector) -> NDArray[np.float32]:
    """Return the inner product of each row with `query`.

    By FAISS, since numpy's would use all processors for one query, and wait for busy ones.
    """
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    found = np.empty(len(rows), np.float32)
    faiss.fvec_inner_products_ny(  # type: ignore[attr-defined] # its stubs know classes only
        faiss.swig_ptr(found), faiss.swig_ptr(query), faiss.swig_ptr(rows), rows.shape[1], len(rows)
    )
    return found
