"""Placeholders: `{{params.a.b}}` in a plan, written by a planner to say where a value goes."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from semcache.binding.bindings import Filling
from semcache.binding.leaves import Leaf
from semcache.binding.texts.parts import written
from semcache.canonical import (
    Json,
    JsonObject,
    Pointer,
    as_object,
    pointer_text,
    value_at,
    with_texts,
)
from semcache.catalog.schemas import choices, types
from semcache.errors import BindingError
from semcache.plans.codec import adopt
from semcache.plans.program import ProgramPlan
from semcache.plans.tasks import CONSTANTS, TaskPath, TaskPlan, parse
from semcache.prompts.parameter import Parameter, name_key

_PLACEHOLDER = re.compile(r"\{\{\s*params\.([^{}]*?)\s*\}\}")
_STEP = re.compile(r"\[(\d+)\]")
_PATH = re.compile(r"[\w-]+(?:\[\d+\])*(?:\.[\w-]+(?:\[\d+\])*)*")

Schemas: TypeAlias = Mapping[str, JsonObject]
"""Operation name → JSON Schema of its input."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder in a text."""

    start: int
    end: int
    name: str
    """What it names, as written: `amount.operand`."""


def placeholder(name: str) -> str:
    """Return the text that stands for the value of a parameter in a plan."""
    return f"{{{{params.{name}}}}}"


