"""Budget: the seconds that a run and each of its calls have, and the bytes that it may hold."""

import threading
from collections.abc import Mapping

from semcache.canonical import MAX_DEPTH, Json, dumps, plain
from semcache.errors import DeadlineExceeded, InvalidJson, OutputTooLarge
from semcache.ports import Clock, Limits

RESULTS = 8
"""Results of the largest size that one run may hold together: 80 MB of JSON by default, of which
Python makes up to 500 MB of objects."""


class Budget:
    """Counts from when it is made. Safe from several threads."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._deadline_s = clock.monotonic() + limits.timeout_s
        self._lock = threading.Lock()
        self._held = 0

    def left_s(self) -> float:
        """Return how many seconds the run has left; 0 or less if none."""
        return self._deadline_s - self._clock.monotonic()

    def call_s(self) -> float:
        """Return how many seconds a call may take now."""
        return min(self._limits.call_timeout_s, self.left_s())

    def check(self, node: str, *, at: str, what: str = "plan") -> None:
        """Raise `DeadlineExceeded` if no time is left for `node`."""
        if self.left_s() <= 0:
            raise DeadlineExceeded(
                f"the {what} had no answer after {self._limits.timeout_s:g} s; {at}", node=node
            )

    def hold(self, size: int, *, what: str, node: str) -> None:
        """Count the bytes of a result that the run keeps to its end.

        Raises:
            OutputTooLarge: all that it keeps is over eight results of the largest size.
        """
        bound = RESULTS * self._limits.max_output_bytes
        with self._lock:
            self._held += size
            over = self._held > bound
        if over:
            raise OutputTooLarge(
                f"with {what} the results of this run are over {bound:,} bytes of JSON", node=node
            )


def bounded(
    value: object, limits: Limits, *, what: str, node: str, budget: Budget | None = None
) -> Json:
    """Return a plain copy of `value`, if its canonical JSON is within `limits.max_output_bytes`.

    A value too large is refused before it is copied: one that holds the same part over and over
    (`{"a": "$.x", "b": "$.x"}` in a loop) is small in memory and endless as text. `budget`: counts
    what the run keeps.

    Raises:
        OutputTooLarge: it is over the bound, or all results of the run are over theirs.
        InvalidJson: it is not JSON.
    """
    limit = limits.max_output_bytes
    if _at_least(value, {}) <= limit:
        copy = plain(value, what=what)
        size = _size(copy, what)
        if size <= limit:
            if budget is not None:
                budget.hold(size, what=what, node=node)
            return copy
    raise OutputTooLarge(f"{what} is over {limit:,} bytes of JSON", node=node)


def _size(value: Json, what: str) -> int:
    try:
        return len(dumps(value).encode())
    except InvalidJson as error:  # Python writes no integer of more than 4300 digits
        raise InvalidJson(f"{what}: {error}") from error


def _at_least(value: object, known: dict[int, int], depth: int = 0) -> int:
    """Return a lower bound of the bytes of `value` as JSON; each shared part is counted once."""
    if isinstance(value, str):
        return len(value) + 2
    if not isinstance(value, (Mapping, list, tuple)):
        return 1
    if id(value) in known or depth > MAX_DEPTH:
        return known.get(id(value), 1)
    known[id(value)] = 1  # where a cycle closes; what is cyclic or too deep is refused later
    inner = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
    size = 1 + len(inner) + sum(_at_least(item, known, depth + 1) for item in inner)
    known[id(value)] = size
    return size
