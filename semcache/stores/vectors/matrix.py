"""The vectors of an index: one growing matrix, and which id each row belongs to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Neighbor, Vector, Vectors
from semcache.stores.vectors.index_file import SavedIndex, read_snapshot, write_snapshot
from semcache.stores.vectors.ranking import checked_vector, ranked
from semcache.stores.vectors.search_bounds import SearchBounds
from semcache.stores.vectors.shared_lock import SharedLock

TIE = 1e-5  # float32 products of equal vectors differ by less, whatever the kernel


class VectorMatrix:
    """Vectors under ids, as `ports.VectorIndex` promises but for how the nearest are found.

    Safe from several threads; searches run side by side.
    A removed row is filled with the last one, so a removal costs one row and not, as in
    `faiss.IndexFlat`, a move of all rows behind it (9 ms at 100,000 rows of 384).
    """

    def __init__(self, dimension: int | None = None) -> None:
        self._lock = SharedLock()
        self._dimension = dimension
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._matrix: Vectors = np.zeros((0, dimension or 0), np.float32)

    @classmethod
    def of(cls, snapshot: SavedIndex) -> Self:
        """Return the rows of a snapshot."""
        rows = cls(snapshot.vectors.shape[1] or None)
        rows._ids = list(snapshot.ids)
        rows._places = {known: place for place, known in enumerate(rows._ids)}
        # The bytes that were read, not writable: most that open a large index only search it.
        rows._matrix = np.asarray(snapshot.vectors, np.float32)
        rows.bound(snapshot.leading)
        return rows

    @classmethod
    def load(cls, path: str) -> tuple[Self, int]:
        """Return the rows saved at `path`, and the number of the last change that they hold.

        Raises:
            IndexCorrupt: missing, cut short, changed by as much as one bit, or of another format.
        """
        snapshot = read_snapshot(Path(path))
        return cls.of(snapshot), snapshot.change

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `change` is kept with it.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        with self._lock.reading():
            rows = self._matrix[: len(self._ids)]
            bounds = self.bounding(rows)
            write_snapshot(Path(path), self._ids, rows, change=change, leading=bounds)

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there; the first one sets the dimension.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        with self._lock.writing():
            row = checked_vector(vector, self._dimension)
            self._dimension = len(row)
            place = self._places.get(id)
            if place is None:
                place = self._append(id)
            self._own()
            self._matrix[place] = row
            self.wrote(place, row)

    def _own(self) -> None:
        if not self._matrix.flags.writeable:
            self._matrix = self._matrix.copy()

    def _append(self, id: str) -> int:  # noqa: A002 - the word of the record
        place = len(self._ids)
        if place >= len(self._matrix):
            # By an eighth: rows are most of what an entry costs, and half of them empty is a lot.
            grown = np.zeros((max(64, place + place // 8), self._dimension or 0), np.float32)
            if place:  # the empty matrix may not know its dimension yet
                grown[:place] = self._matrix
            self._matrix = grown
        self._ids.append(id)
        self._places[id] = place
        return place

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""
        with self._lock.writing():
            place = self._places.pop(id, None)
            if place is None:
                return False
            self._own()
            last = self._ids.pop()
            if last != id:
                self._ids[place] = last
                self._places[last] = place
                self._matrix[place] = self._matrix[len(self._ids)]
                self.wrote(place, self._matrix[place])
            return True

    def wrote(self, place: int, row: Vector) -> None:
        """Take notice that `row` is at `place` now; nobody else is inside meanwhile."""

    def bound(self, leading: SearchBounds | None) -> None:
        """Take over what bounds the rows of a snapshot; nothing, where nobody keeps bounds."""

    def bounding(self, rows: Vectors) -> SearchBounds | None:  # noqa: ARG002 - for who keeps bounds
        """Return what bounds the likeness of `rows`, all there are; None if nothing does."""
        return None

    def near(self, rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
        """Return the places of the best `count` rows and of every row that ties with the last.

        In any order; `count` is 1 to the number of rows.
        """
        raise NotImplementedError("say how the nearest are found")

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        with self._lock.reading():
            query = checked_vector(vector, self._dimension)
            rows = self._matrix[: len(self._ids)]
            count = min(count, len(rows))
            if count <= 0:
                return []
            places = self.near(rows, query, count)
            return ranked([self._ids[i] for i in places.tolist()], rows[places], query, count)

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return len(self._ids)


class MemoryIndex(VectorMatrix):
    """Exact search with numpy alone, as `ports.VectorIndex` promises."""

    def near(self, rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
        """Return the places of the best rows; see `VectorMatrix`."""
        scores = rows @ query
        last = np.partition(scores, len(rows) - count)[len(rows) - count]
        return np.flatnonzero(scores >= last - TIE)
