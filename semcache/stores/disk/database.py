"""diskcache as an ordered table of text: its one place, and the one place that speaks SQL."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.forks import Forked, follow_forks
from semcache.stores.disk.directory import DATABASE
from semcache.stores.disk.reads import Reads, bounds

SETTINGS = {
    "eviction_policy": "none",  # every other one writes on each get, or deletes what it likes
    "cull_limit": 0,  # the store evicts by itself, and counts what it evicts
    "size_limit": 2**62,  # bytes; never reached, since nothing culls
    "statistics": 0,  # counting hits would make each get a write
    "tag_index": 0,
    "sqlite_cache_size": 2**11,  # pages of 4 KB, for each thread; 8 MB
}

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


# diskcache publishes no types
class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Keeps text in the database itself, and refuses everything else.

    diskcache would pickle what it does not know, and unpickle whatever it is handed: a directory
    that somebody else can write would run their code.
    """

    def put(self, key: object) -> tuple[str, bool]:
        """Return a key as the database has it.

        Raises:
            StoreError: it is no text.
        """
        if not isinstance(key, str):
            raise StoreError(f"a key of the store is {key!r}; expected text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return a key that the database has.

        Raises:
            StoreCorrupt: it is no text, so it is not ours.
        """
        if not isinstance(key, str) or not raw:
            raise StoreCorrupt(f"a key of the store is {key!r}; expected text")
        return key

    def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:
        """Return size, mode, file name and value as the database has them.

        Raises:
            StoreError: the value is no text.
        """
        if read or not isinstance(value, str):
            raise StoreError(f"the value of {key!r} is a {type(value).__name__}; expected text")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: object, _filename: object, value: object, _read: object) -> str:
        """Return a value that the database has.

        Raises:
            StoreCorrupt: it is no text, so it is not ours.
        """
        if mode != diskcache.core.MODE_RAW or not isinstance(value, str):
            raise StoreCorrupt("a value of the store is not text: it is not ours")
        return value


_left: list[threading.local] = []
"""Connections of the parent in a forked child: SQLite forbids even to close them there."""


# diskcache publishes no types
class Database(Reads, Forked, diskcache.Cache):  # type: ignore[misc]
    """A diskcache of text under text, with the reads by prefix that diskcache lacks.

    What SQLite raises passes through; `failure` turns it into an error of ours.
    """

    def __init__(self, directory: Path, *, timeout_s: float) -> None:
        self._turn = threading.RLock()
        self._txn_id: int | None = None
        self._local: threading.local  # what diskcache keeps of each thread: its connection
        self._timeout_s = timeout_s
        if os.path.expandvars(directory) != str(directory):
            raise InvalidInput(
                f"the directory {str(directory)!r} holds a variable that diskcache would replace; "
                "name one without `$`"
            )
        # diskcache waits up to 60 s for each statement of its opening and then says little, so
        # what is in the way of it is found out before.
        probe(directory / DATABASE, timeout_s=timeout_s)
        super().__init__(str(directory), timeout=timeout_s, disk=TextDisk, **SETTINGS)
        follow_forks(self)

    def forked(self) -> None:
        """Connect anew in a forked child, and leave the connections to the parent."""
        _left.append(self._local)
        self._local = threading.local()
        self._turn = threading.RLock()
        self._txn_id = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Enter one transaction: everything written inside happens whole, or not at all.

        Not `diskcache.Cache.transact`: that hides why it cannot begin, and stays in a transaction
        that failed to commit. Threads wait for their turn here, since SQLite's way of waiting is
        to sleep and look again.

        Raises:
            StoreUnavailable: other threads were writing all the time that there is to wait.
        """
        if not self._turn.acquire(timeout=self._timeout_s):
            raise StoreUnavailable("another thread is writing to the store for too long; try again")
        try:
            if self._txn_id == threading.get_ident():
                yield
            else:
                with self._transaction():
                    yield
        finally:
            self._turn.release()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        connection = self._con
        connection.execute("BEGIN IMMEDIATE")
        self._txn_id = threading.get_ident()  # makes `set` and `incr` join in
        try:
            yield
            connection.execute("COMMIT")
        finally:
            self._txn_id = None
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def point(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write many short rows, key and value, at half the cost of `set` for each."""
        insert = (
            "INSERT INTO Cache (key, raw, store_time, access_time, value) VALUES (?, 1, 0, 0, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET value = excluded.value"
        )
        self._con.executemany(insert, rows)

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        self._con.execute("VACUUM")
        self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def drop(self, *keys: str) -> int:
        """Forget those of `keys` that are there; return how many were."""
        delete = "DELETE FROM Cache WHERE key = ? AND raw = 1"
        dropped: int = self._con.executemany(delete, [(key,) for key in keys]).rowcount
        return dropped

    def drop_under(self, prefix: str) -> None:
        """Forget every row under `prefix`."""
        self._sql("DELETE FROM Cache WHERE key > ? AND key < ?", bounds(prefix))

    def drop_until(self, prefix: str, key: str) -> None:
        """Forget the rows under `prefix` up to `key` and with it."""
        self._sql("DELETE FROM Cache WHERE key > ? AND key <= ?", (prefix, key))

    def drop_pointers(self, prefix: str, value: str) -> None:
        """Forget the rows under `prefix` that have `value`. Cost: a look at all under `prefix`."""
        self._sql(
            "DELETE FROM Cache WHERE key > ? AND key < ? AND value = ?", (*bounds(prefix), value)
        )


def probe(path: Path, *, timeout_s: float) -> None:
    """Return if the database at `path` can be read and written; an empty file can.

    Raises:
        sqlite3.Error: it is locked, read-only, or not a database.
        StoreCorrupt: what diskcache keeps in it is not what diskcache writes.
    """
    with closing(sqlite3.connect(path, timeout=timeout_s, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _foreign_settings(connection)
        except UnicodeDecodeError as error:  # a damaged name in what SQLite says is wrong
            raise _corrupt(repr(str(path.parent)), error) from error
        connection.execute("ROLLBACK")
    if found:
        raise _corrupt(repr(str(path.parent)), found)


def _foreign_settings(connection: sqlite3.Connection) -> str:
    """Return which setting of diskcache is damaged; empty if none. It would stumble over one."""
    tables = "SELECT count(*) FROM sqlite_master WHERE name = 'Settings'"
    if not connection.execute(tables).fetchone()[0]:
        return ""
    known = {*diskcache.DEFAULT_SETTINGS, *diskcache.core.METADATA}
    for (key,) in connection.execute("SELECT CAST(key AS BLOB) FROM Settings"):
        name = b"" if key is None else key
        if name.decode(errors="replace") not in known:
            return f"it has a setting {name!r}"
    return ""


def damage(path: Path) -> str:
    """Return what is wrong with the database at `path`; empty if nothing. Cost: all of it."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            found = _foreign_settings(connection) if found == "ok" else found
    except UnicodeDecodeError as error:
        return str(error)
    except sqlite3.DatabaseError as error:
        if isinstance(failure(error, path.parent), StoreUnavailable):
            raise
        return str(error)
    return found


def failure(error: sqlite3.Error, directory: Path) -> StoreError:
    """Return the error of ours that says what `error` means for the store in `directory`."""
    # Errors of Python's own module have no code: the connection is closed.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    name = repr(str(directory))
    if code in _DAMAGED:
        return _corrupt(name, error)
    why = _UNAVAILABLE.get(code, "SQLite refuses")
    return StoreUnavailable(f"the store {name} cannot be used: {why} ({error}); try again later")


def _corrupt(name: str, what: object) -> StoreCorrupt:
    return StoreCorrupt(
        f"the database of the store {name} is damaged: {what}; restore it from a copy, or "
        "start anew with `DiskStore.open(directory, repair=True)`, in the shell `semcache doctor "
        "--repair`, which keeps the old files"
    )
