"""Schemas of an OpenAPI document as JSON Schema (2020-12) that stands on its own.

References become entries of `$defs`, so a recursive schema stays as small as it is. What OpenAPI
3.0 says otherwise (`nullable`, boolean `exclusiveMinimum`) is translated; 3.1 speaks JSON Schema.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from semcache.canonical import Json, JsonObject, as_object
from semcache.errors import InvalidOperation
from semcache.sources.documents import Documents

MAX_DEFINITIONS = 50  # that one schema carries; the farthest are left open beyond
MAX_IN_PLACE = 1_000  # schemas that one value is held against at once, by `allOf` of `allOf`…
MAX_TEXT = 500  # characters of a description; a planner reads all of them

# Notes, dialects and anchors that mean nothing outside the document.
_DROPPED = frozenset({
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$schema",
    "definitions", "discriminator", "example", "examples", "externalDocs", "nullable", "title",
    "xml",
})  # fmt: skip
_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLES = frozenset({
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
# Keywords whose schemas look at the same value again: circles of these never end.
_IN_PLACE = frozenset({
    "$ref", "allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then",
})  # fmt: skip


@dataclass(slots=True)
class Uses:
    """The definitions that a schema refers to."""

    names: list[str] = field(default_factory=list)
    in_place: list[str] = field(default_factory=list)
    """Those that look at the same value as the schema itself."""


@dataclass(frozen=True, slots=True)
class _Definition:
    schema: Json
    uses: Uses


class Definitions:
    """Translates the schemas of one document; each referred schema once."""

    def __init__(self, documents: Documents, *, old: bool) -> None:
        """Keep the documents; `old`: whether they are of OpenAPI 3.0."""
        self._documents = documents
        self._old = old
        self._names: dict[str, str] = {}
        self._origins: dict[str, tuple[Json, str]] = {}
        self._known: dict[str, _Definition] = {}
        self._costs: dict[str, int] = {}

    def schema(self, node: Json, base: str, uses: Uses) -> Json:
        """Return the schema `node` of the document `base`; what it refers to is added to `uses`.

        Raises:
            InvalidOperation: a reference leads nowhere, in a circle, or where it must not.
        """
        return self._schema(node, base, uses, in_place=True)

    def gathered(self, uses: Uses) -> JsonObject:
        """Return the `$defs` for these uses, nearest first: theirs, and those that they refer to.

        Beyond `MAX_DEFINITIONS` a definition is `{}`, which any value fits.

        Raises:
            InvalidOperation: a schema holds itself for the same value, or too many others.
        """
        found: JsonObject = {}
        waiting = deque(uses.names)
        while waiting:
            name = waiting.popleft()
            if name in found:
                continue
            if len(found) >= MAX_DEFINITIONS:
                found[name] = {}
                continue
            self._cost(name, ())
            definition = self._definition(name)
            found[name] = definition.schema
            waiting.extend(definition.uses.names)
        return found

    def _schema(self, node: Json, base: str, uses: Uses, *, in_place: bool) -> Json:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            return {}
        if isinstance(node.get("$ref"), str):
            return self._reference(node, base, uses, in_place=in_place)
        schema: JsonObject = {}
        for keyword, argument in node.items():
            if keyword not in _DROPPED and not keyword.startswith("x-"):
                again = in_place and keyword in _IN_PLACE
                schema[keyword] = self._keyword(keyword, argument, base, uses, in_place=again)
        return _mended(_nullable(_bounds(schema)) if self._is_nullable(node) else _bounds(schema))

    def _is_nullable(self, node: JsonObject) -> bool:
        return self._old and node.get("nullable") is True

    def _keyword(
        self, keyword: str, argument: Json, base: str, uses: Uses, *, in_place: bool
    ) -> Json:
        def inner(node: Json) -> Json:
            return self._schema(node, base, uses, in_place=in_place)

        if keyword in _MAPS and isinstance(argument, dict):
            return {name: inner(node) for name, node in argument.items()}
        if keyword in _LISTS and isinstance(argument, list):
            return list(map(inner, argument))
        if keyword in _SINGLES:
            return inner(argument)
        if keyword == "description":
            return shortened(argument)
        return argument

    def _reference(self, node: JsonObject, base: str, uses: Uses, *, in_place: bool) -> JsonObject:
        """Return a reference into `$defs`; in 3.0 nothing beside it counts but the description."""
        beside = {k: v for k, v in node.items() if k != "$ref"}
        if self._old:
            beside = {k: v for k, v in beside.items() if k == "description"}
        told = self._schema(beside, base, uses, in_place=in_place)
        located = self._documents.follow(node, base)
        name = self._named(located.uri)
        self._origins[name] = (located.value, located.base)
        uses.names.append(name)
        if in_place:
            uses.in_place.append(name)
        return {"$ref": f"#/$defs/{name}", **(as_object(told))}

    def _named(self, uri: str) -> str:
        """Return a short name for the schema at `uri`, the same each time and no other's."""
        if uri not in self._names:
            last = re.sub(r"\W+", "_", unquote(uri).rsplit("/", 1)[-1]).strip("_") or "schema"
            taken = set(self._names.values())
            name = next(n for n in _numbered(last) if n not in taken)
            self._names[uri] = name
        return self._names[uri]

    def _definition(self, name: str) -> _Definition:
        if name not in self._known:
            node, base = self._origins[name]
            uses = Uses()
            schema = self.schema(node, base, uses)
            self._known[name] = _Definition(schema, uses)
        return self._known[name]

    def _cost(self, name: str, above: tuple[str, ...]) -> int:
        """Return how many definitions one value is held against under `name`."""
        if name in above or len(above) > MAX_DEFINITIONS:
            raise InvalidOperation(
                f"the schema {name!r} of the document holds itself for the same value; "
                "expected a property, or items, in between"
            )
        if name not in self._costs:
            inner = self._definition(name).uses.in_place
            cost = 1 + sum(self._cost(one, (*above, name)) for one in inner)
            if cost > MAX_IN_PLACE:
                raise InvalidOperation(
                    f"the schema {name!r} of the document combines over {MAX_IN_PLACE} others"
                )
            self._costs[name] = cost
        return self._costs[name]


