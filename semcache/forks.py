"""What a fork or an interrupt must not leave behind: locks that nobody gives back, connections.

A child has one thread, a copy of the one that forked. A lock that another thread held at that
moment stays locked in the child for ever, and a connection to a database serves two processes at
once. Whoever has such things says so here, and makes them anew in the child before anything else
runs there.
"""

import contextlib
import math
import os
import sys
import threading
import time
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from types import FrameType, TracebackType
from typing import Literal, TypeAlias

# Documented by CPython in spite of the underscore; who holds a lock can be told by nothing else.
_getframe = sys._getframe  # noqa: SLF001

_owners: "weakref.WeakSet[Forked]" = weakref.WeakSet()
_guard = threading.Lock()


class Forked:
    """Has something that a forked child must make anew."""

    def forking(self) -> None:
        """Make ready for a fork, in the parent; nothing by default."""

    def forked(self) -> None:
        """Make anew what a child must not share; called in the child alone."""
        raise NotImplementedError("say what a forked child makes anew")

    def went_on(self) -> None:
        """Go on after a fork, in the parent; nothing by default."""


class _Thread:
    """Ends with the thread that made it."""


class _Threads(threading.local):
    def __init__(self) -> None:
        self.current = _Thread()


_threads = _Threads()

Holder: TypeAlias = tuple["FrameType | weakref.ref[_Thread]", int]
"""Who has a lock: the call that entered it (or, for as long as that lives, the thread), and its
thread's number. A tuple, since entering must cost little."""


def holder() -> Holder:
    """Return a holder for the function that called the caller of this."""
    return _blocks(_getframe(2)), get_ident()


def _blocks(frame: FrameType) -> FrameType:
    """Return the call whose block it is that `frame` enters a lock for.

    A generator is suspended while the block that it manages runs: the function with the block
    holds then.
    """
    while frame.f_back is not None and (
        frame.f_code.co_flags & CO_GENERATOR or frame.f_code.co_filename == contextlib.__file__
    ):
        frame = frame.f_back
    return frame


def lives(holder: Holder) -> bool:
    """Return whether the call is still under way, so that it will let go by itself.

    A call that is under way can't be cleared (`frame.clear` is documented to raise then). Nothing
    looks at the calls of other threads: to walk them while they run crashes the interpreter
    (seen with 3.11.7), and to ask for all of them may stop it for ever (CPython issue 106883).
    """
    by, _ = holder
    if isinstance(by, weakref.ref):
        return by() is not None
    try:
        by.clear()
    except RuntimeError:
        return True
    return False


PATIENCE_S = 0.002
"""Seconds between two looks from which on a waiting thread asks whether the holder is still there:
it rarely is not."""
_LONGEST_S = 0.005
"""Seconds between two looks of a waiting thread at most; the first looks follow at once."""


def pauses() -> Iterator[float]:
    """Yield seconds to sleep between looks, growing: most locks are held for microseconds."""
    pause_s = 0.0
    while True:
        yield pause_s
        pause_s = min(2 * pause_s + 1e-5, _LONGEST_S)


class Lock(Forked):
    """A lock, entered again by who is inside, that no interrupt and no fork leaves locked.

    An interrupt (Ctrl-C, an exception raised in another thread) may fall between any two lines:
    after a lock was taken and before that was noted, or on the line that gives it back. Then a
    `threading.Lock` stays locked for ever; so it does in a forked child if another thread had it.
    Here taking and noting who took is one step of the interpreter, `dict.setdefault`, and who waits
    looks whether the call that holds the lock is still under way; if not, the lock is free.
    """

    def __init__(self, *, patience_s: float = math.inf) -> None:
        """`patience_s`: seconds that entering waits before it raises TimeoutError."""
        self._patience_s = patience_s
        self._held: dict[Literal["by"], Holder] = {}
        self._depth = 0
        """How often who is inside has entered again."""
        self._freeing: list[Holder] = []
        follow_forks(self)

    def __enter__(self) -> None:
        frame = _getframe(1)
        if frame.f_code.co_flags & CO_GENERATOR:
            frame = _blocks(frame)
        mine = frame, get_ident()
        if self._held.setdefault("by", mine) is not mine:
            until_s = time.monotonic() + self._patience_s
            if not self._wait(mine, lambda: time.monotonic() > until_s):
                raise TimeoutError("another thread is inside for too long")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._depth:
            self._depth -= 1
        else:
            self._held.pop("by", None)  # nobody has it in a forked child

    def hold(self) -> None:
        """Enter for as long as the thread lives, until `free`; for hooks that begin and end."""
        mine: Holder = weakref.ref(_threads.current), get_ident()
        if self._held.setdefault("by", mine) is not mine:
            self._wait(mine, lambda: False)

    def take(self, late: Callable[[], bool]) -> bool:
        """Enter for the block of the caller, unless it is `late` first; return if inside."""
        mine = _blocks(_getframe(1)), get_ident()
        return self._held.setdefault("by", mine) is mine or self._wait(mine, late)

    def free(self) -> None:
        """Undo `hold` or `take`."""
        self.__exit__(None, None, None)

    def _wait(self, mine: Holder, late: Callable[[], bool]) -> bool:
        """Wait for the lock; return whether it is ours, or False as soon as it is `late`."""
        for pause_s in pauses():
            held = self._held.setdefault("by", mine)
            if held is mine:
                return True
            own = held[1] == mine[1]
            if (own or pause_s >= PATIENCE_S) and not lives(held):
                self._take_from(held, mine)
            elif own:
                self._depth += 1
                return True
            elif late():
                return False
            else:
                time.sleep(pause_s)
        raise AssertionError("unreachable: pauses never end")

    def _take_from(self, gone: Holder, mine: Holder) -> None:
        """Free the lock if `gone`, who was interrupted, still has it; one thread at a time."""
        self._freeing.append(mine)
        try:
            for pause_s in pauses():
                first = self._freeing[0]
                if first is mine:
                    break
                if lives(first):
                    time.sleep(pause_s)
                else:
                    withdraw(self._freeing, first)
            if self._held.get("by") is gone:
                self._depth = 0
                self._held.pop("by", None)
        finally:
            withdraw(self._freeing, mine)

    def forked(self) -> None:
        """Be free: whoever held it is a thread of the parent."""
        self._held, self._freeing, self._depth = {}, [], 0


def withdraw(line: list[Holder], gone: Holder) -> None:
    """Take `gone` out of the line of those that wait; nothing if another thread did."""
    with contextlib.suppress(ValueError):
        line.remove(gone)


def follow_forks(owner: Forked) -> None:
    """Tell `owner` of every fork from now on, for as long as somebody else knows it."""
    with _guard:
        _owners.add(owner)


def _before() -> None:
    _guard.acquire()
    for owner in _followers():
        owner.forking()


def _in_parent() -> None:
    owners = _followers()
    _guard.release()
    for owner in owners:
        owner.went_on()


def _in_child() -> None:
    # The guard first: what an owner makes anew may follow forks itself, as a `Lock` does.
    owners = _followers()
    _guard.release()
    for owner in owners:
        owner.forked()


def _followers() -> list[Forked]:
    return list(_owners)


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
