"""Leaves: the values of a plan, what each is for, and by which names it goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from semcache.canonical import Json, JsonObject, Pointer
from semcache.prompts.parameter import name_key

Role: TypeAlias = Literal["data", "reference", "structure"]
"""`data`: handed to an operation or returned. `reference`: a path that an engine evaluates.
`structure`: what the plan is made of (ids, routes, conditions, operation names)."""

GENERIC = frozenset(
    [
        "arg",
        "args",
        "argument",
        "arguments",
        "content",
        "data",
        "element",
        "elements",
        "eq",
        "equals",
        "gt",
        "gte",
        "in",
        "input",
        "is",
        "item",
        "items",
        "like",
        "lt",
        "lte",
        "ne",
        "neq",
        "operand",
        "operands",
        "operator",
        "param",
        "parameter",
        "parameters",
        "params",
        "rhs",
        "right",
        "text",
        "v",
        "val",
        "value",
        "values",
        "var",
        "vars",
    ]
)
"""Keys that say how a value is held and not what it is."""
_LABELS = ("field", "name", "column", "key", "param", "parameter", "property", "attribute")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a plan: a scalar, or a container that may be a parameter as a whole."""

    at: Pointer
    value: Json
    """As the engine would hand it on."""
    role: Role
    names: tuple[str, ...]
    """What it is called, spelled alike (`name_key`), nearest first: its key, the name that a
    sibling gives it (`{"field": "year", "value": 2024}`), the key of what holds it."""

    @property
    def telling(self) -> bool:
        """Whether a name says what the value is."""
        return any(name not in GENERIC for name in self.names)


def format_of(plan: JsonObject) -> str:
    """Return the format of a plan: `routes`, `tasks`, or `document` for any other object."""
    if "start_node" in plan:
        return "routes"
    return "tasks" if isinstance(plan.get("tasks"), list) else "document"


def survey(plan: JsonObject) -> Iterator[Leaf]:
    """Yield each scalar and each container below the root of `plan`, parents first."""
    is_data = _REGIONS[format_of(plan)]
    for at, value, names in _walk(plan, (), ()):
        role: Role = "structure"
        if is_data(at):
            role, value = _role(value)  # noqa: PLW2901 - `$$5` is handed on as `$5`
        yield Leaf(at, value, role, names)


def _role(value: Json) -> tuple[Role, Json]:
    if not isinstance(value, str) or not value.startswith("$"):
        return "data", value
    if value.startswith("${{params."):
        return "data", value  # a price, "${{params.amount}}"; once filled, it is data
    return ("data", value[1:]) if value.startswith("$$") else ("reference", value)


def _in_node(at: Pointer) -> bool:
    return len(at) >= 2 and at[1] in {"input", "vars"}


def _in_task(at: Pointer) -> bool:
    return len(at) >= 3 and at[0] == "tasks" and at[2] == "input"


def _anywhere(at: Pointer) -> bool:
    return bool(at)


_REGIONS = {"routes": _in_node, "tasks": _in_task, "document": _anywhere}


def _walk(
    value: Json, at: Pointer, names: tuple[str, ...]
) -> Iterator[tuple[Pointer, Json, tuple[str, ...]]]:
    if at:
        yield at, value, names
    if isinstance(value, dict):
        label = _label(value)
        for key, item in value.items():
            yield from _walk(item, (*at, key), _names(key, label, names))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*at, i), names)


def _label(holder: JsonObject) -> str:
    for key in _LABELS:
        label = holder.get(key)
        if isinstance(label, str):
            return name_key(label)
    return ""


def _names(key: str, label: str, above: tuple[str, ...]) -> tuple[str, ...]:
    own = name_key(key)
    if own not in GENERIC:
        return (own,)
    # A key that only says "value" leaves the naming to its sibling, or to what holds it.
    return (own, *((label,) if label else above))