def _numbered(name: str) -> Iterable[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(2, 10**9))


def _bounds(schema: JsonObject) -> JsonObject:
    """Return `schema` with the boolean `exclusiveMinimum` of 3.0 as the number that it is about."""
    for exclusive, inclusive in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        said = schema.get(exclusive)
        if isinstance(said, bool):
            del schema[exclusive]
            if said and inclusive in schema:
                schema[exclusive] = schema.pop(inclusive)
    return schema


def _nullable(schema: JsonObject) -> JsonObject:
    """Return `schema` open to null."""
    kind = schema.get("type")
    if isinstance(kind, str) and not _IN_PLACE & schema.keys():
        schema["type"] = [kind, "null"]
        if isinstance(listed := schema.get("enum"), list) and None not in listed:
            schema["enum"] = [*listed, None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _mended(schema: JsonObject) -> JsonObject:
    """Return `schema` without keywords that no validator of ours can read.

    Patterns are of ECMAScript, and a document may hold slips such as `required: true` at a
    property. The service has the last word on its input anyhow.
    """
    return {
        keyword: argument
        for keyword, argument in schema.items()
        if keyword not in _READABLE or _is_readable(_READABLE[keyword], argument)
    }


def _is_readable(expected: TypeAdapter[object], argument: Json) -> bool:
    try:
        expected.validate_python(argument, strict=True)
    except (ValidationError, RecursionError, OverflowError):
        return False
    return True


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(str(error)) from error
    return pattern


def _adapters(expected: Any, *keywords: str) -> dict[str, TypeAdapter[object]]:  # noqa: ANN401 - any type
    return dict.fromkeys(keywords, TypeAdapter(expected))


_Type = Literal["array", "boolean", "integer", "null", "number", "object", "string"]
_READABLE: dict[str, TypeAdapter[object]] = {
    **_adapters(Annotated[list[object], Field(min_length=1)],
                "allOf", "anyOf", "enum", "oneOf", "prefixItems"),
    **_adapters(dict[str, object], "dependentSchemas", "patternProperties", "properties"),
    **_adapters(str, "description", "format", "title"),
    **_adapters(int | float, "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"),
    **_adapters(Annotated[int, Field(ge=0)], "maxItems", "maxLength", "maxProperties",
                "minItems", "minLength", "minProperties"),
    **_adapters(Annotated[str, AfterValidator(_compiled)], "pattern"),
    **_adapters(list[str], "required"),
    **_adapters(_Type | Annotated[list[_Type], Field(min_length=1)], "type"),
}  # fmt: skip


def shortened(text: Json) -> str:
    """Return a description on one line, cut to what a planner needs."""
    told = " ".join(text.split()) if isinstance(text, str) else ""
    return told if len(told) <= MAX_TEXT else f"{told[: MAX_TEXT - 1]}…"
