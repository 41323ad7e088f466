"""What every plan can tell, whatever its format."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from semcache.canonical import JsonObject, Pointer


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a plan that reads the result of another part of it."""

    at: Pointer
    """Where the reference stands in the plan."""
    target: str
    """The node, task or variable that it reads."""
    path: str
    """The reference as written."""


@runtime_checkable
class ExecutionPlan(Protocol):
    """A plan of any format; immutable, equal by content."""

    @property
    def format(self) -> str:
        """Name of the format: `routes`, `tasks`, `program`; `document` for other JSON objects."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex of the canonical JSON of the plan."""

    def to_dict(self) -> JsonObject:
        """Return the plan as a fresh JSON object that the caller may change."""

    def operations(self) -> tuple[str, ...]:
        """Return the names of the operations that the plan may call, sorted, each once."""

    def references(self) -> tuple[Reference, ...]:
        """Return every reference between parts of the plan, in document order."""
