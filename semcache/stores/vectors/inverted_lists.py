"""Inverted lists: which rows of many are worth comparing, by FAISS.

Rows are parted by the nearest of some hundred centers, and a search looks through the rows of the
centers nearest to it, in 4 bits a number; the best of them are then compared exactly. How many
centers must be looked at is measured on the rows themselves: so many that of the nearest rows of
some of them a share of `RECALL` stands in the lists that are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors

NEAREST = 64
"""Neighbors of a search up to which `RECALL` is measured: a lookup asks for as many."""
RECALL = 0.9995
"""Share of the `NEAREST` rows that must be in the lists that a search reads. A little more than
the .999 that is wanted, since prompts to come are less like the rows than these are."""
_WIDER = 4
"""Times as many candidates by 4 bits as are asked for; see `benchmarks/indexes.py`."""
_LISTS = 4.0
"""Lists for each square root of the rows; half as many are searched in 1.5 times the time."""
_MOST = 1024
"""Lists at most: to part a million rows by so many takes 10 s, and by more takes longer."""
_POINTS = 16
"""Rows for each list that its center is learned from."""
_ROUNDS = 5
"""Rounds of k-means."""
_ASKED = 256
"""Rows that stand for prompts while `probes` is measured."""
BLOCK = 16_384
"""Rows that are parted at once."""


def sample_of(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of the rows at `places` centers are learned from."""
    points = _POINTS * _count(len(places))
    return places[:: max(1, len(places) // points)]


def _count(rows: int) -> int:
    return max(1, min(rows, int(_LISTS * rows**0.5), _MOST))


@dataclass(frozen=True, slots=True)
class Centers:
    """How rows are parted, as it is saved."""

    centers: Vectors
    """Of shape `(lists, dimension)`."""
    probes: int
    """Lists that a search reads."""
    rows: int
    """How many rows there were when this was learned."""


class InvertedLists:
    """Rows, by their places in the index. Not safe from several threads while one changes it."""

    def __init__(self, kept: Centers, sample: Vectors) -> None:
        """Begin with no rows; `sample`: some, to know the range of their numbers."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        count, dimension = kept.centers.shape
        self.kept = kept
        self._quantizer = faiss.IndexFlatIP(dimension)
        self._quantizer.add(kept.centers)
        bits, metric = faiss.ScalarQuantizer.QT_4bit, faiss.METRIC_INNER_PRODUCT
        # The last: codes are of the row itself, not of what it differs from its center by.
        self._index: Any = faiss.IndexIVFScalarQuantizer(
            self._quantizer, dimension, count, bits, metric, False
        )
        self._index.sq.train(sample)
        self._index.is_trained = True

    @classmethod
    def learned(cls, sample: Vectors, rows: int) -> Self:
        """Return lists for `rows` rows, with centers learned from `sample`, and no rows yet."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        means = faiss.Kmeans(
            sample.shape[1],
            min(_count(rows), len(sample)),
            niter=_ROUNDS,
            spherical=True,
            min_points_per_centroid=1,  # it would warn of fewer than 39
            max_points_per_centroid=2 * _POINTS,
        )
        with alone():
            means.train(sample)
        centers = np.array(means.centroids, np.float32).reshape(-1, sample.shape[1])
        return cls(Centers(centers, len(centers), rows), sample)

    def assign(self, rows: Vectors) -> NDArray[np.int64]:
        """Return the list of each row."""
        with alone():
            found: NDArray[np.int64] = self._quantizer.search(rows, 1)[1][:, 0]
        return found

    def add(self, rows: Vectors, first: int, lists: NDArray[np.int64] | None = None) -> None:
        """Take in `rows`, which stand at the places from `first` on; `lists`: if known already."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        lists = np.ascontiguousarray(self.assign(rows) if lists is None else lists)
        places = np.arange(first, first + len(rows))
        rows = np.ascontiguousarray(rows)
        with alone():
            self._index.add_core(
                len(rows), faiss.swig_ptr(rows), faiss.swig_ptr(places), faiss.swig_ptr(lists)
            )

    def lists(self, rows: int) -> NDArray[np.int64]:
        """Return the list of each of so many places."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        found = np.zeros(rows, np.int64)
        inside = self._index.invlists
        for number in range(len(self.kept.centers)):
            if size := inside.list_size(number):
                found[faiss.rev_swig_ptr(inside.get_ids(number), size)] = number
        return found

    def near(self, query: Vector, count: int, live: object) -> NDArray[np.int64]:
        """Return places of rows that may be the nearest `count`, in any order, most likely first.

        `live`: a selector of FAISS for the places that count; None: all do.
        """
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        parameters: Any = faiss.SearchParametersIVF  # its stubs know no arguments
        how = parameters(nprobe=self.kept.probes, sel=live)
        with alone():
            places = self._index.search(query[None], _WIDER * count, params=how)[1][0]
        found: NDArray[np.int64] = places[places >= 0]
        return found


class Recall:
    """Measures how many lists a search must read, while rows are parted block by block."""

    def __init__(self, sample: Vectors) -> None:
        self._asked = np.ascontiguousarray(sample[:: max(1, len(sample) // _ASKED)])
        self._scores = np.zeros((len(self._asked), 0), np.float32)
        self._lists = np.zeros((len(self._asked), 0), np.int64)

    def take_in(self, rows: Vectors, lists: NDArray[np.int64]) -> None:
        """Take in a block of rows and their lists."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        most, metric = min(NEAREST, len(rows)), faiss.METRIC_INNER_PRODUCT
        with alone():
            scores, places = faiss.knn(self._asked, rows, most, metric=metric)
        scores = np.concatenate([self._scores, scores], axis=1)
        found = np.concatenate([self._lists, lists[places]], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]
        self._scores = np.take_along_axis(scores, best, axis=1)
        self._lists = np.take_along_axis(found, best, axis=1)

    def probes(self, centers: Vectors) -> int:
        """Return how many lists to read so that a share of `RECALL` of the nearest is in them."""
        nearest = np.argsort(-(self._asked @ centers.T), axis=1, kind="stable")
        ranks = np.empty_like(nearest)
        np.put_along_axis(ranks, nearest, np.arange(len(centers))[None], axis=1)
        needed = np.sort(np.take_along_axis(ranks, self._lists, axis=1), axis=None)
        return int(needed[int(np.ceil(RECALL * len(needed))) - 1]) + 1


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
