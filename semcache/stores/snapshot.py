"""The file that keeps an index between two processes.

    semcache-index 1 <sha256 of everything after this line>
    {"change":…,"dimension":…,"ids":[…],"rows":…}
    rows * dimension little-endian float32

Not FAISS's own format: that one loads silently with a flipped byte, and says nothing of ids.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semcache.canonical import Json, dumps, loads
from semcache.errors import IndexCorrupt, InvalidJson, StoreUnavailable
from semcache.ports import Vectors
from semcache.stores.files import write_aside

_MAGIC = b"semcache-index 1 "


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was saved."""

    ids: tuple[str, ...]
    vectors: Vectors
    """Row `i` belongs to `ids[i]`; not writable."""
    change: int
    """Number of the last change of the store that it holds."""


def write_snapshot(path: Path, ids: Sequence[str], vectors: Vectors, *, change: int) -> None:
    """Write aside, sync, and rename to `path`: a crash leaves the old file or the new one.

    Raises:
        StoreUnavailable: the file cannot be written (read-only, full, no such directory).
    """
    dimension = int(vectors.shape[1])
    head: Json = {"change": change, "dimension": dimension, "ids": list(ids), "rows": len(ids)}
    body = dumps(head).encode() + b"\n"
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    check = hashlib.sha256(body)
    check.update(rows.data)
    try:
        write_aside(path, (_MAGIC + check.hexdigest().encode() + b"\n", body, rows.tobytes()))
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
    match head:
        case {"change": int(change), "dimension": int(dimension), "ids": list(ids)}:
            rows = np.frombuffer(content, dtype="<f4", offset=start)
            return Snapshot(tuple(map(str, ids)), rows.reshape(len(ids), dimension), change)
        case _:
            raise ValueError("expected an object with `change`, `dimension` and `ids`")


def _corrupt(path: Path, why: str) -> IndexCorrupt:
    return IndexCorrupt(
        f"the index snapshot {str(path)!r} cannot be trusted: {why}; "
        "delete it, and the index is rebuilt from the store"
    )
