"""Nearest vectors by FAISS: exact for thousands, by inverted lists for more."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from semcache.forks import Lock
from semcache.ports import Neighbor, Vector, Vectors
from semcache.stores.vectors.index_file import read_snapshot, write_snapshot
from semcache.stores.vectors.inverted_lists import (
    NEAREST,
    Centers,
    InvertedLists,
    Recall,
    blocks,
    sample_of,
)
from semcache.stores.vectors.ranking import checked_vector, ranked
from semcache.stores.vectors.rows import TIE, IndexRows
from semcache.stores.vectors.shared_lock import SharedLock

LARGE = 30_000
"""Rows from which on inverted lists are worth their room and the time to learn them: fewer are
compared one and all in 2 ms, a third of what one embedding takes."""
_GROWN = 2
"""Lists are learned anew once there are so many times the rows."""
_SPARSE = 4
"""Tombstones are cleared away once they are more than one for so many rows."""


class FaissIndex:
    """Vectors in an index of FAISS, as `ports.VectorIndex` promises.

    Exact up to `large` rows. A search among more finds .999 of the nearest (see
    `inverted_lists`), each with its exact similarity, and never fewer than asked for and kept.
    Safe from several threads; searches run side by side.
    """

    def __init__(self, dimension: int | None = None, *, large: int = LARGE) -> None:
        """`dimension`: None: that of the first vector. `large`: rows from which on to use lists."""
        self._large = large
        self._lock = SharedLock()
        self._learning = Lock()
        self._dimension = dimension
        self._rows: IndexRows | None = None
        """None: there was no vector yet."""

    @classmethod
    def load(cls, path: str, *, large: int = LARGE) -> tuple[Self, int]:
        """Return the index saved at `path`, and the number of the last change that it holds.

        Raises:
            IndexCorrupt: missing, cut short, changed by as much as one bit, or of another format.
        """
        loading: list[IndexRows] = []

        def room(count: int, dimension: int) -> Vectors:
            loading.append(IndexRows(dimension))
            return loading[0].room(count)

        saved = read_snapshot(Path(path), room)
        index = cls(saved.vectors.shape[1] or None, large=large)
        if saved.ids:
            rows = index._rows = loading[0]
            rows.name(list(saved.ids))
            if saved.lists is not None:
                centers, numbers = saved.lists
                rows.lists = InvertedLists(centers, saved.vectors[sample_of(rows.kept())])
                for part in blocks(len(rows)):
                    rows.lists.add(saved.vectors[part], part.start, numbers[part])
        return index, saved.change

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `change` is kept with it.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        self._learn()
        with self._lock.reading():
            rows = self._rows
            if rows is None:
                nothing = np.zeros((0, self._dimension or 0), np.float32)
                write_snapshot(Path(path), [], nothing, change=change)
                return
            vectors, ids, lists = rows.vectors, rows.ids, None
            if rows.lists is not None:
                lists = rows.lists.kept, rows.lists.lists(len(ids))
            if rows.tombstones:
                kept = rows.kept()
                vectors, ids = vectors[kept], [ids[place] for place in kept.tolist()]
                lists = None if lists is None else (lists[0], lists[1][kept])
            write_snapshot(Path(path), ids, vectors, change=change, lists=lists)

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there; the first one sets the dimension.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        with self._lock.writing():
            row = checked_vector(vector, self._dimension)
            if self._rows is None:
                self._dimension, self._rows = len(row), IndexRows(len(row))
            self._rows.remove(id)
            self._rows.add(id, row)
            self._clear(self._rows)

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""
        with self._lock.writing():
            if self._rows is None or not self._rows.remove(id):
                return False
            self._clear(self._rows)
            return True

    def _clear(self, rows: IndexRows) -> None:
        """Clear tombstones away where they are many."""
        if rows.tombstones > len(rows) // _SPARSE + 64:
            if len(rows) < self._large // _GROWN:
                rows.lists = None
            self._rows = rows.compacted()

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        self._learn()
        with self._lock.reading():
            query, rows = checked_vector(vector, self._dimension), self._rows
            count = 0 if rows is None else min(count, len(rows))
            if rows is None or count <= 0:
                return []
            found: list[Neighbor] = []
            if rows.lists is not None and count <= NEAREST:
                places = rows.lists.near(query, count, rows.live())
                found = _compared(rows, places, query)
            if len(found) < count or found[count - 1].similarity - found[-1].similarity < TIE:
                # Too few, or there may be more that tie with the last.
                found = _compared(rows, rows.nearest(query, count), query)
            return found[:count]

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return 0 if self._rows is None else len(self._rows)

    def _learn(self) -> None:
        """Learn lists if there are none for as many rows; who comes meanwhile goes on without.

        Rows are parted some at a time, so that others can add and search in between.
        """
        rows = self._rows
        if rows is None or not self._is_due(rows) or not self._learning.take(lambda: True):
            return
        try:
            if self._is_due(rows):
                self._part(rows)
        finally:
            self._learning.free()

    def _is_due(self, rows: IndexRows) -> bool:
        known = 0 if rows.lists is None else _GROWN * rows.lists.kept.rows
        return len(rows) >= max(self._large, known)

    def _part(self, rows: IndexRows) -> None:
        with self._lock.reading():
            sample, count = rows.vectors[sample_of(rows.kept())], len(rows)
        lists = InvertedLists.learned(sample, count)
        recall, parted = Recall(sample), 0
        while (places := len(rows.ids)) > parted:
            for part in blocks(places, parted):
                with self._lock.reading():
                    block = rows.vectors[part]
                    numbers = lists.assign(block)
                    lists.add(block, part.start, numbers)
                    recall.take_in(block, numbers)
            parted = places
        centers = lists.kept.centers
        lists.kept = Centers(centers, recall.probes(centers), count)
        with self._lock.writing():
            if len(rows.ids) > parted:
                lists.add(rows.vectors[parted:], parted)
            rows.lists = lists  # in vain if tombstones were cleared away meanwhile: then again


def _compared(rows: IndexRows, places: NDArray[np.int64], query: Vector) -> list[Neighbor]:
    """Return the rows at `places`, nearest first."""
    return ranked([rows.ids[place] for place in places.tolist()], rows.vectors[places], query)
