"""Data edges: what steps before give, in the properties that take it.

The answer of a person goes by its topic; the result of an operation by the members that its output
schema names, by what the operation is about (`customer.id` is a `customer_id`), or whole where one
place is left. A list that meets a property which takes one of it becomes a call for each item.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, as_object
from semcache.catalog.builtin import ASK_USER
from semcache.catalog.operation import Operation
from semcache.catalog.schemas import choices, types
from semcache.planners.arguments.input_fields import InputField, likeness, mapped
from semcache.planners.arguments.operation_index import known_as
from semcache.planners.arguments.synonyms import words
from semcache.planners.rows import ENVELOPES
from semcache.planners.steps.resolution import DataEdge, Resolution, ResolutionContext
from semcache.planners.transforms import FILTER, LIMIT, SORT

_SURE = 0.85  # likeness of a member and a property that are the same thing
_IDS = ("id", "number", "key", "code", "name")


@dataclass(frozen=True, slots=True)
class _Output:
    """Something that a step's result has."""

    path: tuple[str, ...]
    each: bool
    """Whether `path` leads to a list."""
    item: str
    """Member of an item of that list; empty for the item itself, or where there is no list."""
    names: tuple[str, ...]
    """What it may be called."""
    types: frozenset[str]


def wired(
    steps: Sequence[str],
    *,
    asked: ResolutionContext,
    places: Sequence[InputField],
    about: tuple[str, ...],
) -> tuple[tuple[DataEdge, ...], tuple[str, ...]]:
    """Return a wire for each of `places` that one of the `steps` fills, and the topics left over.

    A topic is left over if no property, or more than one, means it.
    """
    before = [asked.before[step] for step in steps if step in asked.before]
    answers = [one for one in before if one.operation == ASK_USER]
    found = mapped([_topic(one) for one in answers], places, about=about)
    wires = [DataEdge(p.place.name, answers[p.given].intent) for p in found.pairs]
    lost = [_topic(answers[i]) for i in (*found.left, *(i for i, _ in found.ambiguous))]
    for one in before:
        if one.operation == ASK_USER or one.operation not in asked.catalog:
            continue
        taken = {wire.property for wire in wires}
        free = [place for place in places if place.name not in taken]
        wires += _from(one, _Result.of(one, asked), free)
    return tuple(wires), tuple(lost)


@dataclass(frozen=True, slots=True)
class _Result:
    """What a step gives."""

    schema: JsonObject
    nouns: tuple[str, ...]

    @classmethod
    def of(cls, step: Resolution, asked: ResolutionContext) -> "_Result":
        """Return what `step` gives: rows that were filtered, sorted or cut are rows as before."""
        source = given_by(step, asked)
        operation = asked.catalog.get(source.operation)
        nouns = known_as(operation, asked.catalog).nouns
        if source is step:
            return cls(operation.output_schema, nouns)
        root = operation.output_schema
        found = _listed(root, root, ())
        shared: JsonObject = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return cls({"type": "array", "items": {} if found is None else found[1], **shared}, nouns)


def given_by(step: Resolution, asked: ResolutionContext) -> Resolution:
    """Return the step whose rows `step` gives: itself, unless it only filters, sorts or cuts."""
    seen = {step.intent}
    while step.operation in {FILTER, SORT, LIMIT} and step.wires:
        before = asked.before.get(step.wires[0].step)
        if before is None or before.intent in seen or before.operation not in asked.catalog:
            break
        step = before
        seen.add(step.intent)
    return step


def _topic(answer: Resolution) -> str:
    return str(answer.input.get("topic", ""))


def _from(step: Resolution, result: _Result, free: Sequence[InputField]) -> Iterator[DataEdge]:
    """Yield the wires from one step's result: by name, else the one that must be filled."""
    outputs = list(_outputs(result))
    filled = set()
    nouns = set(result.nouns)
    for place in free:
        # What may be left out is filled only by a thing that it is named for.
        if not place.required and nouns.isdisjoint(words(place.name)):
            continue
        best = max(
            ((_fit(one, place), one) for one in outputs),
            key=lambda pair: pair[0],
            default=(0.0, None),
        )
        if best[1] is not None and best[0] >= _SURE:
            filled.add(place.name)
            yield _wire(step, best[1], place)
    needed = [one for one in free if one.required and not one.has_default]
    if not filled and len(needed) == 1 and _may_be(result.schema, outputs, needed[0]):
        yield _whole(step, outputs, needed[0])


