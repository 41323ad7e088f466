"""Nearest vectors by FAISS: exact inner product."""

import threading

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors
from semcache.stores.vectors.matrix import TIE, VectorMatrix
from semcache.stores.vectors.search_bounds import LEAST, SearchBounds, alone, products

MANY = 5_000
"""Rows from which on bounds are worth their room: fewer are compared as quickly without."""
_SEEDS = 2
"""Times as many rows as asked for are compared first, to know what the others must reach."""
_SLACK = 4
"""A search asks for as many rows as those before needed, and for one more of so many."""
_FEW = 8
"""Bounds help if less than one row in so many is left to compare: those stand apart in memory."""


class FaissIndex(VectorMatrix):
    """Exact search by FAISS's brute-force kernel, as `ports.VectorIndex` promises.

    The kernel runs over rows that we own instead of in a `faiss.IndexFlatIP`: the same search at
    the same speed, but removing is cheap, and a snapshot that was damaged is found out. Where rows
    are many, only those are compared whose bound says that they may be near; see `search_bounds`.
    """

    def __init__(self, dimension: int | None = None, *, many: int = MANY) -> None:
        """`many`: rows from which on bounds are kept."""
        super().__init__(dimension)
        self.many = many
        self._leading: SearchBounds | None = None
        self._choosing = threading.Lock()

    def bound(self, leading: SearchBounds | None) -> None:
        """Go on with the bounds of a snapshot; without them the first search works them out."""
        self._leading = leading

    def wrote(self, place: int, row: Vector) -> None:
        """Keep the bounds in step."""
        if self._leading is not None and not self._leading.write(place, row):
            self._leading = None  # a row longer than all before: the next search begins anew

    def near(self, rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
        """Return the places of the best rows; see `VectorMatrix`."""
        leading = self.bounding(rows)
        places = None if leading is None else _among(leading, rows, query, count)
        return _of_all(rows, query, count) if places is None else places

    def bounding(self, rows: Vectors) -> SearchBounds | None:
        """Return what bounds the rows; None if they are few, or another thread works it out."""
        if len(rows) < self.many or rows.shape[1] < LEAST:
            return None
        # What was chosen for fewer rows bounds the others too, but maybe not well.
        found = self._leading
        if found is not None and len(rows) < 2 * found.choice.rows:
            return found
        if not self._choosing.acquire(blocking=False):
            return found
        try:
            self._leading = SearchBounds.of(rows)
        finally:
            self._choosing.release()
        return self._leading


def _among(
    leading: SearchBounds, rows: Vectors, query: Vector, count: int
) -> NDArray[np.int64] | None:
    """Compare only rows that may be among the best; None if those are too many."""
    seeds, most = _SEEDS * count, len(rows) // _FEW
    wanted = max(seeds, min(leading.needed + leading.needed // _SLACK, most))
    while wanted <= most:
        bounds, places = leading.nearest(query, wanted, len(rows))
        scores = products(rows[places[:seeds]], query)
        # Of the rows compared so far `count` reach this, so the last of the best does.
        least = np.partition(scores, seeds - count)[seeds - count]
        needed = int(np.count_nonzero(bounds >= least - TIE))
        if needed < wanted:  # else there may be more of them
            leading.needed = max(needed, leading.needed - leading.needed // _SLACK)
            places = places[:needed]
            scores = products(rows[places], query)
            last = np.partition(scores, needed - count)[needed - count]
            found: NDArray[np.int64] = places[scores >= last - TIE]
            return found
        wanted *= 4
    return None


def _of_all(rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    with alone():
        # FAISS breaks ties as it likes, so ask on until the last one found is clearly behind.
        wanted = min(count + 8, len(rows))
        while True:
            scores, places = faiss.knn(query[None], rows, wanted, metric=faiss.METRIC_INNER_PRODUCT)
            if wanted == len(rows) or scores[0, -1] < scores[0, count - 1] - TIE:
                found: NDArray[np.int64] = places[0]
                return found
            wanted = min(4 * wanted, len(rows))
