"""Types: which JSON type a place in a plan takes, by the schema of the operation called there."""

from collections.abc import Mapping
from typing import TypeAlias

from semcache.canonical import Json, JsonObject, Pointer
from semcache.catalog.schemas import listed_values
from semcache.plans.codec import adopt
from semcache.plans.program import ProgramPlan
from semcache.plans.tasks import CONSTANTS, TaskPath, TaskPlan, parse

Schemas: TypeAlias = Mapping[str, JsonObject]
"""Operation name → JSON Schema of its input."""

MAX_CHOICES = 1000  # of one schema; a document with more alternatives is not read to its end

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


def choices(schema: Json, root: JsonObject) -> list[JsonObject]:
    """Return what `schema` may be: itself, what it refers to, its alternatives; a thousand at most.

    References are looked up in `root`; one that leads nowhere, or back, adds nothing.
    """
    found: dict[int, JsonObject] = {}
    waiting: list[Json] = [schema]
    while waiting and len(found) < MAX_CHOICES:
        one = waiting.pop(0)
        if not isinstance(one, dict) or id(one) in found:
            continue
        found[id(one)] = one
        branches = [one.get(key) for key in ("anyOf", "oneOf", "allOf")]
        waiting = [
            *([_target(one["$ref"], root)] if "$ref" in one else ()),
            *(branch for listed in branches if isinstance(listed, list) for branch in listed),
            *waiting,
        ]
    return list(found.values())


def _target(reference: Json, root: JsonObject) -> Json:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Json = root
    for part in reference[2:].split("/"):
        target = target.get(part) if isinstance(target, dict) else None
    return target


def types(schema: Json, root: JsonObject) -> set[str]:
    """Return the JSON types that `schema` names, in all that it may be; empty if it names none."""
    found: set[str] = set()
    for choice in choices(schema, root):
        declared = choice.get("type")
        listed = declared if isinstance(declared, list) else [declared]
        found.update(name for name in listed if isinstance(name, str))
        found.update(map(_name, listed_values(choice)))
    return found


def _name(value: Json) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")
