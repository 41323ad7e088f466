"""Trying a failed call again: how often, how soon, and under which key."""

from dataclasses import dataclass

from semcache.canonical import Json, digest
from semcache.catalog.operation import Operation
from semcache.errors import (
    DeadlineExceeded,
    InvalidSettings,
    OperationFailed,
    SemCacheError,
)


@dataclass(frozen=True, slots=True)
class Retry:
    """How a call that failed is tried again: after 1, 2, 4… seconds."""

    attempts: int = 3
    """Calls at most, the first one counted; at least 1."""
    first_s: float = 1.0
    """Seconds between the first failure and the next attempt; each further wait is doubled."""
    longest_s: float = 30.0
    """Seconds of one wait at most."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidSettings(f"attempts is {self.attempts!r}; expected 1 or more")
        if not 0 <= self.first_s <= self.longest_s:
            raise InvalidSettings(
                f"first_s is {self.first_s!r} and longest_s {self.longest_s!r}; "
                "expected 0 or more, the first not over the longest"
            )

    def wait_s(self, failures: int) -> float:
        """Return how many seconds to wait after that many failures in a row."""
        doublings = min(failures - 1, 64)  # beyond it a float would overflow
        return min(self.first_s * 2.0**doublings, self.longest_s)

    def allows(self, operation: Operation, error: SemCacheError, failures: int) -> bool:
        """Return whether `operation` may be called again after that many failures.

        A write only if it takes an idempotency key: the failed call may have done its work.
        """
        passing = isinstance(error, (OperationFailed, DeadlineExceeded))
        harmless = operation.effect == "read" or operation.idempotency_key is not None
        return passing and harmless and failures < self.attempts


def idempotency_key(run: str, node: str, given: Json) -> str:
    """Return the SHA-256 hex over a run, a part of its plan and the input of that part.

    It is the same for each attempt, so that a service can tell a second try from a second order.
    By orra.
    """
    return digest([run, node, given])
