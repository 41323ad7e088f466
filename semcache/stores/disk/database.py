"""Connections to the tables of a directory, one for each thread, and transactions on them."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from semcache.errors import StoreUnavailable
from semcache.process.forks import Forked, Lock, follow_forks, pauses
from semcache.stores.disk.directory import DATABASE
from semcache.stores.disk.failures import ErrorTranslation, failure
from semcache.stores.disk.tables import DiskSchema

T = TypeVar("T")
Connection = sqlite3.Connection

_PRAGMAS = (
    # A commit is one write to the log, and readers go on meanwhile. It survives the end of the
    # process; a power cut may take the last commits, but never a part of one.
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    # What is removed is overwritten: it may have to be gone, and not in a free page.
    "PRAGMA secure_delete = ON",
    "PRAGMA cache_size = -8192",  # KB, for each thread
    "PRAGMA mmap_size = 67108864",  # bytes; a page in memory already is not copied
)

_UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}
"""Why a file cannot be opened for writing that may still be read."""

_left: list[threading.local] = []
"""Connections of the parent in a forked child: SQLite forbids even to close them there."""

_log = logging.getLogger(__name__)

_State = tuple[bool, int, int, int]


class Database(Forked):
    """The tables of a directory. Safe from several threads; a forked child connects anew.

    What SQLite raises passes through; `failures` turns it into an error of ours.
    """

    def __init__(
        self, directory: Path, schema: DiskSchema, *, timeout_s: float, frozen: bool = False
    ) -> None:
        """Open the tables, made or brought up to date. `frozen`: not a byte is written.

        Where the disk is full or read-only they are read as they are, with one warning, until a
        write finds that it can be written again.
        """
        self._path = directory / DATABASE
        self._schema = schema
        self._timeout_s = timeout_s
        self._frozen = frozen
        self._turn = Lock(patience_s=timeout_s)
        self._local = threading.local()
        self._state: _State | None = None
        """What tells whether a file that is only read has changed; None where it is written."""
        if frozen:
            self._state = _state(self._path)
            self.connection()
        else:
            self._open()
        follow_forks(self)

    def _open(self) -> None:
        try:
            self._schema.migrate(self.connection(), where=repr(str(self._path.parent)))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
                raise
            self.close()
            self._state = _state(self._path)
            self.connection()
            _log.warning(
                "the store %r cannot be written (%s); it is served as it is, and nothing is kept "
                "until it can",
                str(self._path.parent),
                error,
            )

    def connection(self) -> Connection:
        """Return the connection of this thread, to read by."""
        made: tuple[_State | None, Connection] | None = getattr(self._local, "made", None)
        state = self._state
        if made is not None:
            if made[0] == state:
                return made[1]
            made[1].close()
        if state is None:
            connection = _writable(self._path, timeout_s=self._timeout_s)
        else:
            connection = _readable(self._path, timeout_s=self._timeout_s)
        self._local.made = (state, connection)
        return connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return `work(connection)`, all of which is one transaction, or nothing of it.

        Threads wait for their turn here, since SQLite's way of waiting is to sleep and look again.

        Raises:
            StoreUnavailable: other threads were writing all the time that there is to wait.
        """
        if self._state is not None:
            self._begin_writing()
        connection = self.connection()
        try:
            # On one line: an interrupt can fall between two lines, and here none is between the end
            # of the work and the end of the transaction, which the connection itself brings about.
            with self._turn, connection: return _transaction(connection, work)  # fmt: skip # noqa: E701
        except TimeoutError as error:
            raise StoreUnavailable(
                "another thread is writing to the store for too long; try again"
            ) from error

    def _begin_writing(self) -> None:
        """Go over to writing, if the disk can be written again."""
        with closing(_writable(self._path, timeout_s=self._timeout_s)) as connection:
            self._schema.migrate(connection, where=repr(str(self._path.parent)))
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        self._state = None

    def refresh(self) -> None:
        """Look whether somebody writes to what is only read here, and read on with care if so."""
        if self._state is not None:
            self._state = _state(self._path)  # connections of an earlier one are replaced when used

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        connection = self.connection()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connection of this thread; others' end with their threads."""
        made = getattr(self._local, "made", None)
        if made is not None:
            made[1].close()
        self._local = threading.local()

    def forked(self) -> None:
        """Connect anew in a forked child, and leave the connections to the parent."""
        _left.append(self._local)
        self._local = threading.local()


