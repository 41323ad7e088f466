"""A mapping of bounded size from which the values go that were put or used longest ago."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from semcache.forks import Lock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """The values put last, by their keys. Thread-safe; reading takes no lock."""

    def __init__(self, keep: int) -> None:
        """Begin empty; `keep`: values at most."""
        self.keep = keep
        """Values that are kept at most."""
        self._lock = Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def get(self, key: K) -> V | None:
        """Return the value of `key`, which does not count as using it; None if it is not kept."""
        return self._kept.get(key)

    def use(self, key: K) -> V | None:
        """Return the value of `key`, which then goes last; None if it is not kept."""
        value = self._kept.get(key)
        if value is not None:
            try:
                self._kept.move_to_end(key)
            except KeyError:
                return value  # another thread made room meanwhile
        return value

    def put(self, key: K, value: V) -> None:
        """Keep `value`, in place of what was kept for `key`; the oldest makes room."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self.keep:
                self._kept.popitem(last=False)

    def pop(self, key: K) -> V | None:
        """Forget `key`; return what was kept for it, None if nothing was."""
        with self._lock:
            return self._kept.pop(key, None)

    def values(self) -> list[V]:
        """Return what is kept, oldest first."""
        with self._lock:
            return [*self._kept.values()]

    def forget(self, going: Callable[[K], bool]) -> None:
        """Forget the keys that are `going`."""
        with self._lock:
            for key in [key for key in self._kept if going(key)]:
                del self._kept[key]
