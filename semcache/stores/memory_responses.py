"""Responses of models that live as long as the process."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from semcache.errors import StoreUnavailable
from semcache.ports import Room
from semcache.process.forks import Lock


def alive(used_s: float, ttl_s: float | None, now_s: float) -> bool:
    """Return whether less than `ttl_s` lies between the last use and now.

    A use in the future counts as one in the past: a thread that read the clock a moment earlier
    must not find dead what another has just used, and a clock set back by a day must not give a
    day more.
    """
    return ttl_s is None or abs(now_s - used_s) < ttl_s


@dataclass(slots=True)
class _Kept:
    text: str
    bytes: int
    group: str
    ttl_s: float | None
    used_s: float


class MemoryResponses:
    """Texts in memory, as `ports.ResponseStore` promises; gone with the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """The one used longest ago first."""
        self._bytes = 0
        self._closed = False

    def get(self, key: str, *, now_s: float) -> str | None:
        """Return the living text and make it the one used last, its age beginning anew; or None."""
        with self._lock:
            kept = self._open().get(key)
            if kept is None:
                return None
            if not alive(kept.used_s, kept.ttl_s, now_s):
                self._drop(key)
                return None
            kept.used_s = now_s
            self._kept.move_to_end(key)
            return kept.text

    def has(self, key: str, *, now_s: float) -> bool:
        """Return whether there is a living text under `key`; that is no use of it."""
        with self._lock:
            kept = self._open().get(key)
            return kept is not None and alive(kept.used_s, kept.ttl_s, now_s)

    def set(
        self, key: str, text: str, *, group: str, ttl_s: float | None, now_s: float, limit: Room
    ) -> int:
        """Keep `text`, replacing what was there; return how many others made room for it."""
        size = len(text.encode())
        with self._lock:
            self._open()
            self._drop(key)
            if size > limit.bytes or limit.entries < 1:
                return 0
            self._kept[key] = _Kept(text, size, group, ttl_s, now_s)
            self._bytes += size
            evicted = 0
            while len(self._kept) > limit.entries or self._bytes > limit.bytes:
                evicted += self._drop(next(iter(self._kept)))
            return evicted

    def remove(self, keys: Sequence[str]) -> int:
        """Forget texts; return how many were there."""
        with self._lock:
            self._open()
            return sum(self._drop(key) for key in keys)

    def keys(self, *, group: str | None = None) -> Sequence[str]:
        """Return the keys of `group`, or all (None), sorted; those no longer alive too."""
        with self._lock:
            items = self._open().items()
            return sorted(key for key, kept in items if group is None or kept.group == group)

    def room(self) -> Room:
        """Return how much is kept; what is no longer alive counts until it is found or goes."""
        with self._lock:
            return Room(len(self._open()), self._bytes)

    def clear(self) -> int:
        """Forget everything; return how many texts there were."""
        with self._lock:
            count = len(self._open())
            self._kept.clear()
            self._bytes = 0
            return count

    def close(self) -> None:
        """Forget everything; calling it twice is fine."""
        with self._lock:
            self._closed = True
            self._kept.clear()
            self._bytes = 0

    def _open(self) -> OrderedDict[str, _Kept]:
        if self._closed:
            raise StoreUnavailable("the store of responses is closed; make a new one")
        return self._kept

    def _drop(self, key: str) -> bool:
        kept = self._kept.pop(key, None)
        if kept is None:
            return False
        self._bytes -= kept.bytes
        return True
