"""Responses of models on disk, for the threads and processes that share a directory."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

from semcache.errors import StoreError
from semcache.ports import Room
from semcache.process.forks import Lock
from semcache.stores.cipher import Cipher
from semcache.stores.disk.database import Database, DatabaseHandle
from semcache.stores.disk.directory import VERSION, claim
from semcache.stores.disk.tables import RESPONSES
from semcache.stores.disk.takeover import take_over
from semcache.stores.memory_responses import alive
from semcache.stores.records import seal, unseal

T = TypeVar("T")

BUSY_TIMEOUT_S = 1.0  # seconds to wait for another writer: longer than that, asking is as good
LATE = 1 / 20  # of the ttl; a use that is written later could let the entry die for others
KEPT_USES = 4096  # uses not yet written; more would make the next write slow

_MOST_USES = 2**62  # no use has a greater number, unless the number is damaged

_IS_ROOM = (
    "typeof(entries) = 'integer' AND typeof(bytes) = 'integer' AND entries >= 0 AND bytes >= 0"
)
_COUNT_ANEW = (
    "UPDATE room SET entries = (SELECT count(*) FROM responses),"
    " bytes = (SELECT coalesce(sum(bytes), 0) FROM responses)"
)

_log = logging.getLogger(__name__)


class DiskResponses:
    """Texts on disk, as `ports.ResponseStore` promises. Nothing is opened before the first use.

    A hit writes nothing: uses are noted in memory and written with the next `set`, or at once when
    the entry would look old to other processes. In one process the order of eviction is exact.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        cipher: Cipher | None = None,
    ) -> None:
        """Keep what is asked for; `cipher` encrypts keys, groups and texts, None nothing."""
        self.directory = Path(directory).absolute()
        """Where it is kept; not the directory of a `DiskStore`."""
        self._busy_timeout_s = busy_timeout_s
        self._handle = DatabaseHandle(self.directory, self._open, text="a response or its key")
        self._cipher = cipher
        self._noting = Lock()
        self._uses: dict[str, float] = {}
        """Epoch seconds of uses that are not written yet, the latest last."""

    def _open(self) -> Database:
        if claim(self.directory) < VERSION:
            take_over(self.directory, RESPONSES, timeout_s=self._busy_timeout_s)
        return Database(self.directory, RESPONSES, timeout_s=self._busy_timeout_s)

    def get(self, key: str, *, now_s: float) -> str | None:
        """Return the living text and make it the one used last, its age beginning anew; or None.

        Raises:
            StoreUnavailable, StoreCorrupt: the directory cannot be read.
        """
        name = self._name(key)
        row = self._one("SELECT sealed, used_s, ttl_s FROM responses WHERE key = ?", name)
        if row is None:
            return None
        sealed, used_s, ttl_s = row
        text = self._opened(name, sealed) if _is_age(used_s, ttl_s) else None
        if text is None:
            _log.warning("a response in %s is not what was written; dropped", self.directory)
        elif alive(self._used_s(name, used_s, now_s), ttl_s, now_s):
            self._note(name, used_s, ttl_s, now_s)
            return text
        # Where even that cannot be written it stays, and is found dead again.
        with suppress(StoreError):
            self._write(lambda connection: _drop(connection, [name]))
        return None

    def has(self, key: str, *, now_s: float) -> bool:
        """Return whether there is a living text under `key`; that is no use of it."""
        name = self._name(key)
        row = self._one("SELECT used_s, ttl_s FROM responses WHERE key = ?", name)
        if row is None or not _is_age(*row):
            return False
        return alive(self._used_s(name, row[0], now_s), row[1], now_s)

    def set(
        self, key: str, text: str, *, group: str, ttl_s: float | None, now_s: float, limit: Room
    ) -> int:
        """Keep `text`, replacing what was there; return how many others made room for it."""
        with self._handle.failing:
            size = len(text.encode())
            name, group = self._name(key), self._group(group)

        def work(connection: Connection) -> int:
            _drop(connection, [name])
            if size > limit.bytes or limit.entries < 1:
                return 0
            sealed = seal(_head(name) + self._closed(name, text))
            connection.execute(
                'INSERT INTO responses (key, "group", used, used_s, ttl_s, bytes, sealed)'
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name, group, _last_use(connection) + 1, now_s, ttl_s, size, sealed),
            )
            return _evict(connection, limit, beside=name)

        return self._write(work)

    def remove(self, keys: Sequence[str]) -> int:
        """Forget texts; return how many were there."""
        names = [self._name(key) for key in keys]
        return self._write(lambda connection: _drop(connection, names))

    def keys(self, *, group: str | None = None) -> Sequence[str]:
        """Return the keys of `group`, or all (None), sorted; those no longer alive too."""
        where, which = ("", ()) if group is None else (' WHERE "group" = ?', (self._group(group),))
        query = f"SELECT key FROM responses{where}"  # noqa: S608 - a text of ours
        found = [key for (key,) in self._read(lambda c: c.execute(query, which).fetchall())]
        return sorted(found if self._cipher is None else self._keys_of(found, self._cipher))

    def room(self) -> Room:
        """Return how much is kept; what is no longer alive counts until it is found or goes."""
        return self._read(_room)

    def clear(self) -> int:
        """Forget everything; return how many texts there were."""
        return self._write(_clear)

    def close(self) -> None:
        """Write the uses and release this thread's connection; calling it twice is fine."""
        if self._uses and not self._handle.closed:
            self._write_uses()
        self._handle.close()

    # The database ----------------------------------------------------------------------------

    def _one(self, query: str, name: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._read(lambda c: c.execute(query, (name,)).fetchone())
        return row

    def _read(self, work: Callable[[Connection], T]) -> T:
        with self._handle.failing:
            db = self._handle.db()
            db.refresh()
            return work(db.connection())

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Return `work(connection)`, in one transaction that begins with the uses noted so far."""

        def after_uses(connection: Connection) -> T:
            with self._noting:
                uses, self._uses = self._uses, {}
            connection.execute(f"{_COUNT_ANEW} WHERE NOT ({_IS_ROOM})")
            last = _last_use(connection) if uses else 0
            connection.executemany(
                "UPDATE responses SET used = ?, used_s = max(used_s, ?) WHERE key = ?",
                [(use, used_s, key) for use, (key, used_s) in enumerate(uses.items(), last + 1)],
            )
            return work(connection)

        with self._handle.failing:
            return self._handle.db().write(after_uses)

    def _write_uses(self) -> None:
        with suppress(StoreError):  # a hit that cannot be noted is still one
            self._write(lambda _: None)

    def _used_s(self, name: str, used_s: float, now_s: float) -> float:
        """Return when it was used last: of what is written and what is noted, the nearer to now.

        The later one may be of a clock that was set back since.
        """
        with self._noting:
            noted = self._uses.get(name, used_s)
        return min(used_s, noted, key=lambda at_s: abs(now_s - at_s))

    def _note(self, name: str, used_s: float, ttl_s: float | None, now_s: float) -> None:
        with self._noting:
            self._uses.pop(name, None)
            self._uses[name] = now_s
            many = len(self._uses) > KEPT_USES
        if many or (ttl_s is not None and abs(now_s - used_s) > ttl_s * LATE):
            self._write_uses()

    # The cipher ------------------------------------------------------------------------------

    def _name(self, key: str) -> str:
        return key if self._cipher is None else self._cipher.name("response", key)

    def _group(self, group: str) -> str:
        plain = self._cipher is None or not group
        return group if plain or self._cipher is None else self._cipher.digest("group", group)

    def _closed(self, name: str, text: str) -> str:
        return text if self._cipher is None else self._cipher.encrypt(text, name)

    def _opened(self, name: str, sealed: object) -> str | None:
        """Return the text that was sealed for `name`, or None if this is not it."""
        head = _head(name)
        try:
            text = unseal(sealed.encode() if isinstance(sealed, str) else b"")
            if not text.startswith(head):
                return None
            text = text[len(head) :]
            return text if self._cipher is None else self._cipher.decrypt(text, name)
        except ValueError:
            return None

    def _keys_of(self, names: Iterable[str], cipher: Cipher) -> Iterator[str]:
        for name in names:
            try:
                yield cipher.named("response", name)
            except ValueError:  # written with another key, or with none
                _log.warning("a response in %s was written with another key", self.directory)


def _head(name: str) -> str:
    """Return what stands before a text: no other key has a head that begins like it."""
    return f"{len(name)} {name}\n"


def _is_age(used_s: object, ttl_s: object) -> bool:
    return isinstance(used_s, float) and isinstance(ttl_s, float | None)


def _room(connection: Connection) -> Room:
    kept = f"SELECT entries, bytes FROM room WHERE {_IS_ROOM}"  # noqa: S608 - texts of ours
    counted = "SELECT count(*), coalesce(sum(bytes), 0) FROM responses"
    return Room(*(connection.execute(kept).fetchone() or connection.execute(counted).fetchone()))


def _drop(connection: Connection, names: Sequence[str]) -> int:
    delete = "DELETE FROM responses WHERE key = ?"
    return connection.executemany(delete, [(name,) for name in names]).rowcount


def _clear(connection: Connection) -> int:
    count = connection.execute("DELETE FROM responses").rowcount
    connection.execute(_COUNT_ANEW)
    return count


def _last_use(connection: Connection) -> int:
    (last,) = connection.execute("SELECT max(used) FROM responses").fetchone()
    if last is None or (isinstance(last, int) and last < _MOST_USES):
        return last or 0
    _log.warning("a use of a response is numbered %r: damaged, and all are dropped", last)
    _clear(connection)
    return 0


def _evict(connection: Connection, limit: Room, *, beside: str) -> int:
    """Drop those used longest ago until all is within `limit`; return how many went."""
    oldest = "SELECT rowid FROM responses WHERE key != ? ORDER BY used LIMIT 1"
    evicted = 0
    while (kept := _room(connection)).entries > limit.entries or kept.bytes > limit.bytes:
        row = connection.execute(oldest, (beside,)).fetchone()
        if row is None:  # what is kept was counted wrong
            connection.execute(_COUNT_ANEW)
            break
        connection.execute("DELETE FROM responses WHERE rowid = ?", row)
        evicted += 1
    return evicted
