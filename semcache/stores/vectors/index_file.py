"""The file that keeps an index between two processes.

    semcache-index 1 <sha256 of everything after this line>
    {"change":…,"dimension":…,"ids":[…],"rows":…}
    rows * dimension little-endian float32

With bounds (`"bounds":{"chosen":…,"width":…}`, see `search_bounds`) there follow, of the same kind,
dimension * (width - 2) numbers, the directions, and 2 * width - 2 more, mean and steps; then
rows * width bytes. Blanks behind the JSON let the first number begin at a multiple of 64 bytes.

Not FAISS's own format: that one loads silently with a flipped byte, and says nothing of ids.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NotRequired

import numpy as np
from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import JsonObject, dumps
from semcache.errors import IndexCorrupt, StoreUnavailable
from semcache.files import write_aside
from semcache.ports import Vectors
from semcache.schemas import STRICT, Count, read
from semcache.stores.vectors.search_bounds import Choice, SearchBounds

_MAGIC = b"semcache-index 1 "
_FIRST = len(_MAGIC) + 64 + 1  # bytes of the first line


@with_config(STRICT)
class _Bounds(TypedDict):
    chosen: Count
    width: Annotated[int, Field(gt=2, lt=10_000)]


@with_config(STRICT)
class _Head(TypedDict):
    change: Count
    dimension: Annotated[int, Field(ge=0, lt=100_000)]
    ids: list[str]
    bounds: NotRequired[_Bounds]


_HEAD = TypeAdapter(_Head)


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index as it was saved."""

    ids: tuple[str, ...]
    vectors: Vectors
    """Row `i` belongs to `ids[i]`; not writable."""
    change: int
    """Number of the last change of the store that it holds."""
    leading: SearchBounds | None = None
    """What bounds the likeness of the rows; None where nobody had worked that out."""


def write_snapshot(
    path: Path,
    ids: Sequence[str],
    vectors: Vectors,
    *,
    change: int,
    leading: SearchBounds | None = None,
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
    numbers, codes = [vectors], np.zeros(0, np.uint8)
    if leading is not None:
        choice = leading.choice
        head["bounds"] = {"chosen": choice.rows, "width": len(choice.steps)}
        numbers += [choice.directions, choice.mean, choice.steps]
        codes = leading.codes(len(ids))
    said = dumps(head).encode()
    body = said + b" " * (-(_FIRST + len(said) + 1) % 64) + b"\n"
    parts = [memoryview(body)]
    parts += [memoryview(np.ascontiguousarray(rows, dtype="<f4").data) for rows in numbers]
    parts.append(memoryview(codes.data))
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
        content = path.read_bytes()
    except OSError as error:
        raise _corrupt(path, f"it cannot be read: {error}") from error
    start, _, _ = content[:256].partition(b"\n")
    if not start.startswith(_MAGIC):
        raise _corrupt(path, f"it begins with {start[:24]!r}, expected {_MAGIC!r}")
    body = memoryview(content)[len(start) + 1 :]  # the rows are too many to copy on the way
    if hashlib.sha256(body).hexdigest().encode() != start[len(_MAGIC) :]:
        raise _corrupt(path, "its checksum is not that of its content")
    end = content.find(b"\n", len(start) + 1)
    try:
        head = read(_HEAD, content[len(start) + 1 : max(end, 0)], what="its head")
        return _snapshot(head, memoryview(content)[end + 1 :])
    except ValueError as error:
        raise _corrupt(path, f"its content cannot be read: {error}") from error


def _snapshot(head: _Head, content: memoryview) -> SavedIndex:
    ids, dimension = head["ids"], head["dimension"]
    size = len(ids) * dimension
    rows = np.frombuffer(content, "<f4", size).reshape(len(ids), dimension)
    if not np.isfinite(rows).all():
        raise ValueError("a vector is not finite")
    if len(set(ids)) < len(ids):
        raise ValueError("an id is there twice")
    rest, bounds = content[4 * size :], head.get("bounds")
    if bounds is None and rest:
        raise ValueError(f"there are {len(rest)} bytes behind the rows")
    leading = None if bounds is None else _leading(bounds, rows, rest)
    return SavedIndex(tuple(ids), rows, head["change"], leading)


def _leading(bounds: _Bounds, rows: Vectors, content: memoryview) -> SearchBounds:
    (count, dimension), width = rows.shape, bounds["width"]
    some = width - 2
    numbers = np.frombuffer(content, "<f4", dimension * some + some + width)
    directions, mean, steps = np.split(numbers, (dimension * some, (dimension + 1) * some))
    choice = Choice(directions.reshape(dimension, some), mean, steps, bounds["chosen"])
    codes = np.frombuffer(content, np.uint8, offset=4 * len(numbers))
    return SearchBounds(choice, codes.reshape(count, width))


def _corrupt(path: Path, why: str) -> IndexCorrupt:
    return IndexCorrupt(
        f"the index snapshot {str(path)!r} cannot be trusted: {why}; "
        "delete it, and the index is rebuilt from the store"
    )
