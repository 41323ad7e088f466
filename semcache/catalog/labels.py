"""Labels: the words that a JSON Schema has for the values which it lists: "California" for `CA`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from semcache.canonical import Json, JsonObject, as_list, as_object
from semcache.catalog.schemas import CONTROL_FIELDS, alternatives, listed_values, properties
from semcache.catalog.shape import snake

Value: TypeAlias = str | int | float | bool

LONGEST = 5
"""Words of the longest label; what is longer explains a value and does not name it."""

NAMES = (
    "enumNames", "x-enumNames", "x-enum-varnames", "x-enum-names", "x-enum-labels",
    "x-enum-descriptions", "x-enumDescriptions",
)  # fmt: skip
"""Keywords beside `enum` that tools write: a list in its order, or value → label."""


class Label(NamedTuple):
    """Words that stand for one value of a field."""

    field: str
    words: str
    value: Value


def labels(schemas: Iterable[JsonObject]) -> Mapping[str, Mapping[str, Value]]:
    """Return field → words → the value that they stand for, over all `schemas`.

    Known are constants with a `title` (or a short `description`) among the alternatives of a field,
    and names beside an `enum` (`NAMES`, and `x-ms-enum`). Left out are words that stand for two
    values, those that are listed as a value themselves, and single characters.
    """
    found: dict[str, Label] = {}
    taken: set[str] = set()
    for schema in schemas:
        for field, part in _parts(schema):
            taken.update(
                label_key(value) for value in listed_values(part) if isinstance(value, str)
            )
            for words, value in labeled(part):
                known = found.setdefault(label_key(words), Label(field, words, value))
                if (type(known.value), known.value) != (type(value), value):
                    taken.add(label_key(words))
    tables: dict[str, dict[str, Value]] = {}
    for key, label in found.items():
        if key not in taken:
            tables.setdefault(label.field, {})[label.words] = label.value
    return tables


def _parts(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield each field with each of its alternatives."""
    for field, described in properties(schema):
        if field not in CONTROL_FIELDS:
            yield from ((field, part) for part in alternatives(described, schema))


def label_key(words: str) -> str:
    """Return what words of a label are compared by."""
    return " ".join(words.casefold().split())


def labeled(part: JsonObject) -> Iterator[tuple[str, Value]]:
    """Yield words and value of each label that a field, or one of its alternatives, has itself."""
    listed = part.get("enum")
    told = [pair for name in NAMES for pair in _beside(part.get(name), listed)]
    told += _microsoft(part.get("x-ms-enum"))
    for word in ("anyOf", "oneOf"):
        constants = [*_constants(part.get(word))]
        # The title of a lone constant names the field: generators write one for every property.
        told += constants if len(constants) > 1 else ()
    for said, value in told:
        words = _words(said)
        if words and isinstance(value, str | int | float):
            yield words, value


def _constants(choices: Json) -> Iterator[tuple[Json, Json]]:
    for one in as_list(choices):
        listed = listed_values(one) if isinstance(one, dict) else []
        values = [value for value in listed if value is not None]
        if isinstance(one, dict) and len(values) == 1:
            yield one.get("title") or one.get("description"), values[0]


def _beside(names: Json, listed: Json) -> Iterator[tuple[Json, Json]]:
    """Yield each name with its value: by place in a list, or by what the value is spelled."""
    if not isinstance(listed, list):
        return
    if isinstance(names, list) and len(names) == len(listed):
        yield from zip(names, listed, strict=True)
    if isinstance(names, dict):
        yield from ((names[str(value)], value) for value in listed if str(value) in names)


def _microsoft(described: Json) -> Iterator[tuple[Json, Json]]:
    for one in as_list(as_object(described).get("values")):
        if isinstance(one, dict) and "value" in one:
            yield one.get("name"), one["value"]


def _words(said: Json) -> str:
    """Return the words of a label, `NEW_YORK` and `InProgress` taken apart; empty if it is none."""
    words = said.strip() if isinstance(said, str) else ""
    if len(words) < 2 or not any(map(str.isalpha, words)):
        return ""
    if words.isidentifier() and not words.istitle() and not (words.isupper() and "_" not in words):
        words = snake(words).replace("_", " ")
    short = len(words.split()) <= LONGEST and not words.endswith((".", "!", "?"))
    return words if short else ""
