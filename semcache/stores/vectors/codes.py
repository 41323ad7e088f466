"""Codes: rows at 4 bits a number, by which FAISS finds which of many are worth comparing.

Each number of a row is the nearest of 16 levels, which are learned for its place from some of the
rows. A search looks through the codes 20 times as fast as through the rows themselves, since tables
of the levels stay in the registers of the processor (André, Kermarrec, Le Scouarnec, "Quicker ADC",
TPAMI 2021); the best of them are then compared exactly. Codes of many rows are in lists of rows
that lie near each other, and a search looks through the lists near to what is asked for.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from semcache.ports import Vector, Vectors
from semcache.stores.vectors.codebook import NEAREST, Codebook
from semcache.stores.vectors.library import alone, library

_WIDER = 4
"""Times as many candidates by their codes as are asked for. All of the 64 nearest are among 192 for
16,000 texts of twelve streams, and among 256 for 100,000 made prompts that share their words."""
_LEAST = 256
"""Candidates at least."""
_BLOCK = 32
"""Rows whose codes FAISS keeps together."""
BLOCK = 4096
"""Rows that are encoded at once."""


def candidates(count: int) -> int:
    """Return how many rows are compared for the nearest `count`."""
    return max(_LEAST, _WIDER * count)


def is_set(bits: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each of `places` whether its bit is 1."""
    found: NDArray[np.bool_] = (bits[places >> 3] >> (places & 7) & 1) > 0
    return found


class SavedCodes(NamedTuple):
    """Codes as a file has them."""

    book: Codebook
    sizes: NDArray[np.int64]
    """How many rows each list has."""
    places: NDArray[np.int64]
    """The place of each row, one list after the other."""
    packed: NDArray[np.uint8]
    """The codes as FAISS packs them, one list after the other: of `packed_sizes` bytes."""


