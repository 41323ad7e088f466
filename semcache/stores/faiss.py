"""Nearest vectors by FAISS: exact inner product."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Neighbor, Vector, Vectors
from semcache.stores.rows import TIE, Rows


class FaissIndex:
    """Exact search by FAISS's brute-force kernel, as `ports.VectorIndex` promises.

    The kernel runs over rows that we own instead of in a `faiss.IndexFlatIP`: the same search at
    the same speed, but removing is cheap, and a snapshot that was damaged is found out.
    """

    def __init__(self, dimension: int | None = None) -> None:
        self._rows = Rows(dimension)

    @classmethod
    def load(cls, path: str) -> "tuple[FaissIndex, int]":
        """Return the index saved at `path`, and the number of the last change that it holds.

        Raises:
            IndexCorrupt: missing, cut short, changed by as much as one bit, or of another format.
        """
        index = cls()
        index._rows, change = Rows.load(path)
        return index, change

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there; the first one sets the dimension.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        self._rows.add(id, vector)

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""
        return self._rows.remove(id)

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        return self._rows.search(vector, count, _near)

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return len(self._rows)

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `change` is kept with it.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        self._rows.save(path, change=change)


def _near(rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    # One query gains nothing from more threads, and where cores are busy it waits for them: 13 to
    # 40 ms instead of 5 ms at 100,000 rows on 2 cores. The number is this thread's, so put it back.
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        # FAISS breaks ties as it likes, so ask on until the last one found is clearly behind.
        wanted = min(count + 8, len(rows))
        while True:
            scores, places = faiss.knn(query[None], rows, wanted, metric=faiss.METRIC_INNER_PRODUCT)
            if wanted == len(rows) or scores[0, -1] < scores[0, count - 1] - TIE:
                found: NDArray[np.int64] = places[0]
                return found
            wanted = min(4 * wanted, len(rows))
    finally:
        faiss.omp_set_num_threads(threads)