def without_placeholders(given: JsonObject, params: Iterable[Parameter]) -> JsonObject:
    """Return a copy of `given` with the values of `params` for the texts that stand for them."""
    values: JsonObject = {placeholder(one.name): one.value for one in params}
    return as_object(with_texts(given, lambda text: values.get(text, text)))


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of `text` in order."""
    if "{{" not in text:
        return ()
    return tuple(Placeholder(m.start(), m.end(), m[1]) for m in _PLACEHOLDER.finditer(text))


def resolve(written: str, params: Mapping[str, Parameter]) -> tuple[str, Pointer]:
    """Return the parameter that a placeholder names, and the path into its value.

    The exact flat name comes first (`amount.operand`), then the longest name that leads into an
    object. `params` is by `name_key`.

    Raises:
        BindingError: no parameter is named so, or its value has no such part.
    """
    if _PATH.fullmatch(written):
        parts = _parts(written)
        for size in range(len(parts), 0, -1):
            name = name_key(".".join(map(str, parts[:size])))
            if name in params and _has(params[name].value, parts[size:]):
                return params[name].name, parts[size:]
    known = ", ".join(repr(p.name) for p in params.values()) or "none"
    raise BindingError(
        f"the plan has the placeholder {{{{params.{written}}}}}; the parameters are {known}",
        reason="placeholder",
    )


def _parts(written: str) -> Pointer:
    parts: list[str | int] = []
    for piece in written.split("."):
        parts.append(_STEP.sub("", piece))
        parts += map(int, _STEP.findall(piece))
    return tuple(parts)


def _has(value: Json, path: Pointer) -> bool:
    try:
        value_at(value, path)
    except LookupError:
        return False
    return True


def fill(
    plan: JsonObject,
    leaves: Sequence[Leaf],
    params: Sequence[Parameter],
    said: Sequence[str],
    schemas: Schemas,
) -> list[Filling]:
    """Return a filling for each placeholder of a plan.

    `said` is what the prompt's user wrote: text of theirs that looks like a placeholder is data.

    Raises:
        BindingError: a placeholder names no parameter, stands in a key, a path or a condition, or
            may be the user's own text.
    """
    known = {name_key(p.name): p for p in params}
    own = {text for text in said if _PLACEHOLDER.search(text)}
    theirs = {placeholder.name for text in own for placeholder in placeholders(text)}
    fillings: list[Filling] = []
    filled: set[Pointer] = set()
    for leaf in leaves:
        _check_key(leaf)
        found = placeholders(leaf.value) if isinstance(leaf.value, str) else ()
        if not found or _is_own(leaf, own, params) or _elsewhere(leaf, filled):
            continue
        doubtful = any(placeholder.name in theirs for placeholder in found)
        if leaf.role != "data" or doubtful:
            raise BindingError(
                f"a placeholder stands in {leaf.value!r} at {pointer_text(leaf.at)}, where "
                + ("the prompt's own text has it" if doubtful else "its value would be evaluated"),
                reason="placeholder",
            )
        filled.add(leaf.at)
        codec = codec_at(plan, leaf.at, schemas) or "any"
        named = [resolve(placeholder.name, known) for placeholder in found]
        fillings += _fillings(leaf, found, named, codec=codec)
    return fillings


def _elsewhere(leaf: Leaf, filled: Container[Pointer]) -> bool:
    """Return whether the placeholders of a text are filled in its parts, or in what holds it."""
    if leaf.rest is not None and not _PLACEHOLDER.search(leaf.rest):
        return True
    inside = leaf.text is not None and leaf.text.at in filled
    return inside or any(leaf.at[:size] in filled for size in range(1, len(leaf.at)))


def _check_key(leaf: Leaf) -> None:
    key = leaf.at[-1]
    if isinstance(key, str) and _PLACEHOLDER.search(key):
        raise BindingError(
            f"the key {key!r} at {pointer_text(leaf.at)} has a placeholder; keys are never filled",
            reason="placeholder",
        )


def _is_own(leaf: Leaf, own: set[str], params: Sequence[Parameter]) -> bool:
    if leaf.value not in own:
        return False
    return any(p.value == leaf.value and name_key(p.name) in leaf.names for p in params)


def _fillings(
    leaf: Leaf, found: Sequence[Placeholder], named: Sequence[tuple[str, Pointer]], *, codec: str
) -> list[Filling]:
    whole = len(found) == 1 and (found[0].start, found[0].end) == (0, len(str(leaf.value)))
    writers = leaf.text.writers if leaf.text else ()
    if whole:
        codec = "|".join((leaf.text.codec or "text", *writers)) if leaf.text else codec
        return [Filling(leaf.at, named[0][0], codec, named[0][1], in_text=leaf.text is not None)]
    # Among other words a value is checked not to change what they say: see `inline`.
    return [
        Filling(_span(leaf, each), param, "|".join(("inline", *writers)), path, in_text=True)
        for each, (param, path) in zip(found, named, strict=True)
    ]


def _span(leaf: Leaf, found: Placeholder) -> Pointer:
    if leaf.text is None:
        return (*leaf.at, found.start, found.end)
    text, first = str(leaf.value), int(leaf.at[-2])
    starts = (len(written(text[:at], leaf.text.writers)) for at in (found.start, found.end))
    return (*leaf.text.at, *(first + start for start in starts))


# Which JSON type a place in a plan takes, by the schema of the operation called there.

_CODECS = {
    "array": "array",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "object": "object",
    "string": "text",
}


def codec_at(plan: JsonObject, at: Pointer, schemas: Schemas) -> str | None:
    """Return the codec for the type that the schema gives the place `at`; None if it gives none.

    A place that takes several types (but for null) has none.
    """
    name, inside = _called(plan, at)
    schema = schemas.get(name)
    if schema is None:
        return None
    kinds = types(_below(schema, inside, schema), schema) - {"null"}
    return _CODECS.get(kinds.pop()) if len(kinds) == 1 else None


def _called(plan: JsonObject, at: Pointer) -> tuple[str, Pointer]:
    """Return the operation whose input holds `at`, and where in the input."""
    read = adopt(plan)
    if isinstance(read, TaskPlan) and len(at) > 3 and at[0] == "tasks":
        return _called_by_task(read, at)
    if isinstance(read, ProgramPlan):
        return _called_by_program(read, at)
    if len(at) > 2 and at[1] == "input":
        return _text(plan[str(at[0])], "operation"), at[2:]
    return "", ()


def _called_by_task(plan: TaskPlan, at: Pointer) -> tuple[str, Pointer]:
    """Return where a value goes; one of `task0` to the first input that it alone is."""
    task = next((task for task in plan.tasks if task.position == at[1]), None)
    if task is None or task.id != CONSTANTS:
        return ("", ()) if task is None else (task.service, at[3:])
    wanted = TaskPath(CONSTANTS, tuple(map(str, at[3:])))
    for reader in plan.tasks:
        for place, text in reader.references(frozenset()):
            if parse(text) == wanted:
                return reader.service, place[3:]
    return "", ()


def _called_by_program(plan: ProgramPlan, at: Pointer) -> tuple[str, Pointer]:
    if len(at) < 4 or not isinstance(at[1], int):
        return "", ()
    step = plan.instruction(at[1])
    for name, way in step.inputs:
        if at[3 : 3 + len(way)] == way:
            return step.call, (name, *at[3 + len(way) :])
    return "", ()


def _text(holder: Json, key: str) -> str:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, str) else ""


def _below(schema: Json, inside: Pointer, root: JsonObject) -> Json:
    for step in inside:
        members = [_member(choice, step) for choice in choices(schema, root)]
        schema = next((member for member in members if member is not None), None)
    return schema


def _member(schema: JsonObject, step: str | int) -> Json:
    if isinstance(step, int):
        return schema.get("items")
    properties = schema.get("properties")
    if isinstance(properties, dict) and step in properties:
        return properties[step]
    return schema.get("additionalProperties")