def packed_sizes(sizes: NDArray[np.int64], dimension: int) -> NDArray[np.int64]:
    """Return the bytes that the codes of lists of so many rows take."""
    return -(-sizes // _BLOCK) * _BLOCK * -(-dimension // 2)


class RowCodes:
    """Codes of rows, by their places. Not safe from several threads while one changes it."""

    def __init__(self, book: Codebook) -> None:
        """Begin with no codes."""
        faiss = library()
        self.book = book
        lists, dimension = book.centers.shape
        inner = faiss.METRIC_INNER_PRODUCT
        self._centers: Any = faiss.IndexFlatIP(dimension)
        self._centers.add(np.ascontiguousarray(book.centers))
        self._index: Any = faiss.IndexIVFPQFastScan(
            self._centers, dimension, lists, dimension, 4, inner
        )
        self._index.by_residual = False
        faiss.copy_array_to_vector(book.levels.ravel(), self._index.pq.centroids)
        self._index.is_trained = True

    @classmethod
    def restored(cls, saved: SavedCodes) -> Self:
        """Return the codes that `saved` returned."""
        faiss = library()
        codes, first, start = cls(saved.book), 0, 0
        sizes = packed_sizes(saved.sizes, len(saved.book.levels))
        both = zip(saved.sizes.tolist(), sizes.tolist(), strict=True)
        for number, (count, size) in enumerate(both):
            if count:
                places = saved.places[first : first + count]
                packed = saved.packed[start : start + size]
                codes._index.invlists.add_entries(
                    number, count, faiss.swig_ptr(places), faiss.swig_ptr(packed)
                )
            first, start = first + count, start + size
        codes._index.ntotal = first
        return codes

    def probe(self, queries: Vectors) -> None:
        """Look through as many lists from now on as the nearest of `queries`, some rows, need."""
        if len(self.book.centers) == 1:
            return
        lists = np.zeros(len(self) + 1, np.int64)  # the last: nothing was found
        for number in range(len(self.book.centers)):
            lists[self._places(number)] = number
        found = [self._search(query, NEAREST, len(self.book.centers)) for query in queries]
        self.book = self.book.probed(queries, lists[np.array(found)])

    def fit(self, rows: Vectors) -> bool:
        """Return whether a sample of `rows` has these codes: another FAISS may pack them anew."""
        ends, packer = np.cumsum(self._sizes()), self._index.get_CodePacker()
        for number in range(0, len(self), len(self) // _BLOCK + 1):
            among = int(np.searchsorted(ends, number, side="right"))
            offset = number - int(ends[among]) + self._size(among)
            place = int(self._places(among)[offset])
            kept = packer.unpack_1(self._packed(among), offset)
            if not np.array_equal(kept, self._index.pq.compute_codes(rows[place : place + 1])[0]):
                return False
        return True

    def saved(self) -> SavedCodes:
        """Return what a file keeps."""
        sizes, numbers = self._sizes(), range(len(self.book.centers))
        places = [self._places(number) for number in numbers]
        packed = [self._packed(number) for number in numbers]
        return SavedCodes(self.book, sizes, np.concatenate(places), np.concatenate(packed).ravel())

    def __len__(self) -> int:
        """Return how many places have codes."""
        return int(self._index.ntotal)

    def add(self, rows: Vectors) -> None:
        """Encode `rows`, which stand at the next places."""
        with alone():
            self._index.add(np.ascontiguousarray(rows))

    def remove(self, gone: NDArray[np.bool_]) -> None:
        """Forget the places that are `gone`; the others move up."""
        selector = library().IDSelectorBitmap(np.packbits(gone, bitorder="little"))
        with alone():
            self._index.remove_ids(selector)
        moved = np.cumsum(~gone) - 1
        packer = self._index.get_CodePacker()
        nothing = np.zeros(packer.code_size, np.uint8)
        for number in range(len(self.book.centers)):
            places = self._places(number)
            places[:] = moved[places]
            # A block that is not full keeps codes of the removed; FAISS mixes in what is added.
            packed = self._packed(number)
            for offset in range(len(places), -(-len(places) // _BLOCK) * _BLOCK):
                packer.pack_1(nothing, offset, packed)

    def near(self, query: Vector, count: int, live: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return places of rows that may be the nearest `count`, in any order.

        `live`: a bit for each place, whether it counts.
        """
        enough = wanted = candidates(count)
        lists, probes = len(self.book.centers), self.book.probes
        while True:
            places = self._search(query, min(wanted, len(self)), probes)
            places = places[places >= 0]
            found: NDArray[np.int64] = places[is_set(live, places)]
            if len(found) >= enough or (wanted >= len(self) and probes >= lists):
                return found
            wanted, probes = 2 * wanted, min(2 * probes, lists)

    def _search(self, query: Vector, count: int, probes: int) -> NDArray[np.int64]:
        """Return the places of the `count` best in so many lists; -1: there are no more."""
        how = library().SearchParametersIVF(nprobe=probes)
        with alone():
            found: NDArray[np.int64] = self._index.search(query[None], count, params=how)[1][0]
        return found

    def _size(self, number: int) -> int:
        return int(self._index.invlists.list_size(number))

    def _sizes(self) -> NDArray[np.int64]:
        return np.array([self._size(number) for number in range(len(self.book.centers))], np.int64)

    def _places(self, number: int) -> NDArray[np.int64]:
        """Return the places of the rows in a list: the memory of FAISS."""
        size = self._size(number)
        if not size:
            return np.zeros(0, np.int64)
        ids = self._index.invlists.get_ids(number)
        places: NDArray[np.int64] = library().rev_swig_ptr(ids, size)
        return places

    def _packed(self, number: int) -> NDArray[np.uint8]:
        """Return the codes of a list, a row for each block: the memory of FAISS."""
        block = int(packed_sizes(np.array(1), len(self.book.levels)))
        count = -(-self._size(number) // _BLOCK)
        if not count:
            return np.zeros((0, block), np.uint8)
        codes = self._index.invlists.get_codes(number)
        packed: NDArray[np.uint8] = library().rev_swig_ptr(codes, count * block)
        return packed.reshape(count, block)


def blocks(rows: int, first: int = 0) -> Iterator[slice]:
    """Yield the places from `first` to `rows`, some at a time."""
    for start in range(first, rows, BLOCK):
        yield slice(start, min(start + BLOCK, rows))
