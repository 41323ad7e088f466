"""Nearest vectors by FAISS: exact for thousands, by codes of 4 bits a number for more."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from semcache.ports import Neighbor, Vector, Vectors
from semcache.process.forks import Lock
from semcache.stores.vectors.codebook import ASKED, LEVELS, Codebook, sample_size
from semcache.stores.vectors.codes import RowCodes, blocks
from semcache.stores.vectors.index_file import read_snapshot, write_snapshot
from semcache.stores.vectors.ranking import checked_vector, ranked
from semcache.stores.vectors.rows import IndexRows
from semcache.stores.vectors.shared_lock import SharedLock

LARGE = 5_000
"""Rows from which on codes are worth their room and the time to learn them: fewer are compared one
and all in 0.3 ms, as many as a search by codes takes at 30,000."""
SLOW = 20_000
"""Rows from which on codes are learned on a thread of their own: fewer take half a second."""
_GROWN = 2
"""Codes are learned anew once there are so many times the rows."""
_SPARSE = 4
"""Tombstones are cleared away once they are more than one for so many rows."""


class FaissIndex:
    """Vectors in an index of FAISS, as `ports.VectorIndex` promises.

    Exact up to `large` rows. A search among more finds .999 of the nearest (see `codes`), each with
    its exact similarity, and never fewer than asked for and kept. Codes of 20,000 rows are learned
    on a thread of their own: searches go on with the codes that were there, or compare all rows.
    Safe from several threads; searches run side by side.
    """

    def __init__(self, dimension: int | None = None, *, large: int = LARGE) -> None:
        """`dimension`: None: that of the first vector. `large`: rows from which on to use codes."""
        self._large = large
        self._lock = SharedLock()
        self._learning = Lock()
        self._learner: threading.Thread | None = None
        self._dimension = dimension
        self._rows: IndexRows | None = None
        """None: there was no vector yet."""

    @classmethod
    def load(cls, path: str, *, large: int = LARGE) -> tuple[Self, int]:
        """Return the index saved at `path`, and the number of the last change that it holds.

        Raises:
            IndexCorrupt: missing, cut short, changed by as much as one bit, or of another format.
        """
        saved = read_snapshot(Path(path))
        index = cls(saved.vectors.shape[1] or None, large=large)
        if saved.ids:
            rows = index._rows = IndexRows(saved.vectors, saved.ids)
            if saved.codes is not None:
                codes = RowCodes.restored(saved.codes)
                rows.codes = codes if codes.fit(rows.vectors) else None
        return index, saved.change

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `change` is kept with it.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        self.learn()
        with self._lock.reading():
            rows = self._rows
            if rows is None:
                nothing = np.zeros((0, self._dimension or 0), np.float32)
                write_snapshot(Path(path), [], nothing, change=change)
                return
            whole = rows.compacted() if rows.tombstones else rows
            codes = whole.codes
            saved = None if codes is None or len(codes) != len(whole) else codes.saved()
            write_snapshot(Path(path), whole.ids, whole.vectors, change=change, codes=saved)

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there; the first one sets the dimension.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        with self._lock.writing():
            row = checked_vector(vector, self._dimension)
            if self._rows is None:
                self._dimension = len(row)
                self._rows = IndexRows(np.empty((0, len(row)), np.float32))
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
                rows.codes = None
            self._rows = rows.compacted()

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        self._learn_in_time()
        with self._lock.reading():
            query, rows = checked_vector(vector, self._dimension), self._rows
            count = 0 if rows is None else min(count, len(rows))
            if rows is None or count <= 0:
                return []
            places = rows.near(query, count)
            places = rows.nearest(query, count) if places is None else places
            ids = [rows.ids[place] for place in places.tolist()]
            return ranked(ids, rows.vectors[places], query)[:count]

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return 0 if self._rows is None else len(self._rows)

    def learn(self) -> None:
        """Learn codes if they are due, or wait for the thread that is at it."""
        self._learn(late=False)

    def _learn_in_time(self) -> None:
        """Learn codes if they are due, behind the caller where that takes long."""
        rows = self._rows
        if rows is None or not self._is_due(rows):
            return
        if len(rows) < SLOW:
            self._learn(late=True)
        elif self._learner is None or not self._learner.is_alive():
            # Of two that are begun at once the second ends at once.
            self._learner = threading.Thread(
                target=self._learn, kwargs={"late": True}, name="semcache-codes", daemon=True
            )
            self._learner.start()

    def _learn(self, *, late: bool) -> None:
        """Learn codes if there are none for as many rows; `late`: unless somebody is at it.

        Rows are encoded some at a time, so that others can add and search in between.
        """
        rows = self._rows
        if rows is None or not self._is_due(rows) or not self._learning.take(lambda: late):
            return
        try:
            if self._rows is not None and self._is_due(self._rows):
                self._encode(self._rows)
        finally:
            self._learning.free()

    def _is_due(self, rows: IndexRows) -> bool:
        known = 0 if rows.codes is None else _GROWN * rows.codes.book.rows
        return len(rows) >= max(self._large, LEVELS, known)

    def _encode(self, rows: IndexRows) -> None:
        codes = RowCodes(Codebook.learned(self._some(rows, sample_size(len(rows))), len(rows)))
        while (places := len(rows.ids)) > len(codes):
            for part in blocks(places, len(codes)):
                with self._lock.reading():
                    block = rows.vectors[part].copy()
                codes.add(block)
        codes.probe(self._some(rows, ASKED))
        with self._lock.writing():
            if len(rows.ids) > len(codes):
                codes.add(rows.vectors[len(codes) :])
            rows.codes = codes  # in vain if tombstones were cleared away meanwhile: then again

    def _some(self, rows: IndexRows, count: int) -> Vectors:
        """Return about `count` of the rows, tombstones apart."""
        with self._lock.reading():
            kept = rows.kept()
            return rows.vectors[kept[:: max(1, len(kept) // count)]]
