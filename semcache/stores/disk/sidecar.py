"""Beside the database of a store: corrections that wait for it, and views derived from it.

    corrections/<name>     a text that must not be lost while the store cannot be written, sealed
                           (and encrypted, where the store is)
    corrections/reserve    room that is given up when the disk is full, so that a text has a place
    views/<digest>.view    semcache-view 1 <sha256 of what follows this line>, then the content
    views/<digest>.index   the vectors of the view, as the index saves them

A file for each text, since processes that share the folder then need no lock of each other.
"""

import hashlib
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from semcache.errors import IndexCorrupt, StoreUnavailable
from semcache.files import write_aside
from semcache.ports import Snapshot, VectorIndex
from semcache.stores.cipher import Cipher
from semcache.stores.disk.failures import no_room
from semcache.stores.records import seal, unseal
from semcache.stores.vectors.faiss_index import FaissIndex

CORRECTIONS, VIEWS = "corrections", "views"
"""Folders of the journal and of the snapshots in the directory of a cache."""
_MAGIC = b"semcache-view 1 "
_RESERVE = "reserve"
_ROOM = 64 * 1024
"""Bytes of the reserve: a disk hands out 4 KB at once, and a text needs a file beside its own."""

_log = logging.getLogger(__name__)


class FileJournal:
    """Texts under names, as `ports.Journal` promises; the first `keep` or `reserve` makes it."""

    def __init__(self, folder: Path, *, cipher: Cipher | None = None) -> None:
        self._folder = folder
        self._cipher = cipher

    def reserve(self) -> None:
        """Have room for texts on a disk that is full; where there is none, go without."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self._folder / _RESERVE).exists():
                # Random, so that no file system takes it for a hole or for something it has.
                write_aside(self._folder / _RESERVE, [os.urandom(_ROOM)])

    def keep(self, name: str, text: str) -> None:
        """Keep `text` under `name`; it is on the disk when this returns.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        shown = text if self._cipher is None else self._cipher.encrypt(text, name)
        content = seal(shown).encode()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                write_aside(self._folder / name, [content])
            except OSError as error:
                if not no_room(error):
                    raise
                (self._folder / _RESERVE).unlink()
                write_aside(self._folder / name, [content])
        except OSError as error:
            raise StoreUnavailable(
                f"nothing can be kept in {str(self._folder)!r} either: {error}"
            ) from error

    def texts(self) -> dict[str, str]:
        """Return the texts by name; one that is not what was written is left out with a warning."""
        found: dict[str, str] = {}
        try:
            paths = sorted(path for path in self._folder.iterdir() if "." not in path.name)
        except OSError:
            return {}
        for path in paths:
            if path.name == _RESERVE:
                continue
            try:
                text = unseal(path.read_bytes())
                found[path.name] = (
                    text if self._cipher is None else self._cipher.decrypt(text, path.name)
                )
            except (OSError, ValueError) as error:
                _log.warning("the correction in %s cannot be read: %s", path, error)
        return found

    def drop(self, name: str) -> None:
        """Forget the text under `name`; one that stays is applied once more, which does no harm."""
        with suppress(OSError):
            (self._folder / name).unlink()


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
        with suppress(OSError):  # nothing names it any more, so it is never read
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
