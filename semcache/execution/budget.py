"""Budget: the seconds that a run has, and each of its calls."""

from semcache.errors import DeadlineExceeded
from semcache.ports import Clock, Limits


class Budget:
    """Counts from when it is made. Safe from several threads."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._deadline_s = clock.monotonic() + limits.timeout_s

    def left_s(self) -> float:
        """Return how many seconds the run has left; 0 or less if none."""
        return self._deadline_s - self._clock.monotonic()

    def call_s(self) -> float:
        """Return how many seconds a call may take now."""
        return min(self._limits.call_timeout_s, self.left_s())

    def check(self, node: str, *, before: str, what: str = "plan") -> None:
        """Raise `DeadlineExceeded` if no time is left for `node`."""
        if self.left_s() <= 0:
            raise DeadlineExceeded(
                f"the {what} had no answer after {self._limits.timeout_s:g} s; before {before}",
                node=node,
            )
