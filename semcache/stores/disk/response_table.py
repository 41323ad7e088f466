"""diskcache as an ordered table of text: its one place, and the one place that speaks SQL."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.forks import Forked, Lock, follow_forks
from semcache.stores.disk.failures import corrupt

RESPONSES = "cache.db"
"""The file of the table: the name that diskcache gives it."""

SETTINGS = {
    "eviction_policy": "none",  # every other one writes on each get, or deletes what it likes
    "cull_limit": 0,  # the store evicts by itself, and counts what it evicts
    "size_limit": 2**62,  # bytes; never reached, since nothing culls
    "statistics": 0,  # counting hits would make each get a write
    "tag_index": 0,
    "sqlite_cache_size": 2**11,  # pages of 4 KB, for each thread; 8 MB
}


class Reads:
    """Reads by key and by prefix, by what `_sql` runs.

    A prefix ends in `/`; the rows under it are those whose keys begin with it.
    Values come as bytes, since text with a flipped byte may not be text any more.
    """

    _sql: Callable[..., sqlite3.Cursor]
    """Runs a statement with its values on the connection of this thread."""

    def content(self, key: str) -> bytes | None:
        """Return the value of `key`, or None."""
        select = "SELECT CAST(value AS BLOB) FROM Cache WHERE key = ? AND raw = 1"
        row = self._sql(select, (key,)).fetchone()
        return None if row is None else row[0]

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
        for key, value in self._sql(select, (*bounds(prefix), limit)):
            yield key.decode(errors="replace"), value

    def last(self, prefix: str) -> str | None:
        """Return the last key under `prefix`, or None."""
        select = (
            "SELECT CAST(key AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? ORDER BY key DESC LIMIT 1"
        )
        row = self._sql(select, bounds(prefix)).fetchone()
        return None if row is None else row[0].decode(errors="replace")

    def count_under(self, prefix: str) -> int:
        """Return how many rows are under `prefix`. Cost: a look at each key."""
        select = "SELECT count(*) FROM Cache WHERE key > ? AND key < ? AND raw = 1"
        count: int = self._sql(select, bounds(prefix)).fetchone()[0]
        return count


def bounds(prefix: str) -> tuple[str, str]:
    """Return what the keys under `prefix` lie between."""
    return prefix, prefix[:-1] + "0"  # "0" is the character after "/"


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
class ResponseTable(Reads, Forked, diskcache.Cache):  # type: ignore[misc]
    """A diskcache of text under text, with the reads by prefix that diskcache lacks.

    What SQLite raises passes through; `failure` turns it into an error of ours.
    """

    def __init__(self, directory: Path, *, timeout_s: float) -> None:
        self._txn_id: int | None = None
        self._local: threading.local  # what diskcache keeps of each thread: its connection
        self._turn = Lock(patience_s=timeout_s)
        if os.path.expandvars(directory) != str(directory):
            raise InvalidInput(
                f"the directory {str(directory)!r} holds a variable that diskcache would replace; "
                "name one without `$`"
            )
        # diskcache waits up to 60 s for each statement of its opening and then says little, so
        # what is in the way of it is found out before.
        probe(directory / RESPONSES, timeout_s=timeout_s)
        super().__init__(str(directory), timeout=timeout_s, disk=TextDisk, **SETTINGS)
        follow_forks(self)

    def forked(self) -> None:
        """Connect anew in a forked child, and leave the connections to the parent."""
        _left.append(self._local)
        self._local = threading.local()
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
        try:
            if self._txn_id == threading.get_ident() and self._con.in_transaction:
                yield
            else:
                # On one line: no interrupt is between the turn and the end of the transaction,
                # which the connection itself brings about.
                with self._turn, self._con as connection: yield from self._begun(connection)  # fmt: skip # noqa: E501, E701
        except TimeoutError as error:
            raise StoreUnavailable(
                "another thread is writing to the store for too long; try again"
            ) from error

    def _begun(self, connection: sqlite3.Connection) -> Iterator[None]:
        if connection.in_transaction:
            connection.rollback()  # of a call that was interrupted, and could not do it any more
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._txn_id = threading.get_ident()  # makes `set` and `incr` join in
            yield
        finally:
            self._txn_id = None

    def point(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write many short rows, key and value, at half the cost of `set` for each."""
        insert = (
            "INSERT INTO Cache (key, raw, store_time, access_time, value) VALUES (?, 1, 0, 0, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET value = excluded.value"
        )
        self._con.executemany(insert, rows)

    def drop(self, *keys: str) -> int:
        """Forget those of `keys` that are there; return how many were."""
        delete = "DELETE FROM Cache WHERE key = ? AND raw = 1"
        dropped: int = self._con.executemany(delete, [(key,) for key in keys]).rowcount
        return dropped

    def drop_under(self, prefix: str) -> None:
        """Forget every row under `prefix`."""
        self._sql("DELETE FROM Cache WHERE key > ? AND key < ?", bounds(prefix))

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
            raise corrupt(repr(str(path.parent)), error) from error
        connection.execute("ROLLBACK")
    if found:
        raise corrupt(repr(str(path.parent)), found)


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
