"""Snapshots on disk: what was derived from a store, beside it.

<digest of name>.view    semcache-view 1 <sha256 of everything after this line>, then the content
<digest of name>.index   the vectors, as the index saves them
"""

import contextlib
import hashlib
import logging
from collections.abc import Collection
from pathlib import Path

from semcache.errors import IndexCorrupt, StoreUnavailable
from semcache.files import write_aside
from semcache.ports import Snapshot, VectorIndex
from semcache.stores.vectors.faiss_index import FaissIndex

VIEWS = "views"
"""Folder of them in the directory of a cache."""
_MAGIC = b"semcache-view 1 "

_log = logging.getLogger(__name__)


class SnapshotDirectory:
    """Snapshots in a folder, as `ports.Snapshots` promises; the first `save` makes the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, name: str, content: bytes, index: VectorIndex, *, change: int) -> str:
        """Keep both under `name`, in place of what was there; return the checksum of `content`.

        Raises:
            StoreUnavailable: the files cannot be written.
        """
        view, vectors = self._paths(name)
        checksum = hashlib.sha256(content).hexdigest()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            index.save(str(vectors), change=change)
            write_aside(view, (_MAGIC + checksum.encode() + b"\n", content))
        except OSError as error:
            raise StoreUnavailable(
                f"the snapshot {str(view)!r} cannot be written: {error}"
            ) from error
        return checksum

    def load(self, name: str, checksum: str) -> Snapshot | None:
        """Return what was kept under `name` with that checksum; None if it is not as it was."""
        view, vectors = self._paths(name)
        try:
            content = _checked(view, checksum)
            index, change = FaissIndex.load(str(vectors))
        except (OSError, IndexCorrupt) as error:
            _log.warning("%s; it is derived from the store again", error)
            return None
        return Snapshot(content, index, change)

    def discard(self, name: str | None) -> None:
        """Forget what is kept under `name`, or all (None); nothing there is fine."""
        with contextlib.suppress(OSError):  # nothing names it any more, so it is never read
            kept = [*self._folder.glob("*.view"), *self._folder.glob("*.index")]
            for path in kept if name is None else self._paths(name):
                path.unlink(missing_ok=True)

    def keep(self, names: Collection[str]) -> int:
        """Forget what is kept under other names, and what a crash left; return how many went."""
        paths = {path for name in names for path in self._paths(name)}
        gone = [path for path in self._folder.glob("*.*") if path not in paths]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)

    def _paths(self, name: str) -> tuple[Path, Path]:
        stem = hashlib.sha256(name.encode()).hexdigest()[:32]
        return self._folder / f"{stem}.view", self._folder / f"{stem}.index"


def _checked(path: Path, checksum: str) -> bytes:
    with path.open("rb") as file:
        start, content = file.readline(), file.read()
    if start != _MAGIC + checksum.encode() + b"\n":
        raise IndexCorrupt(f"the snapshot {str(path)!r} is not the one that the store names")
    if hashlib.sha256(content).hexdigest() != checksum:
        raise IndexCorrupt(f"the snapshot {str(path)!r} is not what was written")
    return content
