"""Attempts, what comes of those that fail, and when to give up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from semcache.canonical import Json
from semcache.errors import InvalidSettings
from semcache.events import Level
from semcache.runs.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that failed, as stop rules and judges see it."""

    name: str
    level: Level
    attempt: int
    """1 for the first."""
    error: Exception
    fault: Fault
    seconds: float
    """Since the first attempt began."""
    wrote: tuple[str, ...] = ()
    """Operations of the attempt that may have changed the world, and take no idempotency key."""
    sent: Json = None
    """What was sent to a model, for a diagnosis."""
    history: tuple["ReflectionEntry", ...] = ()
    """The earlier failures of the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryVerdict:
    """What comes of a failure."""

    retry: bool
    reason: str
    data: Mapping[str, Json] = field(default_factory=dict)
    """Values to change or add before the next attempt."""
    system: str = ""
    """The system prompt of the next attempt; empty: as it was."""
    decision: str = ""
    """In a word what was found, for the tree: `plan`, `values`, `passing`…"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionEntry:
    """One failure that was looked at."""

    at_s: float
    """Epoch seconds."""
    level: Level
    name: str
    attempt: int
    error: str
    """Class and message of the failure, without secrets."""
    reason: str
    resolution: Literal["retry", "skip", "abort"]
    success: bool = False
    """Whether the attempt after it succeeded."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the work is told of the attempt that it is."""

    number: int
    """1 for the first."""
    verdict: RetryVerdict | None = None
    """What came of the last failure; None in the first attempt."""
    error: Exception | None = None
    """The last failure; None in the first attempt."""


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
