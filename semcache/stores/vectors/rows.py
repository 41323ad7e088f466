"""The rows of an index: exact vectors in memory, and which id each belongs to."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors
from semcache.stores.vectors.codes import RowCodes, candidates, is_set
from semcache.stores.vectors.library import alone, library

TIE = 1e-5
"""Float32 products of equal vectors differ by less, whatever the kernel."""


class IndexRows:
    """Vectors at places that never change: who is removed leaves a tombstone.

    Where a row was removed its place is empty until a new `IndexRows` is made of what is left, see
    `compacted`: moving all rows behind one takes 9 ms at 100,000 rows of 384. FAISS reads the
    memory of the rows, and is loaded by the first search. Not safe from several threads while one
    changes it.
    """

    def __init__(self, vectors: Vectors, ids: Sequence[str] = ()) -> None:
        """`vectors`: of shape `(rows, dimension)`, contiguous, one for each of `ids`; kept."""
        self.dimension = vectors.shape[1]
        self.ids = list(ids)
        """By place; empty text: it was removed."""
        self.codes: RowCodes | None = None
        """By which a search finds the rows that it compares; None: it compares all."""
        self._room = vectors
        """As many rows as there is room for."""
        self._places = {known: place for place, known in enumerate(ids)}
        self._live = np.packbits(np.arange(len(ids) + 8) < len(ids), bitorder="little")
        """A bit for each place: whether nobody removed it; 0 behind the last."""

    @property
    def vectors(self) -> Vectors:
        """The vectors by place, of shape `(places, dimension)`; zeros where one was removed."""
        return self._room[: len(self.ids)]

    def __len__(self) -> int:
        """Return how many rows there are, tombstones apart."""
        return len(self._places)

    @property
    def tombstones(self) -> int:
        """How many places nobody has."""
        return len(self.ids) - len(self._places)

    def kept(self) -> NDArray[np.int64]:
        """Return the places of the rows, tombstones apart."""
        bits = np.unpackbits(self._live, count=len(self.ids), bitorder="little")
        return np.flatnonzero(bits)

    def add(self, id: str, row: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `row` under `id`, which nobody has."""
        place = len(self.ids)
        if place == len(self._room):
            more = np.empty((max(8, 2 * place), self.dimension), np.float32)
            more[:place] = self._room
            self._room = more
        if place >= 8 * len(self._live):
            self._live = np.concatenate([self._live, np.zeros_like(self._live)])
        self._room[place] = row
        self.ids.append(id)
        self._places[id] = place
        self._live[place >> 3] |= 1 << (place & 7)  # a tombstone, if an interrupt came before
        if self.codes is not None:
            if len(self.codes) != place:
                self.codes = None  # of an interrupted call; they are learned anew
            else:
                self.codes.add(row[None])

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id` and its vector; return whether it was there."""
        place = self._places.pop(id, None)
        if place is None:
            return False
        self._live[place >> 3] &= 255 ^ (1 << (place & 7))
        self.ids[place] = ""
        self.vectors[place] = 0
        return True

    def compacted(self) -> Self:
        """Return the same rows without tombstones."""
        kept = self.kept()
        rows = type(self)(self.vectors[kept], [self.ids[place] for place in kept.tolist()])
        if self.codes is not None and len(self.codes) == len(self.ids):
            rows.codes = RowCodes.restored(self.codes.saved())
            gone = np.ones(len(self.ids), np.bool_)
            gone[kept] = False
            rows.codes.remove(gone)
        return rows

    def near(self, query: Vector, count: int) -> NDArray[np.int64] | None:
        """Return by their codes what `nearest` returns; None where that must tell."""
        if self.codes is None or 2 * candidates(count) > len(self):
            return None
        places = self.codes.near(query, count, self._live)
        if len(places) < count:
            return None
        scores = self.vectors[places] @ query
        last = np.partition(scores, -count)[-count]
        if last - scores.min() < TIE:
            return None  # there may be more that tie with the last
        found: NDArray[np.int64] = places[scores > last - TIE]
        return found

    def nearest(self, query: Vector, count: int) -> NDArray[np.int64]:
        """Return the places of the nearest `count` rows and of all that tie with the last.

        Exact: all rows are compared. `count` is 1 to the number of rows.
        """
        faiss = library()
        with alone():
            # FAISS breaks ties as it likes, and finds tombstones as well, which are zeros: so ask
            # on until the last one found is clearly behind.
            asked, rows, inner = query[None], self.vectors, faiss.METRIC_INNER_PRODUCT
            wanted = min(count + 8, len(rows))
            while True:
                scores, places = (found[0] for found in faiss.knn(asked, rows, wanted, inner))
                live = is_set(self._live, places)
                enough = np.flatnonzero(live)[count - 1 : count]
                if wanted == len(rows) or (len(enough) and scores[-1] < scores[enough[0]] - TIE):
                    kept: NDArray[np.int64] = places[live]
                    return kept
                wanted = min(4 * wanted, len(rows))
