"""An operation: something that a plan may call."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from semcache.canonical import Json, JsonObject, as_list, digest
from semcache.errors import InvalidOperation

Effect = Literal["read", "write"]
"""What calling an operation does to the world: nothing (`read`) or something (`write`)."""

Call = Callable[[JsonObject], object]
"""The code behind an operation: validated input in, a value that is JSON out."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A named call with a schema for what goes in and what comes out."""

    name: str
    """Unique in its catalog."""
    summary: str
    """What the operation does, for people and planners."""
    input_schema: JsonObject
    """JSON Schema (2020-12) of the input object."""
    output_schema: JsonObject = field(default_factory=dict)
    """JSON Schema of the output; empty if unknown."""
    effect: Effect = "write"
    """Unknown effects are taken for writes."""
    call: Call | None = field(default=None, compare=False, repr=False)
    """The code behind it; None for a catalog that only describes."""
    idempotency_key: str | None = None
    """Name under which the call takes a key that is the same for each attempt at the same work, so
    that it can be tried again. The engine adds it to the input: the schema does not have it, and no
    planner sees it. None: the call takes none."""
    compensation: str | None = None
    """Name of the operation that undoes this one, called with `{"input": …, "output": …}` of the
    call to undo; None: it cannot be undone."""

    def keyed(self, argument: str) -> "Operation":
        """Return it with `argument`, which leaves the schema, as the one that takes its key.

        Raises:
            InvalidOperation: it has no such argument.
        """
        schema = self.input_schema
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict) or argument not in properties:
            raise InvalidOperation(
                f"operation {self.name!r} has no argument {argument!r} to take its idempotency key"
            )
        left: JsonObject = {key: value for key, value in properties.items() if key != argument}
        needed: list[Json] = [key for key in as_list(required) if key != argument]
        narrowed: JsonObject = {**schema, "properties": left, "required": needed}
        return replace(self, input_schema=narrowed, idempotency_key=argument)

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex over name, summary, schemas and effect.

        The code is not part of it, nor how calls are repeated and undone: plans hold all the same.
        """
        described: Json = [
            self.name,
            self.summary,
            self.input_schema,
            self.output_schema,
            self.effect,
        ]
        return digest(described)
