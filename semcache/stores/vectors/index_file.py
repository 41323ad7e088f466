"""The file that keeps an index between two processes.

    semcache-index 1 <sha256 of everything after this line>
    {"change":…,"dimension":…,"ids":[…],"rows":…}
    rows * dimension little-endian float32

With codes (`"coded":{"lists":…,"probes":…,"rows":…}`) there follow 16 levels for each dimension,
the centers of the lists, how many rows each has, their places, and their codes. Blanks behind the
JSON let the first number begin at a multiple of 64 bytes.

Not FAISS's own format: that one loads silently with a flipped byte, and says nothing of ids.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, NotRequired

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import JsonObject, dumps
from semcache.errors import IndexCorrupt, StoreUnavailable
from semcache.files import write_aside
from semcache.ports import Vectors
from semcache.schemas import STRICT, AnyValue, Count, read
from semcache.stores.vectors.codebook import LEVELS, Codebook
from semcache.stores.vectors.codes import SavedCodes, packed_sizes

_MAGIC = b"semcache-index 1 "
_FIRST = len(_MAGIC) + 64 + 1  # bytes of the first line


_Positive = Annotated[int, Field(gt=0)]


@with_config(STRICT)
class _Coded(TypedDict):
    lists: _Positive
    probes: _Positive
    rows: _Positive


@with_config(STRICT)
class _Head(TypedDict):
    change: Count
    dimension: Annotated[int, Field(ge=0, lt=100_000)]
    ids: list[str]
    coded: NotRequired[_Coded]
    bounds: NotRequired[AnyValue]
    """Of an older version, which kept something else behind the rows: it is passed over."""
    lists: NotRequired[AnyValue]
    """Likewise."""
    codes: NotRequired[AnyValue]
    """Likewise."""


_HEAD = TypeAdapter(_Head)
_OLDER = {"bounds", "codes", "lists"}


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index as it was saved."""

    ids: tuple[str, ...]
    vectors: Vectors
    """Row `i` belongs to `ids[i]`."""
    change: int
    """Number of the last change of the store that it holds."""
    codes: SavedCodes | None = None
    """None where all rows are compared."""


def write_snapshot(
    path: Path,
    ids: Sequence[str],
    vectors: Vectors,
    *,
    change: int,
    codes: SavedCodes | None = None,
) -> None:
    """Write aside, sync, and rename to `path`: a crash leaves the old file or the new one.

    Raises:
        StoreUnavailable: the file cannot be written (read-only, full, no such directory).
    """
    dimension = int(vectors.shape[1])
    head: JsonObject = {
        "change": change,
        "dimension": dimension,
        "ids": list(ids),
        "rows": len(ids),
    }
    behind: list[NDArray[np.generic]] = []
    if codes is not None:
        book = codes.book
        head["coded"] = {"lists": len(book.centers), "probes": book.probes, "rows": book.rows}
        behind = [book.levels.astype("<f4"), book.centers.astype("<f4")]
        behind += [codes.sizes.astype("<u4"), codes.places.astype("<u4"), codes.packed]
    said = dumps(head).encode()
    body = said + b" " * (-(_FIRST + len(said) + 1) % 64) + b"\n"
    parts = [memoryview(body), memoryview(np.ascontiguousarray(vectors, dtype="<f4").data)]
    parts += [memoryview(np.ascontiguousarray(numbers).data) for numbers in behind]
    check = hashlib.sha256()
    for part in parts:
        check.update(part)
    try:
        write_aside(path, (_MAGIC + check.hexdigest().encode() + b"\n", *parts))
    except OSError as error:
        raise StoreUnavailable(
            f"the index snapshot {str(path)!r} cannot be written: {error}"
        ) from error


def read_snapshot(path: Path) -> SavedIndex:
    """Return what `write_snapshot` wrote.

    Raises:
        IndexCorrupt: missing, cut short, changed by as much as one bit, or of another format.
    """
    try:
        with path.open("rb") as file:
            return _snapshot(file)
    except OSError as error:
        raise _corrupt(path, f"it cannot be read: {error}") from error
    except ValueError as error:
        raise _corrupt(path, str(error)) from error


def _snapshot(file: BufferedReader) -> SavedIndex:
    start, said = file.readline(256), file.readline()
    if not start.startswith(_MAGIC):
        raise ValueError(f"it begins with {start[:24]!r}, expected {_MAGIC!r}")
    head = read(_HEAD, said, what="its head")
    ids, dimension = head["ids"], head["dimension"]
    left = os.fstat(file.fileno()).st_size - file.tell()
    if left < 4 * len(ids) * dimension:  # before room is made for what is not there
        raise ValueError(f"there are {left} bytes for {len(ids)} rows")
    vectors = np.empty((len(ids), dimension), "<f4")
    if vectors.size:
        file.readinto(vectors.data.cast("B"))
    rest = file.read()
    check = hashlib.sha256(said)
    check.update(np.ascontiguousarray(vectors).data)
    check.update(rest)
    if check.hexdigest().encode() != start[len(_MAGIC) : -1]:
        raise ValueError("its checksum is not that of its content")
    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    if len(set(ids)) < len(ids) or "" in ids:
        raise ValueError("an id is there twice, or empty")
    coded = head.get("coded")
    if coded is None and rest and not _OLDER & head.keys():
        raise ValueError(f"there are {len(rest)} bytes behind the rows")
    saved = None if coded is None else _saved_codes(coded, vectors, rest)
    return SavedIndex(tuple(ids), vectors, head["change"], saved)


def _saved_codes(coded: _Coded, vectors: Vectors, content: bytes) -> SavedCodes:
    (rows, dimension), lists = vectors.shape, coded["lists"]
    wrong = f"there are {len(content)} bytes for the codes of {rows} rows"
    numbers = dimension * (LEVELS + lists)
    if len(content) < 4 * (numbers + lists + rows):
        raise ValueError(wrong)
    floats = np.frombuffer(content, "<f4", numbers).astype(np.float32)
    counts = np.frombuffer(content, "<u4", lists + rows, 4 * numbers).astype(np.int64)
    packed = np.frombuffer(content, "u1", -1, 4 * (numbers + lists + rows))
    sizes, places = counts[:lists], counts[lists:]
    if sizes.sum() != rows or len(packed) != packed_sizes(sizes, dimension).sum():
        raise ValueError(wrong)
    if not np.isfinite(floats).all():
        raise ValueError("a level of the codes, or a center of a list, is not finite")
    if not np.array_equal(np.sort(places), np.arange(rows)):
        raise ValueError("the codes are not of each row")
    levels = floats[: dimension * LEVELS].reshape(dimension, LEVELS)
    centers = floats[dimension * LEVELS :].reshape(lists, dimension)
    return SavedCodes(
        Codebook(levels, centers, coded["rows"], coded["probes"]), sizes, places, packed
    )


def _corrupt(path: Path, why: str) -> IndexCorrupt:
    return IndexCorrupt(
        f"the index snapshot {str(path)!r} cannot be trusted: {why}; "
        "delete it, and the index is rebuilt from the store"
    )
