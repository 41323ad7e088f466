"""Keys of a schema: the readable Prompt Schema Key, and the identity that decides about reuse.

The Prompt Schema Key is OneMCP's (specs/onemcp.md, A2) and collides: `_` joins names and is legal
in them, and `amount > 100`, `amount < 100` and `sum(amount)` share one. It is a label for people.
The identity is a digest over everything that shapes a plan; nothing else decides about reuse.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from semcache.canonical import Json, JsonObject, digest
from semcache.prompts.schema.operators import aggregate_name, operator_name


class Shaped(Protocol):
    """What a key is made of: a `PromptSchema`, or anything with the same four parts."""

    @property
    def action(self) -> str:
        """Canonical verb."""

    @property
    def entities(self) -> Sequence[str]:
        """Resources asked about."""

    @property
    def group_by(self) -> Sequence[str]:
        """Fields to group by, in order."""

    @property
    def params(self) -> Mapping[str, Json]:
        """Field → literal or structured value."""


def psk(schema: Shaped) -> str:
    """Return the Prompt Schema Key: `summarize-sale-amount_year-group_category`.

    Readable, free of values, and exactly as OneMCP writes it; different questions may share one, so
    it labels an entry and never finds one. `identity` does that.
    """
    parts = [
        schema.action,
        "_".join(sorted(schema.entities, key=_java_order)),
        "_".join(sorted(schema.params, key=_java_order)),
        "group_" + "_".join(schema.group_by) if schema.group_by else "",
    ]
    return "-".join(part for i, part in enumerate(parts) if part or i == 0)


def _java_order(text: str) -> bytes:
    # OneMCP sorts as Java does, by UTF-16 code unit; code points above U+FFFF come out elsewhere.
    return text.encode("utf-16-be", "surrogatepass")


def identity(schema: Shaped) -> str:
    """Return the SHA-256 hex of what shapes a plan for `schema`; equal ones may share a plan.

    In it: action, entities as a set, group_by in order, and for each parameter its name, operators,
    aggregates, and whether its value is one or many; `sort_by` and `order` with their values. Not
    in it: values to bind, how many a list holds, spelling of an operator, order of parameters.
    """
    entities: list[Json] = [*sorted(set(schema.entities))]
    params: JsonObject = {name: _param_shape(name, value) for name, value in schema.params.items()}
    return digest([schema.action, entities, [*schema.group_by], params])


def _param_shape(name: str, value: Json) -> Json:
    if name in {"sort_by", "order"}:
        return ["is", value]
    return _shape(value)


def _shape(value: Json) -> Json:
    """Return `value` without what a binding would replace."""
    match value:
        case dict():
            return {key: _member_shape(key, item) for key, item in value.items()}
        case list():
            return ["many"]
        case None:
            return ["null"]
        case _:
            return ["one"]


def _member_shape(key: str, value: Json) -> Json:
    if key == "operand":
        return _shape(value)
    if key == "operator" and isinstance(value, str):
        return ["is", operator_name(value) or value]
    if key == "aggregate" and isinstance(value, str):
        return ["is", aggregate_name(value) or value]
    # A member that nobody described may mean anything; only equal values share a plan.
    return ["is", value]
