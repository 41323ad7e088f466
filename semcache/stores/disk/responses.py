"""Responses of models on disk, for the threads and processes that share a directory.

Rows, all of them text, in a diskcache that never pickles:

    e/<key>       the text, sealed, below the key that it belongs to
    a/<key>       its age: [number of its last use, epoch seconds of that, ttl, bytes, group]
    u/<number>    the key whose last use has this number: the order of eviction
    s/room        [entries, bytes] of all texts
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.errors import StoreError
from semcache.forks import Lock
from semcache.ports import Room
from semcache.stores.cipher import Cipher
from semcache.stores.disk.directory import FIRST, claim
from semcache.stores.disk.handle import DatabaseHandle
from semcache.stores.memory_responses import alive
from semcache.stores.records import seal, unseal

if TYPE_CHECKING:
    from semcache.stores.disk.response_table import ResponseTable

BUSY_TIMEOUT_S = 1.0  # seconds to wait for another writer: longer than that, asking is as good
LATE = 1 / 20  # of the ttl; a use that is written later could let the entry die for others
KEPT_USES = 4096  # uses not yet written; more would make the next write slow

_ROOM = "s/room"
_KINDS = ("e/", "a/", "u/", "s/")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Age:
    use: int
    used_s: float
    ttl_s: float | None
    bytes: int
    group: str

    def at(self, used_s: float) -> "_Age":
        return replace(self, used_s=used_s)

    def written(self, use: int) -> str:
        return json.dumps([use, self.used_s, self.ttl_s, self.bytes, self.group])


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
        self._opened = DatabaseHandle(self.directory, self._open, text="a response or its key")
        self._cipher = cipher
        self._noting = Lock()
        self._uses: dict[str, float] = {}
        """Epoch seconds of uses that are not written yet, the latest last."""

    def _open(self) -> "ResponseTable":
        from semcache.stores.disk.response_table import (  # noqa: PLC0415 - imports diskcache
            RESPONSES,
            ResponseTable,
        )

        claim(self.directory, RESPONSES, version=FIRST)
        return ResponseTable(self.directory, timeout_s=self._busy_timeout_s)

    def get(self, key: str, *, now_s: float) -> str | None:
        """Return the living text and make it the one used last, its age beginning anew; or None.

        Raises:
            StoreUnavailable, StoreCorrupt: the directory cannot be read.
        """
        key = self._name(key)
        with self._opened.failing:
            sealed, content = self._opened.db().two(f"e/{key}", f"a/{key}")
        if sealed is None:
            return None
        age = _age(content)
        text = self._read(key, sealed) if age is not None else None
        if text is None or age is None:
            _log.warning("a response in %s is not what was written; dropped", self.directory)
        elif alive(self._used_s(key, age, now_s), age.ttl_s, now_s):
            self._note(key, age, now_s)
            return text
        # Where even that cannot be written it stays, and is found dead again.
        with suppress(StoreError):
            self._remove([key])
        return None

    def has(self, key: str, *, now_s: float) -> bool:
        """Return whether there is a living text under `key`; that is no use of it."""
        key = self._name(key)
        with self._opened.failing:
            age = _age(self._opened.db().content(f"a/{key}"))
        return age is not None and alive(self._used_s(key, age, now_s), age.ttl_s, now_s)

    def set(
        self, key: str, text: str, *, group: str, ttl_s: float | None, now_s: float, limit: Room
    ) -> int:
        """Keep `text`, replacing what was there; return how many others made room for it."""
        with self._opened.failing:
            size = len(text.encode())
            key, group = self._name(key), self._group(group)
        with self._writing() as ledger:
            ledger.drop(key)
            if size > limit.bytes or limit.entries < 1:
                return 0
            ledger.add(key, self._written(key, text), _Age(0, now_s, ttl_s, size, group))
            return ledger.evict(limit, beside=key)

    def remove(self, keys: Sequence[str]) -> int:
        """Forget texts; return how many were there."""
        return self._remove([self._name(key) for key in keys])

    def _remove(self, keys: Sequence[str]) -> int:
        with self._writing() as ledger:
            return sum(ledger.drop(key) for key in keys)

    def keys(self, *, group: str | None = None) -> Sequence[str]:
        """Return the keys of `group`, or all (None), sorted; those no longer alive too."""
        with self._opened.failing:
            rows = list(self._opened.db().under("a/"))
        ages = ((row[2:], _age(value)) for row, value in rows)
        wanted = None if group is None else self._group(group)
        found = [k for k, age in ages if wanted is None or (age and age.group == wanted)]
        return sorted(found if self._cipher is None else self._keys_of(found, self._cipher))

    def room(self) -> Room:
        """Return how much is kept; what is no longer alive counts until it is found or goes."""
        with self._opened.failing:
            return _room(self._opened.db())

    def clear(self) -> int:
        """Forget everything; return how many texts there were."""
        with self._writing() as ledger:
            return ledger.clear()

    def close(self) -> None:
        """Write the uses and release this thread's connection; calling it twice is fine."""
        if self._uses and not self._opened.closed:
            with suppress(StoreError), self._writing():
                pass
        self._opened.close()

    # What a cipher makes of it ---------------------------------------------------------------

    def _name(self, key: str) -> str:
        return key if self._cipher is None else self._cipher.name("response", key)

    def _group(self, group: str) -> str:
        plain = self._cipher is None or not group
        return group if plain or self._cipher is None else self._cipher.digest("group", group)

    def _written(self, name: str, text: str) -> str:
        return text if self._cipher is None else self._cipher.encrypt(text, name)

    def _read(self, name: str, sealed: bytes) -> str | None:
        text = _text(name, sealed)
        if self._cipher is None or text is None:
            return text
        try:
            return self._cipher.decrypt(text, name)
        except ValueError:
            return None

    def _keys_of(self, names: Iterable[str], cipher: Cipher) -> Iterator[str]:
        for name in names:
            try:
                yield cipher.named("response", name)
            except ValueError:  # written with another key, or with none
                _log.warning("a response in %s was written with another key", self.directory)

    def _used_s(self, key: str, age: _Age, now_s: float) -> float:
        """Return when it was used last: of what is written and what is noted, the nearer to now.

        The later one may be of a clock that was set back since.
        """
        with self._noting:
            noted = self._uses.get(key, age.used_s)
        return min(age.used_s, noted, key=lambda used_s: abs(now_s - used_s))

    def _note(self, key: str, age: _Age, now_s: float) -> None:
        with self._noting:
            self._uses.pop(key, None)
            self._uses[key] = now_s
            many = len(self._uses) > KEPT_USES
        if many or (age.ttl_s is not None and abs(now_s - age.used_s) > age.ttl_s * LATE):
            with suppress(StoreError), self._writing():  # a hit that cannot be noted is still one
                pass

    @contextmanager
    def _writing(self) -> "Iterator[_Ledger]":
        """Enter one transaction that begins with the uses noted so far."""
        with self._opened.failing, self._opened.db().writing():
            ledger = _Ledger(self._opened.db())
            with self._noting:
                uses, self._uses = self._uses, {}
            ledger.use(uses)
            yield ledger
            ledger.save()


