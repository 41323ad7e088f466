"""Memories of bounded size: the values put last, and memos of what is derived from texts.

Memos are shared by all caches of a process, and keep words of prompts that were asked or stored:
once entries are removed, whoever removed them has the memos emptied, so that a process keeps
nothing of what is no more.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_memos: "list[_lru_cache_wrapper[object]]" = []
_keepers: "WeakSet[TextKeeper]" = WeakSet()


class TextKeeper:
    """Keeps texts that are dear to work out again, until entries are erased."""

    def __init__(self) -> None:
        _keepers.add(self)

    def forget_texts(self) -> None:
        """Forget all texts."""
        raise NotImplementedError("say how texts are forgotten")


def memoized(size: int) -> "Callable[[Callable[..., T]], _lru_cache_wrapper[T]]":
    """Return what lets a pure function remember its last `size` answers."""

    def remembering(function: Callable[..., T]) -> "_lru_cache_wrapper[T]":
        memo = lru_cache(maxsize=size)(function)
        _memos.append(memo)
        return memo

    return remembering


def forget_memos() -> None:
    """Empty all memos: the next answers are worked out again, in some microseconds each.

    Among them is that of `re`, which keeps patterns made of values.
    """
    for memo in _memos:
        memo.cache_clear()
    re.purge()


def forget_texts() -> None:
    """Empty all memos, and the keepers of texts: somebody had entries erased."""
    forget_memos()
    for keeper in [*_keepers]:
        keeper.forget_texts()


def remembered() -> int:
    """Return how many answers all memos keep."""
    return sum(memo.cache_info().currsize for memo in _memos)


class Lru(Generic[K, V]):
    """The values put last, by their keys. Thread-safe for keys that are texts, or tuples of texts.

    Without a lock, for which every thread would wait on every hit: each step on an `OrderedDict`
    with such keys is one of the interpreter. Between two steps another thread may have made room.
    """

    def __init__(self, keep: int) -> None:
        """Begin empty; `keep`: values at most."""
        self.keep = keep
        """Values that are kept at most."""
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
            self._put_last(key)
        return value

    def _put_last(self, key: K) -> None:
        try:
            self._kept.move_to_end(key)
        except KeyError:
            return  # another thread made room meanwhile

    def put(self, key: K, value: V) -> None:
        """Keep `value`, in place of what was kept for `key`; the oldest makes room."""
        kept = self._kept
        kept[key] = value
        self._put_last(key)
        while len(kept) > self.keep:
            try:
                kept.popitem(last=False)
            except KeyError:
                return  # as above

    def pop(self, key: K) -> V | None:
        """Forget `key`; return what was kept for it, None if nothing was."""
        return self._kept.pop(key, None)

    def values(self) -> list[V]:
        """Return what is kept, oldest first."""
        return [*self._kept.values()]

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def forget(self, going: Callable[[K], bool]) -> None:
        """Forget the keys that are `going`."""
        for key in [*self._kept]:
            if going(key):
                self._kept.pop(key, None)
