"""A JSON Schema: its breaches, the closed sets of values that it declares, the types it takes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from semcache.canonical import Json, JsonObject, Pointer, as_list, as_object, pointer_text
from semcache.catalog.fit import Check, quick_check
from semcache.errors import InvalidOperation
from semcache.process.imports import ensure_imported

MAX_WHAT = 200  # characters; a validator quotes the whole value that it dislikes

# What shapes a query rather than filtering it: their enums list operators and columns, and a word
# like "category" in a prompt is not a value of the data.
CONTROL_FIELDS = frozenset({
    "aggregate", "direction", "field", "fields", "format", "function", "group_by", "operator",
    "order", "order_by", "sort_by",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a value breaks its schema."""

    at: Pointer
    """Where in the value."""
    what: str
    """What is wrong there."""
    keyword: str
    """The keyword of JSON Schema that is broken: `required`, `type`, `enum`."""

    def __str__(self) -> str:
        return f"{pointer_text(self.at)}: {self.what}" if self.at else self.what


class _Broken(Protocol):
    @property
    def absolute_path(self) -> Iterable[str | int]: ...
    @property
    def message(self) -> str: ...
    @property
    def validator(self) -> object: ...


class _Validator(Protocol):
    def iter_errors(self, instance: Json, /) -> Iterable[_Broken]: ...


class Schema:
    """A JSON Schema (2020-12), compiled on first use. Safe from several threads."""

    __slots__ = ("_document", "_fits", "_name", "_validator")

    def __init__(self, document: JsonObject, *, name: str) -> None:
        self._document = document
        self._fits: Check | None = None
        self._name = name
        self._validator: _Validator | None = None

    def violations(self, value: Json) -> tuple[Violation, ...]:
        """Return every way in which `value` breaks the schema, by place.

        Cost: microseconds for a value that fits a usual schema, else some 0.1 ms.

        Raises:
            InvalidOperation: the schema itself is not a JSON Schema.
        """
        if self._fits is None:
            self._fits = quick_check(self._document)
        if self._fits(value):
            return ()
        if self._validator is None:
            self._validator = _compiled(self._document, self._name)
        found = [_violation(error) for error in self._validator.iter_errors(value)]
        return tuple(sorted(found, key=lambda found: (pointer_text(found.at), found.what)))


def _compiled(document: JsonObject, name: str) -> _Validator:
    # Imported here since it takes 0.1 s that a template-tier hit never needs.
    ensure_imported("jsonschema")
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - see the line above

    try:
        Draft202012Validator.check_schema(document)
    except SchemaError as error:
        raise InvalidOperation(
            f"the input schema of operation {name!r} is not a JSON Schema: {error.message}"
        ) from error
    validator: _Validator = Draft202012Validator(document)
    return validator


def _violation(error: _Broken) -> Violation:
    message = error.message
    what = message if len(message) <= MAX_WHAT else f"{message[:MAX_WHAT]}…"
    return Violation(tuple(error.absolute_path), what, str(error.validator))


def enums(schema: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each property, at any depth, that takes one of a few texts, with those texts.

    Properties that shape a query (operators, columns to group by) are left out.
    """
    for name, described in properties(schema):
        values = texts(described, schema)
        if values and name not in CONTROL_FIELDS:
            yield name, values


def properties(schema: JsonObject) -> Iterator[tuple[str, Json]]:
    """Yield name and description of each property, at any depth, definitions included."""
    definitions = schema.get("$defs")
    for document in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        yield from _properties(document)


def _properties(document: Json) -> Iterator[tuple[str, Json]]:
    if not isinstance(document, dict):
        return
    declared = document.get("properties")
    for name, described in declared.items() if isinstance(declared, dict) else ():
        yield name, described
        if isinstance(described, dict):
            yield from _properties(described)
            yield from _properties(described.get("items"))


OTHERWISE = ("anyOf", "oneOf", "items")
"""Keywords under which stands what else a value may be, the items of a list among it."""


def alternatives(
    described: Json, root: JsonObject, keywords: Sequence[str] = OTHERWISE
) -> Iterator[JsonObject]:
    """Yield what a property may be: itself and what stands under `keywords`, references followed.

    What a schema refers to is yielded once, so that one which refers to itself ends; the last ones
    are the plainest.
    """
    yield from _unseen(described, root, keywords, set())


def _unseen(
    described: Json, root: JsonObject, keywords: Sequence[str], seen: set[str]
) -> Iterator[JsonObject]:
    part = as_object(described)
    reference = part.get("$ref")
    if isinstance(reference, str):
        if reference in seen:
            return
        seen.add(reference)
        definitions = as_object(root.get("$defs")) or as_object(root.get("definitions"))
        target = as_object(definitions.get(reference.rsplit("/", 1)[-1]))
        part = target | {key: value for key, value in part.items() if key != "$ref"}
    yield part
    for keyword in keywords:
        inner = part.get(keyword)
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, dict):
                yield from _unseen(one, root, keywords, seen)


def listed_values(part: JsonObject) -> list[Json]:
    """Return the values that a schema lists: its enum, and its constant if it has one."""
    values = part.get("enum")
    constant = [part["const"]] if "const" in part else []
    return [*as_list(values), *constant]


def texts(
    described: Json, root: JsonObject, keywords: Sequence[str] = OTHERWISE
) -> tuple[str, ...]:
    """Return the texts that a schema lists, over all its alternatives, each once."""
    values = (
        value for part in alternatives(described, root, keywords) for value in listed_values(part)
    )
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))


MAX_CHOICES = 1000  # of one schema; a document with more alternatives is not read to its end


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
        found.update(map(_type_of, listed_values(choice)))
    return found


def _type_of(value: Json) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")
