"""Memos of what is derived from words and texts, shared by all caches of a process.

They are bounded, and keep words of prompts that were asked or stored: once entries are removed,
whoever removed them has the memos emptied, so that a process keeps nothing of what is no more.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")

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
