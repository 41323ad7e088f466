"""diskcache as an ordered table of text: its one place, and the one place that speaks SQL."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.stores.directory import DATABASE

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


_MOST_KEYS = 500  # of one statement; SQLite takes no more than 999 everywhere


# diskcache publishes no types
class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Keeps text in the database itself, and refuses everything else.

    diskcache would pickle what it does not know, and unpickle whatever it is handed: a directory
    that somebody else can write would run their code.
    """

    def put(self, key: object) -> tuple[str, bool]:
        """Return a key as the database has it."""
        if not isinstance(key, str):
            raise StoreError(f"a key of the store is {key!r}; expected text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return a key that the database has."""
        if not isinstance(key, str) or not raw:
            raise StoreCorrupt(f"a key of the store is {key!r}; expected text")
        return key

    def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:
        """Return size, mode, file name and value as the database has them."""
        if read or not isinstance(value, str):
            raise StoreError(f"the value of {key!r} is a {type(value).__name__}; expected text")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: object, _filename: object, value: object, _read: object) -> str:
        """Return a value that the database has."""
        if mode != diskcache.core.MODE_RAW or not isinstance(value, str):
            raise StoreCorrupt("a value of the store is not text: it is not ours")
        return value


# diskcache publishes no types
class Database(diskcache.Cache):  # type: ignore[misc]
    """A diskcache of text under text, with the reads by prefix that diskcache lacks.

    A prefix ends in `/`; the rows under it are those whose keys begin with it.
    Values come as bytes, since text with a flipped byte may not be text any more.
    What SQLite raises passes through; `failure` turns it into an error of ours.
    """

    def __init__(self, directory: Path, *, timeout_s: float) -> None:
        self._turn = threading.RLock()
        self._txn_id: int | None = None
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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Enter one transaction: everything written inside happens whole, or not at all.

        Not `diskcache.Cache.transact`: that hides why it cannot begin, and stays in a transaction
        that failed to commit. Threads wait for their turn here, since SQLite's way of waiting is
        to sleep and look again.
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

    def content(self, key: str) -> bytes | None:
        """Return the value of `key`, or None."""
        select = "SELECT CAST(value AS BLOB) FROM Cache WHERE key = ? AND raw = 1"
        row = self._sql(select, (key,)).fetchone()
        return None if row is None else row[0]

    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of those of `keys` that are there."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), _MOST_KEYS):
            some = keys[start : start + _MOST_KEYS]
            marks = ",".join("?" * len(some))
            where = f"WHERE raw = 1 AND key IN ({marks})"
            select = "SELECT key, CAST(value AS BLOB) FROM Cache " + where  # noqa: S608 - marks
            found.update(self._sql(select, some).fetchall())
        return found

    def two(self, first: str, second: str) -> tuple[bytes | None, bytes | None]:
        """Return the values of two keys, read at one moment, each None if it is not there."""
        select = "SELECT key, CAST(value AS BLOB) FROM Cache WHERE key IN (?, ?) AND raw = 1"
        found = dict(self._sql(select, (first, second)).fetchall())
        return found.get(first), found.get(second)

    def under(self, prefix: str, *, limit: int = -1) -> Iterator[tuple[str, bytes]]:
        """Yield key and value of the rows under `prefix`, by key; at most `limit` if not negative.

        A key that is not text any more comes with the damaged bytes replaced.
        """
        select = (
            "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key LIMIT ?"
        )
        for key, value in self._sql(select, (*_bounds(prefix), limit)):
            yield key.decode(errors="replace"), value

    def keys(self, prefix: str) -> list[str]:
        """Return the keys under `prefix`, sorted, without a look at their values."""
        select = (
            "SELECT CAST(key AS BLOB) FROM Cache WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
        )
        rows = self._sql(select, _bounds(prefix)).fetchall()
        return [key.decode(errors="replace") for (key,) in rows]

    def after(self, key: str, prefix: str) -> list[tuple[str, bytes]]:
        """Return key and value of the rows under `prefix` that come after `key`, by key."""
        select = (
            "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
        )
        rows = self._sql(select, (key, _bounds(prefix)[1])).fetchall()
        return [(found.decode(errors="replace"), value) for found, value in rows]

    def last(self, prefix: str) -> str | None:
        """Return the last key under `prefix`, or None."""
        select = (
            "SELECT CAST(key AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? ORDER BY key DESC LIMIT 1"
        )
        row = self._sql(select, _bounds(prefix)).fetchone()
        return None if row is None else row[0].decode(errors="replace")

    def pointed(self, prefix: str) -> list[tuple[str, bytes]]:
        """Return key and value of the rows whose keys are the values of the rows under `prefix`."""
        select = (
            "SELECT k.value, CAST(r.value AS BLOB) FROM Cache k CROSS JOIN Cache r"
            " ON r.key = k.value AND r.raw = 1 WHERE k.key > ? AND k.key < ? AND k.raw = 1"
        )
        found: list[tuple[str, bytes]] = self._sql(select, _bounds(prefix)).fetchall()
        return found

    def point(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write many short rows, key and value, at half the cost of `set` for each."""
        insert = (
            "INSERT INTO Cache (key, raw, store_time, access_time, value) VALUES (?, 1, 0, 0, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET value = excluded.value"
        )
        self._con.executemany(insert, rows)

    def count_under(self, prefix: str) -> int:
        """Return how many rows are under `prefix`. Cost: a look at each key."""
        select = "SELECT count(*) FROM Cache WHERE key > ? AND key < ? AND raw = 1"
        count: int = self._sql(select, _bounds(prefix)).fetchone()[0]
        return count

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
        self._sql("DELETE FROM Cache WHERE key > ? AND key < ?", _bounds(prefix))

    def drop_until(self, prefix: str, key: str) -> None:
        """Forget the rows under `prefix` up to `key` and with it."""
        self._sql("DELETE FROM Cache WHERE key > ? AND key <= ?", (prefix, key))

    def drop_pointers(self, prefix: str, value: str) -> None:
        """Forget the rows under `prefix` that have `value`. Cost: a look at all under `prefix`."""
        self._sql(
            "DELETE FROM Cache WHERE key > ? AND key < ? AND value = ?", (*_bounds(prefix), value)
        )


def _bounds(prefix: str) -> tuple[str, str]:
    return prefix, prefix[:-1] + "0"  # "0" is the character after "/"


def probe(path: Path, *, timeout_s: float) -> None:
    """Return if the database at `path` can be read and written; an empty file can.

    Raises:
        sqlite3.Error: it is locked, read-only, or not a database.
    """
    with closing(sqlite3.connect(path, timeout=timeout_s, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("ROLLBACK")


def damage(path: Path) -> str:
    """Return what is wrong with the database at `path`; empty if nothing. Cost: all of it."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            found: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if isinstance(failure(error, path.parent), StoreUnavailable):
            raise
        return str(error)
    return "" if found == "ok" else found


def failure(error: sqlite3.Error, directory: Path) -> StoreError:
    """Return the error of ours that says what `error` means for the store in `directory`."""
    # Errors of Python's own module have no code: the connection is closed.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    name = repr(str(directory))
    if code in _DAMAGED:
        return StoreCorrupt(
            f"the database of the store {name} is damaged: {error}; restore it from a copy, or "
            "start anew with `DiskStore.open(directory, repair=True)`, which keeps the old files"
        )
    why = _UNAVAILABLE.get(code, "SQLite refuses")
    return StoreUnavailable(f"the store {name} cannot be used: {why} ({error}); try again later")
