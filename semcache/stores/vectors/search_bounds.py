"""What bounds the likeness of each row from above, at a twentieth of the memory of the rows.

For any orthonormal directions, a vector is its part along them, `a`, and what is left of it, `r`;
and `a` is the mean, `m`, a row of whole numbers, each times the step of its direction, `c`, and an
error, `e`:

    q·x  =  qa·xa + qr·xr  =  qa·m + qa·c + qa·e + qr·xr  <=  qa·m + qa·c + |qa| |e| + |qr| |xr|

by Cauchy and Schwarz. The right side is an inner product too, of short rows of whole numbers that
take a byte each, the two lengths rounded up. The weights of the query become whole numbers as well,
and what that takes from them is bounded once for all rows. So one pass over bytes, which processors
do by the dozen, says which rows can be among the nearest, and only those are compared. Prompts of
one tenant are alike: their vectors lie close to few directions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors

T = TypeVar("T", np.float32, np.uint8)
Codes: TypeAlias = NDArray[np.uint8]
Parts: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Two arrays with the same rows."""

SHARE = 6
"""Dimensions a byte of a short row."""
_WIDTH = 16
"""Short rows have a multiple of so many bytes: FAISS takes them by so many at once."""
LEAST = _WIDTH * SHARE
"""Dimensions from which on rows have bounds."""
ROUNDED = 1e-4
"""Share of its squared length that is added to what is left of a vector. It makes the bound of two
vectors larger by at least that share of the product of their lengths, which is ten times what
float32 loses in sums of some hundred products."""
_MOST = 127
"""The largest whole number of a byte with a sign."""
_SPARE = 1.05, 2.0
"""Times the longest of what is left of a row, and of its error, that a byte can say."""
_SAMPLE = 10_000
"""Rows that directions are chosen from."""
_BLOCK = 16_384
"""Rows that are shortened at once."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How rows are shortened."""

    directions: NDArray[np.float32]
    """Orthonormal columns, of the dimension of the rows."""
    mean: NDArray[np.float32]
    """Mean of the rows along each direction."""
    steps: NDArray[np.float32]
    """What one more in each byte of a short row stands for: for each direction, then for what is
    left of the row, and for the error of its whole numbers."""
    rows: int
    """How many rows there were when this was chosen."""

    def parts(self, rows: Vectors) -> Parts:
        """Return `rows` along the directions, less their mean, and the lengths of what is left."""
        along = rows @ self.directions
        squares = _squares(rows)
        left = np.maximum(squares - _squares(along), 0) + ROUNDED * squares
        return along - self.mean, np.sqrt(left)

    def whole(self, along: NDArray[np.float32]) -> Parts:
        """Return the whole numbers of what rows are along the directions, and their errors."""
        steps = self.steps[:-2]
        whole = np.clip(np.rint(along / steps), -_MOST, _MOST)
        return whole, np.sqrt(_squares(along - whole * steps))

    def shortened(self, parts: Parts) -> tuple[Codes, bool]:
        """Return short rows, and whether all of them bound what they stand for."""
        (along, left), most = parts, np.float32(_MOST)
        whole, error = self.whole(along)
        lengths = np.ceil(np.stack([left, error], axis=1) / self.steps[-2:])
        codes = np.concatenate([whole, np.minimum(lengths, most)], axis=1) + 128
        return codes.astype(np.uint8), bool((lengths <= most).all())

    def weights(self, query: Vector) -> tuple[NDArray[np.float32], float]:
        """Return what each byte of a short row counts for, and what is added for every row."""
        along = query @ self.directions
        squares, kept = float(query @ query), float(along @ along)
        left = np.sqrt(max(squares - kept, 0.0) + ROUNDED * squares)
        return np.append(along, (left, np.sqrt(kept))) * self.steps, float(along @ self.mean)


