"""What a JSON Schema says about a value, and the closed sets of values that it declares."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from semcache.canonical import Json, JsonObject, Pointer, pointer_text
from semcache.catalog.quick import Check, quick_check
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
    definitions = schema.get("$defs")
    for document in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        yield from _enums(document, schema)


def _enums(document: Json, root: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not isinstance(document, dict):
        return
    properties = document.get("properties")
    for name, described in properties.items() if isinstance(properties, dict) else ():
        values = tuple(dict.fromkeys(_texts(described, root, seen=set())))
        if values and name not in CONTROL_FIELDS:
            yield name, values
        yield from _nested(described, root)


def _nested(described: Json, root: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(described, dict):
        yield from _enums(described, root)
        yield from _enums(described.get("items"), root)


def _texts(described: Json, root: JsonObject, *, seen: set[str]) -> Iterator[str]:
    """Yield the texts that a property may be: its enum, its items', its alternatives'.

    `seen` are the references that were followed: a schema may refer to itself, over and over.
    """
    if not isinstance(described, dict):
        return
    if isinstance(values := described.get("enum"), list):
        yield from (value for value in values if isinstance(value, str))
    alternatives = described.get("anyOf")
    inner = alternatives if isinstance(alternatives, list) else []
    for part in (*inner, described.get("items")):
        yield from _texts(part, root, seen=seen)
    reference = described.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from _texts(_referred(described, root), root, seen=seen)


def _referred(described: JsonObject, root: JsonObject) -> Json:
    reference, definitions = described.get("$ref"), root.get("$defs")
    if isinstance(reference, str) and isinstance(definitions, dict):
        return definitions.get(reference.removeprefix("#/$defs/"))
    return None