class _Ledger:
    """The rows as one transaction changes them, and what they amount to."""

    def __init__(self, db: "ResponseTable") -> None:
        self._db = db
        self._set_room(_room(db))
        self._last = self._last_use()

    def use(self, uses: Mapping[str, float]) -> None:
        """Make the keys of `uses` those used last, at those epoch seconds, if still there."""
        found = [(key, _age(self._db.content(f"a/{key}"))) for key in uses]
        there = [(key, age) for key, age in found if age is not None]
        self._db.drop(*(_use_row(age.use) for _, age in there))
        self._point((key, age.at(max(age.used_s, uses[key]))) for key, age in there)

    def add(self, key: str, text: str, age: _Age) -> None:
        self._db.point([(f"e/{key}", seal(_head(key) + text))])
        self._point([(key, age)])
        self._entries += 1
        self._bytes += age.bytes

    def drop(self, key: str) -> bool:
        content, sealed = self._db.content(f"a/{key}"), self._db.content(f"e/{key}")
        age = _age(content)
        self._db.drop(f"e/{key}", f"a/{key}")
        if age is not None:
            self._db.drop(_use_row(age.use))
            self._entries -= 1
            self._bytes -= age.bytes
        elif content is not None or sealed is not None:
            self._db.drop_pointers("u/", key)
            self._set_room(_counted(self._db))
        return content is not None or sealed is not None

    def evict(self, limit: Room, *, beside: str) -> int:
        """Drop those used longest ago until all is within `limit`; return how many went."""
        evicted = 0
        while self._over(limit):
            rows = self._db.under("u/", limit=64)
            oldest = [(row, value.decode(errors="replace")) for row, value in rows]
            if not any(key != beside for _, key in oldest):
                # The books are wrong. Nothing here is the truth about anything: it begins anew.
                return evicted + self.clear()
            for row, key in oldest:
                if self._over(limit) and key != beside:
                    evicted += self.drop(key)
                    self._db.drop(row)  # still there if it was damaged and led nowhere
        return evicted

    def clear(self) -> int:
        count = self._db.count_under("e/")
        for kind in _KINDS:
            self._db.drop_under(kind)
        self._entries = self._bytes = self._last = 0
        return count

    def save(self) -> None:
        self._db.point([(_ROOM, json.dumps([self._entries, self._bytes]))])

    def _set_room(self, room: Room) -> None:
        self._entries, self._bytes = room.entries, room.bytes

    def _over(self, limit: Room) -> bool:
        return self._entries > limit.entries or self._bytes > limit.bytes

    def _point(self, ages: Iterable[tuple[str, _Age]]) -> None:
        """Write ages, each with the next number."""
        rows: list[tuple[str, str]] = []
        for use, (key, age) in enumerate(ages, self._last + 1):
            rows += [(f"a/{key}", age.written(use)), (_use_row(use), key)]
        self._db.point(rows)
        self._last += len(rows) // 2

    def _last_use(self) -> int:
        row = self._db.last("u/") or "u/0"
        try:
            return int(row[2:])
        except ValueError:
            _log.warning("the responses are numbered %r: damaged, and all dropped", row)
            self.clear()
            return 0


