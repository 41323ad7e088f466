"""A journal beside a store: small texts that must not be lost while the store cannot be written.

<folder>/<name>     a text, sealed (and encrypted, where the store is)
<folder>/reserve    room that is given up when the disk is full, so that a text still has a place

A file for each text, since processes that share the folder then need no lock of each other.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path

from semcache.errors import StoreUnavailable
from semcache.files import write_aside
from semcache.stores.cipher import Cipher
from semcache.stores.disk.failures import no_room
from semcache.stores.records import seal, unseal

CORRECTIONS = "corrections"
"""Folder of it in the directory of a cache."""
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
