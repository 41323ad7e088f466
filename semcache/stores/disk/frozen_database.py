"""A database that is only read: its directory may lie on a read-only mount.

Where nobody else has it open, SQLite is told that it does not change, since its log and the index
of that would have to be made otherwise. Where a writer is at work both are there, and are used.
"""

import sqlite3
import threading
from pathlib import Path
from urllib.parse import quote

from semcache.errors import StoreUnavailable
from semcache.forks import Forked, follow_forks
from semcache.stores.disk.directory import DATABASE
from semcache.stores.disk.reads import Reads


class FrozenDatabase(Reads, Forked):
    """The table of a `Database`, for reading alone. Safe from several threads."""

    def __init__(self, directory: Path, *, timeout_s: float) -> None:
        self._path = directory / DATABASE
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._state = _state(self._path)
        self._sql = self._run
        self._connection()
        follow_forks(self)

    def refresh(self) -> None:
        """Look whether somebody writes to it now, and read on with care if so."""
        state = _state(self._path)
        if state != self._state:
            self._state = state  # connections of an earlier one are replaced when next used

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._connection().execute(statement, values)

    def _connection(self) -> sqlite3.Connection:
        made: tuple[object, sqlite3.Connection] | None = getattr(self._local, "made", None)
        state = self._state
        if made is not None and made[0] == state:
            return made[1]
        if made is not None:
            made[1].close()
        connection = _opened(self._path, timeout_s=self._timeout_s)
        self._local.made = (state, connection)
        return connection

    def close(self) -> None:
        """Close the connection of this thread; others' end with their threads."""
        made = getattr(self._local, "made", None)
        if made is not None:
            made[1].close()
        self._local = threading.local()

    def forked(self) -> None:
        """Leave the connections to the parent."""
        _left.append(self._local)
        self._local = threading.local()


_left: list[threading.local] = []
"""Connections of the parent in a forked child: they must not even be closed there."""


def _opened(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    how = "mode=ro" if _log_bytes(path) else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=timeout_s, isolation_level=None
    )
    try:
        connection.execute("SELECT 1 FROM Cache LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if _log_bytes(path):
            raise StoreUnavailable(
                f"the store {str(path.parent)!r} has a log that was not merged, and cannot be read "
                f"where nothing may be written ({error}); open and close it once where it can be"
            ) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _log_bytes(path: Path) -> int:
    """Return the size of the log of a database; 0 where nobody writes to it."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except OSError:
        return 0


def _state(path: Path) -> tuple[bool, int, int, int]:
    """Return what tells whether a database may be read as one that does not change."""
    try:
        found = path.stat()
    except OSError:
        return False, 0, 0, 0
    # Beside a writer SQLite itself looks what changed; the file changes when the log is merged.
    if _log_bytes(path):
        return True, found.st_ino, 0, 0
    return False, found.st_ino, found.st_mtime_ns, found.st_size
