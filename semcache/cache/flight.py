"""Single flight: one caller makes what several want, and each binds its own values afterwards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Seat:
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class Flights:
    """One lock a key, kept only while somebody uses it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seats: dict[str, _Seat] = {}

    @contextmanager
    def enter(self, key: str) -> Iterator[bool]:
        """Hold `key` alone; give whether somebody else held it when we came.

        A caller that had to wait looks up again before it makes anything: what it waited for may
        be there now. What the first caller raised stays with the first caller.
        """
        with self._guard:
            seat = self._seats.setdefault(key, _Seat())
            seat.users += 1
            waited = seat.users > 1
        try:
            with seat.lock:
                yield waited
        finally:
            with self._guard:
                seat.users -= 1
                if not seat.users:
                    del self._seats[key]

    def __len__(self) -> int:
        """Return how many keys are in use."""
        return len(self._seats)
