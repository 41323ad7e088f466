"""Codes: rows at 4 bits a number, by which FAISS finds which of many are worth comparing.

Each number of a row is the nearest of 16 levels, which are learned for its place from some of the
rows. A search looks through the codes of all rows, 20 times as fast as through the rows themselves,
since tables of the levels stay in the registers of the processor (André, Kermarrec, Le Scouarnec,
"Quicker ADC", TPAMI 2021); the best of them are then compared exactly.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors

LEVELS = 16
_WIDER = 4
"""Times as many candidates by their codes as are asked for. All of the 64 nearest are among 192 for
16,000 texts of twelve streams, and among 256 for 100,000 made prompts that share their words."""
_LEAST = 256
"""Candidates at least."""
_SAMPLE = 1024
"""Rows that levels are learned from: with 256 or 2,048 as many of the nearest are found."""
_ROUNDS = 5
"""Rounds of k-means."""
_BLOCK = 32
"""Rows whose codes FAISS keeps together."""
BLOCK = 4096
"""Rows that are encoded at once."""


def sample_of(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of the rows at `places` levels are learned from."""
    return places[:: max(1, len(places) // _SAMPLE)]


def candidates(count: int) -> int:
    """Return how many rows are compared for the nearest `count`."""
    return max(_LEAST, _WIDER * count)


class SavedCodes(NamedTuple):
    """Codes as a file has them."""

    levels: Vectors
    """Of shape `(dimension, LEVELS)`."""
    rows: int
    """How many rows there were when the levels were learned."""
    packed: NDArray[np.uint8]
    """The codes as FAISS packs them, of `packed_size` bytes."""


def packed_size(rows: int, dimension: int) -> int:
    """Return the bytes that the codes of so many rows take."""
    return -(-rows // _BLOCK) * _BLOCK * -(-dimension // 2)


class RowCodes:
    """Codes of rows, by their places. Not safe from several threads while one changes it."""

    def __init__(self, levels: Vectors, rows: int) -> None:
        """Begin with no codes; `rows`: how many rows the levels were learned for."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        self.rows = rows
        self._index = _coded(len(levels))
        faiss.copy_array_to_vector(levels.ravel(), self._index.pq.centroids)
        self._index.is_trained = True

    @classmethod
    def learned(cls, sample: Vectors, rows: int) -> Self:
        """Return codes for `rows` rows, with levels learned from `sample`: `LEVELS` at least."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        index = _coded(sample.shape[1])
        index.pq.cp.niter = _ROUNDS
        index.pq.cp.min_points_per_centroid = 1  # it would warn of fewer than 39
        with alone():
            index.train(np.ascontiguousarray(sample))
        return cls(faiss.vector_to_array(index.pq.centroids).reshape(-1, LEVELS), rows)

    @classmethod
    def restored(cls, saved: SavedCodes, count: int) -> Self:
        """Return the codes of `count` rows that `saved` returned."""
        codes = cls(saved.levels, saved.rows)
        codes._take(saved.packed, count)
        return codes

    def _take(self, packed: NDArray[np.uint8], count: int) -> None:
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        faiss.copy_array_to_AlignedTable(packed, self._index.codes)
        self._index.ntotal, self._index.ntotal2 = count, -(-count // _BLOCK) * _BLOCK

    def fit(self, rows: Vectors) -> bool:
        """Return whether a sample of `rows` has these codes: another FAISS may pack them anew."""
        for place in range(0, len(rows), len(rows) // _BLOCK + 1):
            code = self._index.pq.compute_codes(rows[place : place + 1])
            its = self._index.pq.decode(code)[0]
            if not np.array_equal(self._index.reconstruct(place), its):
                return False
        return True

    def saved(self) -> SavedCodes:
        """Return what a file keeps."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        levels = faiss.vector_to_array(self._index.pq.centroids).reshape(-1, LEVELS)
        packed = faiss.AlignedTable_to_array(self._index.codes)
        size = packed_size(len(self), len(levels))  # FAISS may have made room for more
        return SavedCodes(levels, self.rows, packed[:size].copy())

    def __len__(self) -> int:
        """Return how many places have codes."""
        return int(self._index.ntotal)

    def add(self, rows: Vectors) -> None:
        """Encode `rows`, which stand at the next places."""
        with alone():
            self._index.add(np.ascontiguousarray(rows))

    def remove(self, gone: NDArray[np.uint8], left: Vectors) -> None:
        """Forget the places that have a bit in `gone`; the others move up and have rows `left`."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        selector: Any = faiss.IDSelectorBitmap  # its stubs know the C++ arguments
        self._index.remove_ids(selector(gone))
        # A block that is not full keeps codes of the removed, and FAISS mixes in what is added.
        full = len(left) // _BLOCK * _BLOCK
        self._take(self.saved().packed[: packed_size(full, left.shape[1])], full)
        self.add(left[full:])

    def near(self, query: Vector, count: int, live: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return places of rows that may be the nearest `count`, in any order.

        `live`: a bit for each place, whether it counts.
        """
        enough = wanted = candidates(count)
        while True:
            with alone():
                places = self._index.search(query[None], min(wanted, len(self)))[1][0]
            places = places[places >= 0]
            found: NDArray[np.int64] = places[(live[places >> 3] >> (places & 7) & 1) > 0]
            if len(found) >= enough or wanted >= len(self):
                return found
            wanted *= 2


def _coded(dimension: int) -> Any:  # noqa: ANN401 - a package without types
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    return faiss.IndexPQFastScan(dimension, dimension, 4, faiss.METRIC_INNER_PRODUCT)


def blocks(rows: int, first: int = 0) -> Iterator[slice]:
    """Yield the places from `first` to `rows`, some at a time."""
    for start in range(first, rows, BLOCK):
        yield slice(start, min(start + BLOCK, rows))


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
