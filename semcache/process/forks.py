"""What threads, forks and interrupts must not leave behind: locks, connections, errors.

A child has one thread, a copy of the one that forked. A lock that another thread held at that
moment stays locked in the child for ever, and a connection to a database serves two processes at
once. Whoever has such things says so here, and makes them anew in the child before anything else
runs there.
"""

import contextlib
import math
import os
import sys
import time
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FrameType, TracebackType
from typing import Literal, Self, TypeAlias

# Documented by CPython in spite of the underscore; who holds a lock can be told by nothing else.
_getframe = sys._getframe  # noqa: SLF001

_owners: "dict[weakref.ref[Forked], None]" = {}
"""Who follows forks. Each change of it is one step of the interpreter, so that it needs no lock,
which an interrupt in a hook of a fork could leave locked; that somebody is gone is noted without a
line of Python, in which an interrupt would be lost."""


class Forked:
    """Has something that a forked child must make anew."""

    def forked(self) -> None:
        """Make anew what a child must not share; called in the child alone."""
        raise NotImplementedError("say what a forked child makes anew")


Holder: TypeAlias = tuple[FrameType, int]
"""Who has a lock: the call that entered it, and its thread. A tuple, since entering must cost
little."""
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
"""Calls that may be suspended while a block of theirs, or the block that they manage, runs."""


def holder() -> Holder:
    """Return a holder for the function that called the caller of this."""
    return _blocks(_getframe(2)), get_ident()


def _blocks(frame: FrameType) -> FrameType:
    """Return the call whose block it is that `frame` enters a lock for.

    A generator is suspended while the block that it manages runs: the function with the block
    holds then.
    """
    while (
        frame.f_code.co_flags & _SUSPENDED or frame.f_code.co_filename == contextlib.__file__
    ) and (caller := frame.f_back) is not None:
        frame = caller
    return frame


def lives(holder: Holder) -> bool:
    """Return whether the call is still under way, so that it will let go by itself.

    A call that is under way can't be cleared (`frame.clear` is documented to raise then). Nothing
    looks at the calls of other threads: to walk them while they run crashes the interpreter
    (seen with 3.11.7), and to ask for all of them may stop it for ever (CPython issue 106883).
    """
    call, thread = holder
    if call.f_code.co_flags & _SUSPENDED:
        return True  # to clear one that is suspended would end it
    if sys.is_finalizing() and thread != get_ident():
        return False  # no other thread goes on from here
    try:
        call.clear()
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
        if frame.f_code.co_flags & _SUSPENDED:
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

    def take(self, late: Callable[[], bool]) -> bool:
        """Enter for the block of the caller, unless it is `late` first; return if inside."""
        mine = _blocks(_getframe(1)), get_ident()
        return self._held.setdefault("by", mine) is mine or self._wait(mine, late)

    def free(self) -> None:
        """Undo `take`."""
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


class ForkBarrier:
    """Lets a fork wait until nobody is inside, and nobody in while it lasts.

    For work on what a process shares with its child below Python: a child whose parent was in the
    middle of a transaction of SQLite takes the file for locked for ever, and rolls back in memory
    that the parent goes on with. A fork waits for `patience_s` seconds at most, and so does who
    waits for a fork. Who was interrupted inside is not waited for.
    """

    def __init__(self, *, patience_s: float = 10.0) -> None:
        self._patience_s = patience_s
        self._inside: dict[FrameType, Holder] = {}
        """Who is inside, by the calls that entered."""
        self._forking: dict[FrameType, int] = {}
        """Thread of each call that forks just now."""

    def enter(self) -> None:
        """Come inside, for the block of the caller of the caller, until `leave`."""
        call = _getframe(2)
        self._inside[call] = _blocks(call), get_ident()
        if self._forking:
            self._stand_aside(call)

    def leave(self) -> None:
        """Undo `enter`."""
        self._inside.pop(_getframe(2), None)

    def _stand_aside(self, call: FrameType) -> None:
        """Be outside while another thread forks, unless that waits for this one already."""
        mine, until_s = self._inside[call], time.monotonic() + self._patience_s
        for pause_s in pauses():
            for fork in [*self._forking.items()]:
                if time.monotonic() > until_s or not lives(fork):
                    self._forking.pop(fork[0], None)
            entered = [of for of in [*self._inside.values()] if of[1] == mine[1]]
            if len(entered) > 1 or mine[1] in self._forking.values() or not self._forking:
                return
            self._inside.pop(call, None)
            time.sleep(pause_s)
            self._inside[call] = mine

    def close(self, fork: FrameType) -> None:
        """Let nobody in, and return as soon as no other thread is inside."""
        own, until_s = get_ident(), time.monotonic() + self._patience_s
        self._forking[fork] = own
        for pause_s in pauses():
            for call, of in [*self._inside.items()]:
                if not lives(of):
                    self._inside.pop(call, None)
            others = [of for of in [*self._inside.values()] if of[1] != own]
            if not others or time.monotonic() > until_s:
                return
            time.sleep(pause_s)

    def open(self, fork: FrameType) -> None:
        """Let others in again, after the fork."""
        self._forking.pop(fork, None)

    def forked(self) -> None:
        """Be open in a child, and empty: other threads are the parent's."""
        self._inside, self._forking = {}, {}


barrier = ForkBarrier()
"""What every fork waits for."""


def follow_forks(owner: Forked) -> None:
    """Tell `owner` of every fork from now on, for as long as somebody else knows it."""
    _owners[weakref.ref(owner, _owners.pop)] = None


def _before() -> None:
    barrier.close(_getframe(1))


def _in_parent() -> None:
    barrier.open(_getframe(1))


def _in_child() -> None:
    barrier.forked()
    for known in [*_owners]:
        owner = known()
        if owner is not None:
            owner.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


# What is closed at the end of a block, what a thread raised, and a thread that was lent.

WAITS: ContextVar[Callable[[], None] | None] = ContextVar("semcache_waits", default=None)
"""Who lent this thread and may lend another, once it is about to wait; None: nobody did."""


def give_way() -> None:
    """Let others go on in place of this call, which is about to wait for a model or an embedder."""
    told = WAITS.get()
    if told is not None:
        told()


class Closeable:
    """Has a `close`, which the end of a `with` block calls, whatever was raised in it."""

    def close(self) -> None:
        """Release what is held; calling it twice is fine."""
        raise NotImplementedError("say what is released")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ErrorCapture:
    """Lets nothing out, not even SystemExit: for foreign code on a thread where nobody waits."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """The error raised inside; None: no error yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True