def _use_row(use: int) -> str:
    return f"u/{use:016d}"


def _room(db: "ResponseTable") -> Room:
    try:
        match json.loads(db.content(_ROOM) or b"[0,0]"):
            case [int(entries), int(size)]:
                return Room(entries, size)
    except ValueError:
        pass
    return _counted(db)


def _counted(db: "ResponseTable") -> Room:
    ages = [_age(value) for _, value in db.under("a/")]
    return Room(len(ages), sum(age.bytes for age in ages if age is not None))


@lru_cache(maxsize=KEPT_USES)  # a hit changes no row, so most ages are seen again and again
def _age(value: bytes | None) -> _Age | None:
    if value is None:
        return None
    try:
        match json.loads(value):
            case [
                int(use),
                int() | float() as used_s,
                None | int() | float() as ttl_s,
                int(size),
                str(group),
            ]:
                return _Age(use, used_s, ttl_s, size, group)
    except ValueError:
        pass
    return None


def _head(key: str) -> str:
    """Return what stands before a text: no other key has a head that begins like it."""
    return f"{len(key)} {key}\n"


def _text(key: str, sealed: bytes) -> str | None:
    """Return the text that was sealed for `key`, or None if these are not its bytes."""
    head = _head(key)
    try:
        text = unseal(sealed)
    except ValueError:
        return None
    return text[len(head) :] if text.startswith(head) else None
