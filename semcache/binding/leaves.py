"""Leaves: the values of a plan, what each is for, and by which names it goes."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from semcache.binding.texts.part import Part
from semcache.binding.texts.parts import parts
from semcache.canonical import Json, JsonObject, Pointer
from semcache.plans.codec import adopt
from semcache.plans.program import (
    NAMING,
    STRUCTURE,
    Bound,
    ProgramPlan,
    variable,
    variables,
)
from semcache.prompts.parameter import name_key

Role: TypeAlias = Literal["data", "reference", "structure", "name"]
"""`data`: handed to an operation or returned. `reference`: a path that an engine evaluates.
`structure`: what the plan is made of (ids, routes, conditions, operation names). `name`: what a
program calls a variable of its own, which says nothing of any value."""

GENERIC = frozenset({
    "arg", "args", "argument", "arguments", "content", "data", "element", "elements", "eq",
    "equals", "gt", "gte", "in", "input", "is", "item", "items", "like", "lt", "lte", "ne", "neq",
    "operand", "operands", "operator", "param", "parameter", "parameters", "params", "rhs",
    "right", "text", "v", "val", "value", "values", "var", "vars",
})  # fmt: skip
"""Keys that say how a value is held and not what it is."""
_LABELS = (
    "field", "name", "column", "key", "param", "parameter", "property", "attribute", "var_name",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where in a text of the plan a leaf stands, and how it is spelled there."""

    at: Pointer
    """Where the text stands."""
    inside: Pointer
    """Keys and positions inside the text, if its language has such."""
    writers: tuple[str, ...]
    """Codecs that spell a value there, the innermost first."""
    codec: str
    """Codec whose form a value must have there; empty: that of its type."""
    holders: tuple[Pointer, ...]
    """Places of the leaves of the same text that it is inside of."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a plan: a scalar, or a container that may be a parameter as a whole."""

    at: Pointer
    """Two numbers below a text are those characters of it."""
    value: Json
    """As the engine would hand it on."""
    role: Role
    names: tuple[str, ...]
    """What it is called, spelled alike (`name_key`), nearest first: its key, the name that a
    sibling gives it (`{"field": "year", "value": 2024}`), the key of what holds it."""
    text: "TextPlace | None" = None
    """Where it stands in a text; None for a value of its own."""
    rest: str | None = None
    """Of a text that spells other leaves: what it says beside them. None for any other."""

    def is_within(self, places: Container[Pointer], *, strictly: bool = False) -> bool:
        """Return whether it is inside of one of `places`, or, unless `strictly`, is one."""
        at = self.at if self.text is None else self.text.at
        above = [at[:size] for size in range(1, len(at) + (self.text is not None))]
        above += () if self.text is None else self.text.holders
        return any(each in places for each in above) or (not strictly and self.at in places)

    @property
    def telling(self) -> bool:
        """Whether a name says what the value is."""
        return any(name not in GENERIC for name in self.names)


def own_names(plan: JsonObject) -> frozenset[str]:
    """Return the names that a program gives to its variables; none for any other plan."""
    read = adopt(plan)
    steps = read.instructions() if isinstance(read, ProgramPlan) else ()
    return frozenset(name for step in steps for name in step.sets)


def survey(plan: JsonObject) -> Iterator[Leaf]:
    """Yield each scalar and each container below the root of `plan`, parents first.

    Below a text in JSON, SQL or the like come the values that it spells: see `texts`.
    """
    plan_format = adopt(plan).format
    if plan_format == ProgramPlan.format:
        for leaf in _survey_program(plan):
            # There a text may hold references as well: what is one is never read as another thing.
            reads = isinstance(leaf.value, str) and any(s in leaf.value for s in ("{{", "${"))
            yield from (leaf,) if reads else _with_parts(leaf)
        return
    is_data = _REGIONS[plan_format]
    for at, value, names in _walk(plan, (), ()):
        role: Role = "structure"
        if is_data(at):
            role, value = _role(value)  # noqa: PLW2901 - `$$5` is handed on as `$5`
        yield from _with_parts(Leaf(at, value, role, names))


def _with_parts(leaf: Leaf) -> Iterator[Leaf]:
    """Yield a leaf, and the values that it spells if it is a text that does."""
    is_text = isinstance(leaf.value, str) and leaf.role == "data"
    found = parts(str(leaf.value)) if is_text else None
    yield leaf if found is None else replace(leaf, rest=found[1])
    holders: list[Part] = []
    for part in found[0] if found else ():
        holders = [each for each in holders if part.end <= each.end]
        above = tuple((*leaf.at, each.start, each.end) for each in holders)
        holders.append(part)
        place = TextPlace(leaf.at, part.inside, part.writers, part.codec, above)
        role: Role = "structure" if part.fixed else "data"
        at, names = (*leaf.at, part.start, part.end), part.names or leaf.names
        yield Leaf(at, part.value, role, names, place, part.rest)


def _survey_program(plan: JsonObject) -> Iterator[Leaf]:
    own = own_names(plan)
    named: Pointer | None = None
    for at, value, names in _walk(plan, (), ()):
        if variable(value) is not None:
            named = (*at, "var")
        yield Leaf(at, value, "name" if at == named else _program_role(at, value, own), names)


def _program_role(at: Pointer, value: Json, own: frozenset[str]) -> Role:
    """Return the role of a value of a program, in which only references are evaluated."""
    if len(at) < 4 or at[2] != "parameters":
        return "structure"
    if at[3] in STRUCTURE:
        return "name" if at[3] in NAMING else "structure"
    if isinstance(value, str) and "{{params." in value:
        return "data"  # beside a placeholder, references stay what they are: see `bind`
    reads = any(read.name in own for _, read in variables(value, at, _NOTHING))
    return "reference" if reads else "data"


_NOTHING = Bound(frozenset(), {})


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
