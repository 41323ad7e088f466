"""What SQLite raises becomes an error of ours."""

import errno
import shutil
import sqlite3
from pathlib import Path
from types import TracebackType

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.process.forks import barrier

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
# A missing table or column is SQLITE_ERROR; our own statements have no errors to find.
_DAMAGED.add(sqlite3.SQLITE_ERROR)

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "another process or thread has it locked",
    sqlite3.SQLITE_LOCKED: "another process or thread has it locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not answer",
}

_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}

_LEAST = 64 * 1024
"""Bytes that SQLite needs to begin to write."""


class ErrorTranslation:
    """Turns what is raised inside into an error of ours. One serves all: it keeps no state.

    All that is done with SQLite is done inside one, so that is where forks are held back.
    """

    def __init__(self, directory: Path, *, text: str) -> None:
        """Keep what the errors name; `text`: what the texts are that are handed in."""
        self._directory = directory
        self._text = text

    def __enter__(self) -> None:
        barrier.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        barrier.leave()
        if isinstance(error, sqlite3.Error):
            raise failure(error, self._directory) from error
        if isinstance(error, UnicodeDecodeError):
            raise StoreCorrupt(
                f"the store {str(self._directory)!r} holds what is no text: {error}; restore it "
                "from a copy, or start anew with `DiskStore.open(directory, repair=True)`, in the "
                "shell `semcache doctor --repair`"
            ) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(
                f"{self._text} holds a lone surrogate at {error.start}; expected valid Unicode text"
            ) from error


def failure(error: sqlite3.Error, directory: Path) -> StoreError:
    """Return the error of ours that says what `error` means for the store in `directory`."""
    # Errors of Python's own module have no code: the connection is closed.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    name = repr(str(directory))
    if code in _DAMAGED:
        return corrupt(name, error)
    why = _UNAVAILABLE.get(code, "SQLite refuses")
    if code == sqlite3.SQLITE_IOERR and _is_full(directory):
        why = _UNAVAILABLE[sqlite3.SQLITE_FULL]  # there was no room for the index of its log
    return StoreUnavailable(
        f"the store {name} cannot be used: {why} ({error}); try again later",
        passing=code in _PASSING,
    )


def no_room(error: OSError) -> bool:
    """Return whether a file could not be written because the disk is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _is_full(directory: Path) -> bool:
    try:
        return shutil.disk_usage(directory).free < _LEAST
    except OSError:
        return False


def corrupt(name: str, what: object) -> StoreCorrupt:
    """Return what says that the database of the store `name` is damaged, and the way out."""
    return StoreCorrupt(
        f"the database of the store {name} is damaged: {what}; restore it from a copy, or "
        "start anew with `DiskStore.open(directory, repair=True)`, in the shell `semcache doctor "
        "--repair`, which keeps the old files"
    )
