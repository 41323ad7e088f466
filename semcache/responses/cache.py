"""Responses: what a model answered, kept by exactly what it was asked."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Literal, TypeAlias

from semcache.cache.single_flight import KeyLocks
from semcache.canonical import Json, loads, plain, spelled
from semcache.errors import InvalidInput, InvalidJson, InvalidSettings, StoreError
from semcache.events import ResponseLookedUp, TierFailed
from semcache.ports import Clock, Observer, ResponseStore, Room
from semcache.process.forks import Closeable, Lock
from semcache.process.imports import ensure_imported
from semcache.settings import directory_of

log = logging.getLogger(__name__)

MAX_ENTRIES = 1000
MAX_BYTES = 50 * 2**20  # of the responses as JSON in UTF-8
TTL_S = 3600.0


class _Absent(Enum):
    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = _Absent.ABSENT
"""What `get` returns for a key that it does not have: None, 0 and "" are responses too."""
Absent: TypeAlias = Literal[_Absent.ABSENT]
"""The type of `ABSENT`."""


@dataclass(frozen=True, slots=True)
class Response:
    """What `answer` gives."""

    value: Json
    """The caller's own copy."""
    cached: bool
    """Whether it was kept, and nothing was made."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a response cache did and holds."""

    hits: int
    """Since it was opened or cleared, by this process."""
    misses: int
    entries: int
    """Those that expired count until they are found or make room."""
    bytes: int
    """Bytes of the responses as JSON in UTF-8."""
    max_entries: int
    max_bytes: int

    @property
    def hit_rate(self) -> float:
        """Hits among all lookups, in percent; 0 before the first."""
        return 100.0 * self.hits / ((self.hits + self.misses) or 1)