class SearchBounds:
    """The short rows of a growing matrix. Not safe from several threads while one changes it."""

    def __init__(self, choice: Choice, codes: Codes) -> None:
        """Begin with the short rows `codes`. See `of` for those of a matrix."""
        self.choice = choice
        self.needed = 0
        """How many rows the last searches had to compare, so that the next one asks for as many."""
        self._index = _index(len(choice.steps))
        self._furthest = 0.0
        self._add(codes)

    @classmethod
    def of(cls, rows: Vectors) -> Self:
        """Return `rows`, shortened along the directions in which they extend most."""
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        _, found = np.linalg.eigh((sample.T @ sample).astype(np.float64))
        width = rows.shape[1] // LEAST * _WIDTH
        directions = np.ascontiguousarray(found[:, 2 - width :], np.float32)
        steps = np.zeros(width, np.float32)
        choice = Choice(directions, (sample @ directions).mean(axis=0), steps, len(rows))
        parts = [choice.parts(block) for block in _blocks(rows)]
        least = (
            1e-6 * float(np.sqrt(_squares(sample).max())) or 1.0
        )  # zeros alone: any step will do
        furthest = np.max([np.abs(along).max(axis=0) for along, _ in parts], axis=0)
        steps[:-2] = np.maximum(furthest / _MOST, least)
        errors = max(float(choice.whole(along)[1].max()) for along, _ in parts)
        longest = np.array([max(float(left.max()) for _, left in parts), errors])
        steps[-2:] = np.maximum(longest * _SPARE / _MOST, least)
        leading = cls(choice, np.zeros((0, width), np.uint8))
        for part in parts:
            leading._add(choice.shortened(part)[0])
        return leading

    def codes(self, count: int) -> Codes:
        """Return the first `count` short rows, a byte each number, 128 being nought."""
        return self._codes()[:count]

    def write(self, place: int, row: Vector) -> bool:
        """Take in that `row` is at `place` now, which is at most one behind the last.

        Return False, and bound nothing any more, if lengths of `row` are more than a byte can say.
        """
        codes, fits = self.choice.shortened(self.choice.parts(row[None]))
        if place < self._index.ntotal:
            self._codes()[place] = codes[0]
            self._reach(codes)
        else:
            self._add(codes)
        return fits

    def nearest(
        self, query: Vector, count: int, among: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the largest `count` bounds of products with `query`, falling, and their places.

        Of the first `among` rows, which are `count` or more: those behind them are gone.
        """
        self._index.ntotal = min(self._index.ntotal, among)
        weights, bound = self.choice.weights(query)
        # A hair more than the largest weight needs, which is rounded up and must not be 128.
        step = 1.000001 * float(np.abs(weights).max()) / _MOST or 1.0
        whole = np.rint(weights / step)
        whole[-2:] = np.ceil(weights[-2:] / step)
        bound += self._furthest * float(np.linalg.norm(weights[:-2] - whole[:-2] * step))
        with alone():
            found, places = self._index.search(whole[None], count)
        return found[0] * np.float64(step) + bound, places[0]

    def _codes(self) -> Codes:
        """Return all short rows; what is written there is written to the index."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        rows, width = self._index.ntotal, len(self.choice.steps)
        if not rows:
            return np.zeros((0, width), np.uint8)
        codes: Codes = faiss.rev_swig_ptr(self._index.codes.data(), rows * width)
        return codes.reshape(rows, width)

    def _add(self, codes: Codes) -> None:
        self._index.add_sa_codes(np.ascontiguousarray(codes))
        self._reach(codes)

    def _reach(self, codes: Codes) -> None:
        """Remember how long the whole numbers of a row are at most."""
        for block in _blocks(codes):
            whole = block[:, :-2].astype(np.float32) - 128
            self._furthest = max(self._furthest, float(np.sqrt(_squares(whole).max())))


def _index(width: int) -> Any:  # noqa: ANN401 - FAISS publishes no types of its indexes
    """Return an index of bytes, each of which stands for itself less 128.

    Where processors take many at once it reads the query as bytes too, so that a query must be of
    whole numbers; products are exact then, whatever the processor.
    """
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
    index: Any = faiss.IndexScalarQuantizer(width, kind, faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    return index


def _blocks(rows: NDArray[T]) -> Iterator[NDArray[T]]:
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


def _squares(rows: Vectors) -> NDArray[np.float32]:
    squares: NDArray[np.float32] = np.einsum("ij,ij->i", rows, rows)
    return squares


@contextmanager
def alone() -> Iterator[None]:
    """Let FAISS use no other thread than this one.

    One query gains nothing from more, and where cores are busy it waits for them: 13 to 40 ms
    instead of 5 ms at 100,000 rows on 2 cores. The number is this thread's, so it is put back.
    """
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


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
