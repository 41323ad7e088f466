"""What must not go on in a forked child: locks that a thread of the parent holds, connections.

A child has one thread, a copy of the one that forked. A lock that another thread held at that
moment stays locked in the child for ever, and a connection to a database serves two processes at
once. Whoever has such things says so here, and makes them anew in the child before anything else
runs there.
"""

import os
import threading
import weakref
from types import TracebackType

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


class Lock(Forked):
    """A `threading.Lock` that nobody holds in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        follow_forks(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def forked(self) -> None:
        """Be free: whoever held it is a thread of the parent."""
        self._lock = threading.Lock()


def follow_forks(owner: Forked) -> None:
    """Tell `owner` of every fork from now on, for as long as somebody else knows it."""
    with _guard:
        _owners.add(owner)


def _before() -> None:
    _guard.acquire()
    for owner in _followers():
        owner.forking()


def _in_parent() -> None:
    for owner in _followers():
        owner.went_on()
    _guard.release()


def _in_child() -> None:
    for owner in _followers():
        owner.forked()
    _guard.release()


def _followers() -> list[Forked]:
    return list(_owners)


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
