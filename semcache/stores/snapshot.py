"""The file that keeps an index between two processes.

    semcache-index 1 <sha256 of everything after this line>
    {"change":…,"dimension":…,"ids":[…],"rows":…}
    rows * dimension little-endian float32

With bounds (`"bounds":{"chosen":…,"directions":…}`, see `leading`) their numbers follow, of the
same kind: dimension * directions, then rows * (directions + 1). Blanks behind the JSON let all of
them begin at a multiple of 64 bytes.

Not FAISS's own format: that one loads silently with a flipped byte, and says nothing of ids.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from semcache.canonical import Json, JsonObject, dumps, loads
from semcache.errors import IndexCorrupt, InvalidJson, StoreUnavailable
from semcache.ports import Vectors
from semcache.stores.files import write_aside
from semcache.stores.leading import Leading

_MAGIC = b"semcache-index 1 "
_FIRST = len(_MAGIC) + 64 + 1  # bytes of the first line


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was saved."""

    ids: tuple[str, ...]
    vectors: Vectors
    """Row `i` belongs to `ids[i]`; not writable."""
    change: int
    """Number of the last change of the store that it holds."""
    leading: Leading | None = None
    """What bounds the likeness of the rows; None where nobody had worked that out."""


def write_snapshot(
    path: Path,
    ids: Sequence[str],
    vectors: Vectors,
    *,
    change: int,
    leading: Leading | None = None,
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
    numbers = [vectors]
    if leading is not None:
        directions = leading.directions
        head["bounds"] = {"chosen": leading.chosen, "directions": directions.shape[1]}
        numbers += [directions, leading.short(len(ids))]
    said = dumps(head).encode()
    body = said + b" " * (-(_FIRST + len(said) + 1) % 64) + b"\n"
    parts = [memoryview(body)]
    parts += [memoryview(np.ascontiguousarray(rows, dtype="<f4").data) for rows in numbers]
    check = hashlib.sha256()
    for part in parts:
        check.update(part)
    try:
        write_aside(path, (_MAGIC + check.hexdigest().encode() + b"\n", *parts))
    except OSError as error:
        raise StoreUnavailable(
            f"the index snapshot {str(path)!r} cannot be written: {error}"
        ) from error


def read_snapshot(path: Path) -> Snapshot:
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
    end = content.index(b"\n", len(start) + 1)
    try:
        return _snapshot(loads(content[len(start) + 1 : end].decode()), content, end + 1)
    except (InvalidJson, ValueError) as error:
        raise _corrupt(path, f"its content cannot be read: {error}") from error


def _snapshot(head: Json, content: bytes, start: int) -> Snapshot:
    numbers = np.frombuffer(content, dtype="<f4", offset=start)
    match head:
        case {"change": int(change), "dimension": int(dimension), "ids": list(ids), **more}:
            size = len(ids) * dimension if "bounds" in more else len(numbers)
            rows = numbers[:size].reshape(len(ids), dimension)
            leading = _leading(more["bounds"], rows, numbers[size:]) if "bounds" in more else None
            return Snapshot(tuple(map(str, ids)), rows, change, leading)
        case _:
            raise ValueError("expected an object with `change`, `dimension` and `ids`")


def _leading(bounds: object, rows: Vectors, numbers: NDArray[np.float32]) -> Leading:
    match bounds:
        case {"chosen": int(chosen), "directions": int(count)}:
            size = rows.shape[1] * count
            directions = numbers[:size].reshape(rows.shape[1], count)
            return Leading(directions, numbers[size:].reshape(len(rows), count + 1), chosen)
        case _:
            raise ValueError("expected `bounds` with `chosen` and `directions`")


def _corrupt(path: Path, why: str) -> IndexCorrupt:
    return IndexCorrupt(
        f"the index snapshot {str(path)!r} cannot be trusted: {why}; "
        "delete it, and the index is rebuilt from the store"
    )
