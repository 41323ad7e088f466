"""What a JSON Schema says about a value, and the closed sets of values that it declares."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from semcache.canonical import Json, JsonObject, Pointer, pointer_text
from semcache.catalog.fit import Check, quick_check
from semcache.errors import InvalidOperation

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
        values = tuple(dict.fromkeys(_texts(described, schema)))
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


def alternatives(described: Json, root: JsonObject) -> Iterator[JsonObject]:
    """Yield what a property may be: itself, its items, its alternatives, references followed."""
    yield from _alternatives(described, root, seen=set())


def _alternatives(described: Json, root: JsonObject, *, seen: set[str]) -> Iterator[JsonObject]:
    """Yield the same; `seen` were followed: a schema may refer to itself, over and over."""
    if not isinstance(described, dict):
        return
    yield described
    for word in ("anyOf", "oneOf"):
        listed = described.get(word)
        for part in listed if isinstance(listed, list) else ():
            yield from _alternatives(part, root, seen=seen)
    yield from _alternatives(described.get("items"), root, seen=seen)
    reference = described.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from _alternatives(_referred(described, root), root, seen=seen)


def _texts(described: Json, root: JsonObject) -> Iterator[str]:
    for part in alternatives(described, root):
        listed = part.get("enum")
        values = [*(listed if isinstance(listed, list) else ()), part.get("const")]
        yield from (value for value in values if isinstance(value, str))


def _referred(described: JsonObject, root: JsonObject) -> Json:
    reference, definitions = described.get("$ref"), root.get("$defs")
    if isinstance(reference, str) and isinstance(definitions, dict):
        return definitions.get(reference.removeprefix("#/$defs/"))
    return None
