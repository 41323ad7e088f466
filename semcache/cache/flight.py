"""Single flight: one caller makes what several want, and each binds its own values afterwards."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from semcache.forks import Forked, follow_forks

SLICE_S = 0.05
"""Seconds after which somebody who waits looks whether it is late; being let in takes no such."""


@dataclass(slots=True)
class _Seat:
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    failures: int = 0
    """Holders that failed; who came before the last of them shares its error."""
    error: Exception | None = None


def never() -> bool:
    """Return False: it is never too late."""
    return False


class Flights(Forked):
    """One lock a key, kept only while somebody uses it. A forked child begins with none taken."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seats: dict[str, _Seat] = {}
        follow_forks(self)

    @contextmanager
    def enter(self, key: str, *, late: Callable[[], bool] = never) -> Iterator[bool]:
        """Hold `key` alone; give whether somebody else held it when we came.

        A caller that had to wait looks up again before it makes anything: what it waited for may
        be there now. What the holder raises, all raise who wait at that moment, as of a future:
        each trying in its turn would keep the last waiting for the errors of all others. An
        interrupt is the holder's own. As soon as it is `late`, who still waits is let in beside the
        holder.
        """
        with self._guard:
            seats = self._seats
            seat = seats.setdefault(key, _Seat())
            seat.users += 1
            waited, failures = seat.users > 1, seat.failures
        held = False
        try:
            held = _held(seat.lock, late)
            if held and seat.error is not None and seat.failures > failures:
                raise seat.error
            try:
                yield waited
            except Exception as error:
                seat.error = error
                seat.failures += 1
                raise
        finally:
            if held:
                seat.lock.release()
            with self._guard:
                seat.users -= 1
                if not seat.users:
                    del seats[key]

    def __len__(self) -> int:
        """Return how many keys are in use."""
        return len(self._seats)

    def forked(self) -> None:
        """Begin anew: whoever held a key is a thread of the parent."""
        self._guard = threading.Lock()
        self._seats = {}


def _held(lock: threading.Lock, late: Callable[[], bool]) -> bool:
    """Wait for `lock`; return whether it is ours, or False when it is late."""
    while not lock.acquire(timeout=SLICE_S):
        if late():
            return False
    return True
