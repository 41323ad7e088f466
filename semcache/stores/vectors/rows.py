"""The rows of an index: exact vectors in a flat index of FAISS, and which id each belongs to."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors
from semcache.process.imports import ensure_imported
from semcache.stores.vectors.codes import RowCodes, candidates
from semcache.stores.vectors.threads import alone

TIE = 1e-5
"""Float32 products of equal vectors differ by less, whatever the kernel."""


class IndexRows:
    """Vectors at places that never change: who is removed leaves a tombstone.

    Where a row was removed its place is empty until a new `IndexRows` is made of what is left, see
    `compacted`: `faiss.IndexFlat` moves all rows behind one that it removes (9 ms at 100,000 rows
    of 384). Not safe from several threads while one changes it.
    """

    def __init__(self, dimension: int) -> None:
        ensure_imported("faiss")
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        self.dimension = dimension
        self.ids: list[str] = []
        """By place; empty text: it was removed."""
        self.codes: RowCodes | None = None
        """By which a search finds the rows that it compares; None: it compares all."""
        self._flat: Any = faiss.IndexFlatIP(dimension)
        self._places: dict[str, int] = {}
        self._live = np.zeros(8, np.uint8)
        """A bit for each place: whether nobody removed it."""

    def room(self, count: int) -> Vectors:
        """Return the memory of `count` rows, to be written to; only where there are none yet."""
        self._flat.codes.resize(count * self.dimension * 4)
        self._flat.ntotal = count
        return self.vectors

    def name(self, ids: list[str]) -> None:
        """Say which ids the rows have that stand there now."""
        self.ids = ids
        self._places = {known: place for place, known in enumerate(ids)}
        self._live = np.full(len(ids) // 8 + 1, 255, np.uint8)

    @property
    def vectors(self) -> Vectors:
        """The vectors by place, of shape `(places, dimension)`; zeros where one was removed.

        It is the memory of FAISS, and gone once a row is added.
        """
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        count = self._flat.ntotal
        if not count:
            return np.zeros((0, self.dimension), np.float32)
        flat: Vectors = faiss.rev_swig_ptr(self._flat.get_xb(), count * self.dimension)
        return flat.reshape(count, self.dimension)

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
        place = self._flat.ntotal = len(self.ids)  # less, if an interrupt came between
        if place >= 8 * len(self._live):
            self._live = np.concatenate([self._live, np.zeros_like(self._live)])
        self._flat.add(row[None])
        if self.codes is not None:
            if len(self.codes) != place:
                self.codes = None  # of an interrupted call; they are learned anew
            else:
                self.codes.add(row[None])
        self.ids.append(id)
        self._places[id] = place
        self._live[place >> 3] |= 1 << (place & 7)

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
        kept, rows = self.kept(), type(self)(self.dimension)
        vectors, room = self.vectors, rows.room(len(kept))
        np.take(vectors, kept, axis=0, out=room, mode="clip")  # the other modes copy once more
        rows.name([self.ids[place] for place in kept.tolist()])
        if self.codes is not None and len(self.codes) == len(self.ids):
            rows.codes = RowCodes.restored(self.codes.saved())
            gone = np.ones(len(self.ids), np.bool_)
            gone[kept] = False
            rows.codes.remove(gone)
        return rows

    def live(self) -> Any:  # noqa: ANN401 - FAISS publishes no types of its selectors
        """Return a selector for the places that are not tombstones; None: there are none."""
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        selector: Any = faiss.IDSelectorBitmap  # its stubs know the C++ arguments
        return selector(self._live) if self.tombstones else None

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
        import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

        live = self.live()
        parameters: Any = faiss.SearchParameters  # its stubs know no arguments
        how = None if live is None else parameters(sel=live)
        with alone():
            # FAISS breaks ties as it likes, so ask on until the last one found is clearly behind.
            wanted = min(count + 8, len(self))
            while True:
                scores, places = self._flat.search(query[None], wanted, params=how)
                if wanted == len(self) or scores[0, -1] < scores[0, count - 1] - TIE:
                    found: NDArray[np.int64] = places[0]
                    return found
                wanted = min(4 * wanted, len(self))
