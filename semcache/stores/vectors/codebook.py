"""What codes are made by: levels for each number of a row, and lists that near rows share.

Both are learned from some of the rows. How many lists a search looks through is measured: as many
as have what is nearest to some of the rows, so that it follows how the vectors of a tenant lie.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vectors
from semcache.stores.vectors.library import alone, library

LEVELS = 16
MANY = 200_000
"""Rows from which on they are in lists: of 100,000 a look through all of them takes less time than
one through the lists that are needed (`scale.py`: 2.7 ms a semantic hit, and 3.3 with lists)."""
_LISTS = 2
"""Lists for each row of a square that has as many fields as there are rows: looking for the lists
to look through, and through them, then takes about equally long."""
_SAMPLE = 1024
"""Rows that levels are learned from: with 256 or 2,048 as many of the nearest are found."""
_SAMPLE_A_LIST = 32
"""Rows that each list is learned from."""
_ROUNDS = 5
"""Rounds of k-means."""
ASKED = 256
"""Rows whose nearest tell how many lists a search looks through."""
NEAREST = 64
"""How many of the nearest of each."""
_FOUND = 0.9995
"""Share of them that is in the lists which are counted."""
_SPARE = 1.5
"""Times as many lists as counted: what is asked for lies farther from the rows than these from one
another. Of the 64 nearest to 150 texts among 50,000 others .998 were found without it, and all in
twice as many lists; of 200,000 made from them .999."""


class Codebook(NamedTuple):
    """What the codes of some rows are made by."""

    levels: Vectors
    """Of shape `(dimension, LEVELS)`."""
    centers: Vectors
    """Of shape `(lists, dimension)`: a row is in the list whose center is the most like it."""
    rows: int
    """How many rows there were when this was learned."""
    probes: int
    """How many lists a search looks through."""

    @classmethod
    def learned(cls, sample: Vectors, rows: int) -> Self:
        """Return a book for `rows` rows, learned from `sample`; searches look through all lists."""
        faiss = library()
        dimension = sample.shape[1]
        quantizer = faiss.ProductQuantizer(dimension, dimension, 4)
        quantizer.cp.niter = _ROUNDS
        quantizer.cp.min_points_per_centroid = 1  # it would warn of fewer than 39
        with alone():
            quantizer.train(np.ascontiguousarray(sample[:: max(1, len(sample) // _SAMPLE)]))
            centers = _centers(sample, lists_of(rows))
        levels = faiss.vector_to_array(quantizer.centroids).reshape(-1, LEVELS)
        return cls(levels, centers, rows, len(centers))

    def probed(self, queries: Vectors, lists: NDArray[np.int64]) -> Self:
        """Return the book with as many lists to look through as the nearest of `queries` need.

        `lists`: of shape `(queries, nearest)`, the list that each of the nearest is in.
        """
        order = np.argsort(-(queries @ self.centers.T), axis=1)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(len(self.centers))[None], axis=1)
        needed = np.quantile(np.take_along_axis(ranks, lists, axis=1), _FOUND, method="higher")
        return self._replace(probes=min(int(_SPARE * (needed + 1)), len(self.centers)))


def sample_size(rows: int) -> int:
    """Return how many of `rows` rows a book is learned from."""
    return max(_SAMPLE, _SAMPLE_A_LIST * lists_of(rows))


def lists_of(rows: int) -> int:
    """Return how many lists there are for so many rows."""
    return 1 if rows < MANY else int(_LISTS * rows**0.5)


def _centers(sample: Vectors, count: int) -> Vectors:
    if count == 1:
        return np.zeros((1, sample.shape[1]), np.float32)
    means = library().Kmeans(
        sample.shape[1],
        count,
        niter=_ROUNDS,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=len(sample),
    )
    means.train(np.ascontiguousarray(sample))
    centers: Vectors = np.asarray(means.centroids, np.float32)
    return centers