class Responses(Closeable):
    """An exact cache of JSON values: same key, same response, as long as it is used.

    Bounded by entries and bytes, the ones used longest ago go first; a response lives for its ttl
    after its last use. What goes in and what comes out are copies. Safe from several threads, and
    from several processes where the store is. `response_key` makes keys; any text is one.
    """

    def __init__(
        self,
        store: ResponseStore,
        clock: Clock,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        ttl_s: float | None = TTL_S,
        observer: Observer | None = None,
    ) -> None:
        """Keep responses in `store`; nothing is opened before the first use.

        Args:
            store: Where they are.
            clock: What their age is measured by.
            max_entries: Responses at most.
            max_bytes: Bytes of them as JSON in UTF-8 at most; a bigger one is not kept.
            ttl_s: Seconds from the last use to expiry, where `set` says nothing; None: never.
            observer: Hears of each lookup, and of a store that fails.

        Raises:
            InvalidSettings: a bound under 1, or a ttl of 0 or less.
        """
        if max_entries < 1 or max_bytes < 1:
            raise InvalidSettings(
                f"max_entries is {max_entries!r} and max_bytes is {max_bytes!r}; "
                "expected at least 1 of each"
            )
        if ttl_s is not None and not ttl_s > 0:
            raise InvalidSettings(f"ttl_s is {ttl_s!r}; expected more than 0 seconds, or None")
        self._store = store
        self._clock = clock
        self._limit = Room(max_entries, max_bytes)
        self._ttl_s = ttl_s
        self._observer = observer
        self._flights = KeyLocks()
        self._counting = Lock()
        self._hits = 0
        self._misses = 0
        self._warned = False

    @classmethod
    def open(
        cls,
        directory: str | Path | None = None,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        ttl_s: float | None = TTL_S,
        clock: Clock | None = None,
        observer: Observer | None = None,
        encryption_key: str = "",
    ) -> "Responses":
        """Return a response cache in `directory` (not that of a plan cache), or in memory (None).

        `encryption_key`: 32 bytes as base64 that everything in `directory` is encrypted with.

        Raises:
            InvalidSettings: a bound under 1, or a ttl of 0 or less.
        """
        ensure_imported("semcache.wiring")
        from semcache.wiring import (  # noqa: PLC0415 - wiring stands right of us
            SystemClock,
            open_response_store,
            reporting,
        )

        return cls(
            open_response_store(directory_of(directory), encryption_key),
            clock or SystemClock(),
            max_entries=max_entries,
            max_bytes=max_bytes,
            ttl_s=ttl_s,
            observer=reporting(observer),
        )

    # One response ----------------------------------------------------------------------------

    def get(self, key: str, *, group: str = "") -> Json | Absent:
        """Return a copy of the response, its age beginning anew; `ABSENT` if there is none alive.

        `group` is only told to the observer.

        Raises:
            InvalidInput: the key is not text that can be kept.
            StoreError: the store cannot be read.
        """
        found = self._look(_checked(key))
        self._count(key, group, hit=found is not ABSENT)
        return found

    def set(self, key: str, value: object, *, ttl_s: float | None = None, group: str = "") -> bool:
        """Keep a copy of `value`; return whether it is kept: one over `max_bytes` is not.

        `ttl_s`: seconds from its last use to its expiry; None: as the cache has it. `group` is a
        label of the caller's, for `bust_group`.

        Raises:
            InvalidJson: `value` is not JSON; what was there stays.
            InvalidInput: the key is not text that can be kept, or a ttl of 0 or less.
            StoreError: the store cannot be written.
        """
        if ttl_s is not None and not ttl_s > 0:
            raise InvalidInput(f"ttl_s is {ttl_s!r}; expected more than 0 seconds, or None")
        text = spelled(plain(value, what="the response"))
        self._store.set(
            _checked(key),
            text,
            group=group and _checked(group),
            ttl_s=self._ttl_s if ttl_s is None else ttl_s,
            now_s=self._clock.now(),
            limit=self._limit,
        )
        return len(text.encode()) <= self._limit.bytes

    def has(self, key: str) -> bool:
        """Return whether a living response is there; that is no use of it, and no hit or miss.

        Raises:
            InvalidInput: the key is not text that can be kept.
            StoreError: the store cannot be read.
        """
        return self._store.has(_checked(key), now_s=self._clock.now())

    def answer(
        self,
        key: str,
        make: Callable[[], Json],
        *,
        group: str = "",
        ttl_s: float | None = None,
        bypass: bool = False,
        keep: Callable[[Json], bool] = lambda _: True,
    ) -> Response:
        """Return what is kept under `key`; else what `make` gives, which is kept then.

        Of several threads that ask for the same key, one makes it and the others take it. What
        `make` raises passes through, to the others too, and nothing is kept. A store that fails
        makes a miss, an event and one warning; so does an answer that is not JSON.

        Args:
            key: What is asked; see `response_key`.
            make: Asks the model.
            group: Label for `bust_group`.
            ttl_s: Seconds from the last use to expiry; None: as the cache has it.
            bypass: Take nothing that is kept; what is made now replaces it.
            keep: Whether what was made may be kept.

        Raises:
            InvalidInput: the key or the group is not text that can be kept.
        """
        if bypass:
            return self._made(key, make, group=group, ttl_s=ttl_s, keep=keep)
        found = self._look_safely(key)
        if found is ABSENT:
            with self._flights.enter(key):
                # Another thread may have made it since, whether we waited for it or not.
                found = self._look_safely(key)
                if found is ABSENT:
                    self._count(key, group, hit=False)
                    return self._made(key, make, group=group, ttl_s=ttl_s, keep=keep)
        self._count(key, group, hit=True)
        return Response(found, cached=True)

    def _made(
        self,
        key: str,
        make: Callable[[], Json],
        *,
        group: str,
        ttl_s: float | None,
        keep: Callable[[Json], bool],
    ) -> Response:
        value = make()
        if keep(value):
            self.remember(key, value, ttl_s=ttl_s, group=group)
        return Response(value, cached=False)

    # The same for callers that can do without: trouble makes an event and one warning ----------

    def recall(self, key: str, *, group: str = "") -> Json | Absent:
        """Return what `get` does; `ABSENT` where the store fails. Raises InvalidInput."""
        found = self._look_safely(key)
        self._count(key, group, hit=found is not ABSENT)
        return found

    def remember(
        self, key: str, value: object, *, ttl_s: float | None = None, group: str = ""
    ) -> None:
        """Keep `value` as `set` does, if it is JSON and the store works. Raises InvalidInput."""
        try:
            self.set(key, value, ttl_s=ttl_s, group=group)
        except (StoreError, InvalidJson) as error:
            self._failed(error)

    def forget(self, key: str) -> None:
        """Forget one response as `bust` does, if the store works. Raises InvalidInput."""
        try:
            self.bust(key)
        except StoreError as error:
            self._failed(error)

    # Many responses --------------------------------------------------------------------------

    def bust(self, key: str) -> bool:
        """Forget one response; return whether it was there.

        Raises:
            InvalidInput: the key is not text that can be kept.
            StoreError: the store cannot be written.
        """
        return self._store.remove([_checked(key)]) > 0

    def bust_prefix(self, prefix: str) -> int:
        """Forget every response whose key begins with `prefix`; return how many. Raises StoreError.

        The empty prefix is that of every key.
        """
        return self._store.remove(self.keys(prefix=prefix))

    def bust_group(self, group: str) -> int:
        """Forget every response that was set with `group`; return how many. Raises StoreError."""
        return self._store.remove(self._store.keys(group=group))

    def keys(self, *, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with `prefix`, sorted; expired ones until they are found.

        Raises:
            StoreError: the store cannot be read.
        """
        return [key for key in self._store.keys(group=None) if key.startswith(prefix)]

    def clear(self) -> int:
        """Forget everything, the counts too; return how many there were. Raises StoreError."""
        count = self._store.clear()
        with self._counting:
            self._hits = self._misses = 0
        return count

    def metrics(self) -> Metrics:
        """Return what it did and holds. Raises StoreError."""
        room = self._store.room()
        with self._counting:
            hits, misses = self._hits, self._misses
        limit = self._limit
        return Metrics(hits, misses, room.entries, room.bytes, limit.entries, limit.bytes)

    def close(self) -> None:
        """Release files; calling it twice is fine."""
        self._store.close()

    # Behind them -----------------------------------------------------------------------------

    def _look(self, key: str) -> Json | Absent:
        text = self._store.get(key, now_s=self._clock.now())
        if text is None:
            return ABSENT
        try:
            return loads(text, what="a response")
        except InvalidJson as error:  # a store that checks nothing
            log.warning("response %s is dropped: %s", key, error)
            self._store.remove([key])
            return ABSENT

    def _look_safely(self, key: str) -> Json | Absent:
        try:
            return self._look(_checked(key))
        except StoreError as error:
            self._failed(error)
            return ABSENT

    def _failed(self, error: StoreError | InvalidJson) -> None:
        if not self._warned:
            self._warned = True
            log.warning("the response cache fails and is passed over where it does: %s", error)
        if self._observer is not None:
            what = f"{type(error).__name__}: {error}"
            self._observer(TierFailed(tenant="", part="responses", error=what))

    def _count(self, key: str, group: str, *, hit: bool) -> None:
        with self._counting:
            self._hits += hit
            self._misses += not hit
        if self._observer is not None:
            self._observer(ResponseLookedUp(key=key, group=group, hit=hit))


def _checked(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidInput(f"{key!r:.80} is no key or group; expected text that is not empty")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{key!r:.80} is no key or group: it holds a lone surrogate; expected valid Unicode"
        ) from error
    return key
