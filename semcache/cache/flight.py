"""Single flight: one caller makes what several want, and each binds its own values afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from semcache.forks import Forked, Holder, Lock, follow_forks, holder, lives, withdraw


@dataclass(slots=True)
class _Seat:
    lock: Lock = field(default_factory=Lock)
    users: list[Holder] = field(default_factory=list)
    """Who is inside or waits; one that was interrupted may stay until somebody else comes."""
    failures: int = 0
    """Holders that failed; who came before the last of them shares its error."""
    error: Exception | None = None


def never() -> bool:
    """Return False: it is never too late."""
    return False


class Flights(Forked):
    """One lock a key, kept only while somebody uses it. A forked child begins with none taken."""

    def __init__(self) -> None:
        self._guard = Lock()
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
        mine, held = holder(), False
        with self._guard:
            seats = self._seats
            seat = seats.setdefault(key, _Seat())
            seat.users = [user for user in seat.users if lives(user)]
            waited, failures = bool(seat.users), seat.failures
            seat.users.append(mine)
        try:
            held = seat.lock.take(late)
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
                seat.lock.free()
            with self._guard:
                withdraw(seat.users, mine)
                if not seat.users:
                    seats.pop(key, None)

    def __len__(self) -> int:
        """Return how many keys are in use."""
        return len(self._seats)

    def forked(self) -> None:
        """Begin anew: whoever held a key is a thread of the parent."""
        self._seats = {}