class DatabaseHandle:
    """A database that is opened by its first use. Safe from several threads."""

    def __init__(self, directory: Path, opened: Callable[[], Database], *, text: str) -> None:
        """Open nothing yet; `opened` does. `text`: what the texts are that are handed in."""
        self.directory = directory
        self.failing = ErrorTranslation(directory, text=text)
        """Turns what the database raises into errors of ours, in a `with`."""
        self._opened = opened
        self._opening = Lock()
        self._database: Database | None = None
        self.closed = False
        """Whether `close` was called."""

    def db(self) -> Database:
        """Return the database; the first call opens it.

        Raises:
            ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt: it cannot be opened.
        """
        if self.closed:
            raise StoreUnavailable(f"the store {str(self.directory)!r} is closed; open a new one")
        if self._database is not None:
            return self._database
        with self._opening, self.failing:
            if self._database is None:
                self._database = self._opened()
            return self._database

    def close(self) -> None:
        """Release this thread's connection; others' end with their threads. Twice is fine."""
        self.closed = True
        if self._database is not None:
            self._database.close()


def _transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    if connection.in_transaction:
        connection.rollback()  # of a call that was interrupted, and could not do it any more
    connection.execute("BEGIN IMMEDIATE")
    return work(connection)


def _writable(path: Path, *, timeout_s: float) -> Connection:
    connection = _connected(str(path), timeout_s=timeout_s)
    try:
        _keep_log(connection, timeout_s)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_log(connection: Connection, timeout_s: float) -> None:
    """Let the file have a log, so that readers need not wait for a writer.

    A file that has none is changed by whoever opens it first; SQLite does not wait for that.
    """
    until_s = time.monotonic() + timeout_s
    for pause_s in pauses():
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
            time.sleep(pause_s)
        else:
            return


def _readable(path: Path, *, timeout_s: float) -> Connection:
    """Return a connection that writes nothing: its directory may lie on a read-only mount.

    Where nobody else has the file open, SQLite is told that it does not change, since its log and
    the index of that would have to be made otherwise. Beside a writer both are there, and used.
    """
    how = "mode=ro" if _log_bytes(path) else "mode=ro&immutable=1"
    connection = _connected(uri(path, how), timeout_s=timeout_s, uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
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


def _connected(path: str, *, timeout_s: float, uri: bool = False) -> Connection:
    connection = sqlite3.connect(
        path, timeout=timeout_s, isolation_level=None, check_same_thread=False, uri=uri
    )
    # Bytes that are no text any more must not stop a read: the checksum tells of them.
    connection.text_factory = _text
    return connection


def uri(path: Path, how: str) -> str:
    """Return the URI that SQLite opens a file by, `how`: `mode=ro`."""
    return f"file:{quote(str(path))}?{how}"


def _text(content: bytes) -> str:
    return content.decode(errors="backslashreplace")


def damage(path: Path) -> str:
    """Return what is wrong with the database at `path`; empty if nothing. Cost: all of it."""
    try:
        with closing(_connected(uri(path, "mode=rw"), timeout_s=0.0, uri=True)) as connection:
            found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if isinstance(failure(error, path.parent), StoreUnavailable):
            raise
        return str(error)
    return "" if found == "ok" else found


def _log_bytes(path: Path) -> int:
    """Return the size of the log of a database; 0 where nobody writes to it."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except OSError:
        return 0


def _state(path: Path) -> _State:
    """Return what tells whether a database may be read as one that does not change."""
    try:
        found = path.stat()
    except OSError:
        return False, 0, 0, 0
    # Beside a writer SQLite itself looks what changed; the file changes when the log is merged.
    if _log_bytes(path):
        return True, found.st_ino, 0, 0
    return False, found.st_ino, found.st_mtime_ns, found.st_size
