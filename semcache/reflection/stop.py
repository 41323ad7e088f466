"""When to give up, beside what a failure itself says."""

from collections.abc import Callable
from dataclasses import dataclass

from semcache.errors import InvalidSettings
from semcache.reflection.attempts import Failed
from semcache.runs.faults import Fault


@dataclass(frozen=True, slots=True)
class Stop:
    """When to give up, beside what the failure itself says; combine rules by `|` and `&`.

    tenacity has such rules too, but those about time read the machine's clock.
    """

    holds: Callable[[Failed], bool]

    def __call__(self, failed: Failed) -> bool:
        """Return whether no further attempt is made."""
        return self.holds(failed)

    def __or__(self, other: "Stop") -> "Stop":
        return Stop(lambda failed: self(failed) or other(failed))

    def __and__(self, other: "Stop") -> "Stop":
        return Stop(lambda failed: self(failed) and other(failed))


def stop_after_attempts(count: int) -> Stop:
    """Return the rule that gives up after `count` attempts.

    Raises:
        InvalidSettings: no attempt would be made.
    """
    if count < 1:
        raise InvalidSettings(f"attempts is {count!r}; expected 1 or more")
    return Stop(lambda failed: failed.attempt >= count)


def stop_after_seconds(seconds: float) -> Stop:
    """Return the rule that gives up when an attempt fails that long after the first began."""
    return Stop(lambda failed: failed.seconds >= seconds)


def stop_on(*faults: Fault) -> Stop:
    """Return the rule that gives up at failures of these kinds."""
    return Stop(lambda failed: failed.fault in faults)