def _may_be(root: JsonObject, outputs: Sequence[_Output], place: InputField) -> bool:
    """Return whether a whole result, or one of its list, may go where `place` is.

    An object does not go where a number or a text is wanted. What nobody knows may be a number,
    which is seen when the plan runs; anything could be taken for a text.
    """
    if place.takes_whole:
        return True
    listed = [one for one in outputs if one.each and not one.item]
    kinds = listed[0].types if listed else frozenset(types(root, root)) - {"null"}
    return not kinds.isdisjoint(place.types) if kinds else "string" not in place.types


def _fit(one: _Output, place: InputField) -> float:
    if one.types and place.types and not _compatible(one, place):
        return 0.0
    if not (place.takes_whole or one.types or one.item):
        return 0.0
    return max(likeness(name, place) for name in one.names)


def _compatible(one: _Output, place: InputField) -> bool:
    if one.types & place.types or "array" in place.types:
        return True
    numbers = {"integer", "number"}
    return bool(one.types & numbers and place.types & (numbers | {"string"})) or (
        "string" in one.types and bool(place.types & numbers)
    )


def _wire(step: Resolution, one: _Output, place: InputField) -> DataEdge:
    one_each = one.each and "array" not in place.types
    return DataEdge(place.name, step.intent, one.path, each=one_each, item=one.item)


def _whole(step: Resolution, outputs: Sequence[_Output], place: InputField) -> DataEdge:
    """Return the wire of a whole result to the one place that needs something."""
    listed = [one for one in outputs if one.each and not one.item]
    if place.takes_whole or not listed:
        return DataEdge(place.name, step.intent)
    return DataEdge(place.name, step.intent, listed[0].path, each=True)


def _outputs(result: _Result) -> Iterator[_Output]:
    """Yield what a result has: its members, and those of the items of its list.

    Nothing for a result without a schema.
    """
    root, nouns = result.schema, result.nouns
    yield from _members(root, root, (), nouns)
    listed = _listed(root, root, ())
    if listed is not None:
        path, items = listed
        kinds = frozenset(types(items, root) - {"null"})
        yield _Output(path, True, "", (" ".join(nouns) or "items",), kinds)
        for one in _members(items, root, (), nouns):
            if len(one.path) == 1:
                yield _Output(path, True, one.path[0], one.names, one.types)


def _members(
    schema: Json, root: JsonObject, above: tuple[str, ...], nouns: tuple[str, ...]
) -> Iterator[_Output]:
    for name, described in _properties(schema, root).items():
        kinds = frozenset(types(described, root) - {"null"})
        if "array" in kinds:
            continue
        own = (name, f"{' '.join(nouns)} {name}") if nouns else (name,)
        bare = words(name)[-1:] == words(name) and name.lower() in _IDS
        named = own[1:] if bare and nouns else own
        yield _Output((*above, name), False, "", named, kinds)


def _properties(schema: Json, root: JsonObject) -> JsonObject:
    found: JsonObject = {}
    for part in choices(schema, root):
        found |= as_object(part.get("properties"))
    return found


def _listed(
    schema: Json, root: JsonObject, path: tuple[str, ...]
) -> tuple[tuple[str, ...], Json] | None:
    """Return the way to the list that a result is or has, and the schema of its items."""
    parts = choices(schema, root)
    for part in parts:
        if part.get("type") == "array" or "items" in part:
            return path, part.get("items", {})
    lists = {
        name: described
        for name, described in _properties(schema, root).items()
        if "array" in types(described, root)
    }
    names = [name for name in ENVELOPES if name in lists] or list(lists)
    if path or not names or (len(lists) > 1 and names[0] not in ENVELOPES):
        return None
    return _listed(lists[names[0]], root, (names[0],))


def list_path(root: JsonObject) -> tuple[str, ...]:
    """Return the members that lead from a result of this schema to its list; empty if unknown."""
    found = _listed(root, root, ())
    return () if found is None else found[0]


def item_fields(root: JsonObject) -> JsonObject:
    """Return field → schema of the items of the list that a result has; empty if unknown."""
    found = _listed(root, root, ())
    return {} if found is None else _properties(found[1], root)


def gives(operation: Operation, wire: DataEdge) -> frozenset[str]:
    """Return the JSON types of what a wire takes from an operation; empty if unknown."""
    root = operation.output_schema
    schema: Json = root
    for name in wire.path:
        schema = _properties(schema, root).get(name, {})
    if wire.each or wire.item:
        found = _listed(schema, root, wire.path)
        schema = {} if found is None else found[1]
        schema = _properties(schema, root).get(wire.item, {}) if wire.item else schema
    return frozenset(types(schema, root) - {"null"})
