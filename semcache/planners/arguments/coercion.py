"""Coercion: a value as a schema wants it, if nothing is lost on the way; else an error with why.

"10" becomes 10 where a whole number is wanted, and stays text where text is; "01234" is never a
number; "open" becomes `OPEN` where the schema lists that, and "California" becomes `CA` where it
calls that so; one value becomes a list of one. What a schema bounds otherwise (lengths, patterns,
ranges) is told by `Catalog.violations`.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial

from semcache.binding.codecs import integer, number, text
from semcache.canonical import Json, JsonObject, as_list, as_object, plain, same
from semcache.catalog.labels import label_key, labeled
from semcache.catalog.schemas import choices, types
from semcache.errors import BindingError, InvalidJson, InvalidParameter
from semcache.prompts.mentions import recognized
from semcache.prompts.parameter import name_key

_TRUE = frozenset(["true", "yes", "on"])
_FALSE = frozenset(["false", "no", "off"])
# Spaces in front are counted: a run of thousands would be read from each of them.
_SEPARATOR = re.compile(r"\s{0,99},\s*(?:and\s+|or\s+)?|\s{1,99}(?:and|or)\s+")
_DAY = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
_CLOCK = re.compile(rf"{_TIME}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?")
_MOMENT = re.compile(rf"{_DAY.pattern}[Tt ]{_TIME}(?:[Zz]|[+-][0-9]{{2}}:[0-9]{{2}})?")
MAX_DEPTH = 20
"""Levels of a value that are coerced; deeper ones are left as they are."""

Wanted = Callable[[Json], Json]


class _Lossy(Exception):
    """Why a value cannot become what is wanted; never leaves this module."""


def coerced(
    value: Json, schema: JsonObject, *, root: JsonObject | None = None, name: str = "value"
) -> Json:
    """Return `value` as `schema` wants it, nothing lost; references are looked up in `root`.

    A value that the schema takes already comes back as it is, as does any value where the schema
    does not say what it wants.

    Raises:
        InvalidParameter: it cannot become that; the message names the parameter, the value and
            what was expected.
    """
    try:
        return _coerced(value, schema, schema if root is None else root, 0)
    except _Lossy as why:
        raise InvalidParameter(f"{name!r} is {_shown(value)}: {why}") from why


def fits(value: Json, schema: JsonObject) -> bool:
    """Return whether `value` can become what `schema` wants."""
    try:
        coerced(value, schema)
    except InvalidParameter:
        return False
    return True


def _coerced(value: Json, schema: Json, root: JsonObject, depth: int) -> Json:
    parts = choices(schema, root)
    listed = [one for part in parts for one in _listed(part)]
    if listed and not isinstance(value, list):
        return _one_of(value, listed, parts)
    wanted = types(schema, root)
    if not wanted or depth > MAX_DEPTH:
        return value
    return _as_one_of(value, wanted, parts, root, depth)


def _listed(part: JsonObject) -> list[Json]:
    listed = as_list(part.get("enum"))
    return [*listed, part["const"]] if "const" in part else listed


def _free_types(parts: Iterable[JsonObject]) -> set[Json]:
    """Return the types of the alternatives that list no values."""
    free = [part.get("type") for part in parts if not _listed(part)]
    found: set[Json] = set()
    for one in free:
        found.update(one if isinstance(one, list) else [one])
    return found


def _one_of(value: Json, listed: list[Json], parts: list[JsonObject]) -> Json:
    """Return the listed value that `value` is, but for case, spelling and text for a number.

    What it is not, it may be called: the schema may have words for its values.
    """
    for alike in (same, _same_case, _same_words, _same_text):
        found = [one for one in listed if alike(one, value)]
        if len(found) == 1 or (found and alike is same):
            return found[0]
        if found:
            raise _Lossy(_any_of(found))
    if "string" in _free_types(parts):
        return value
    called = _called(value, parts)
    if len(called) == 1:
        return called[0]
    if called:
        raise _Lossy(_any_of(called))
    names = ", ".join(map(repr, listed[:20])) + (", …" if len(listed) > 20 else "")
    raise _Lossy(f"expected one of {names}")


def _any_of(found: Iterable[Json]) -> str:
    return f"it could be any of {', '.join(map(repr, found))}; spell it as one of them"


def _called(value: Json, parts: Iterable[JsonObject]) -> list[Json]:
    """Return the different values that the schema labels with the words of `value`."""
    if not isinstance(value, str):
        return []
    found = (one for part in parts for said, one in labeled(part) if _same_label(said, value))
    different: list[Json] = []
    for one in found:
        if not any(same(one, other) for other in different):
            different.append(one)
    return different


def _same_label(said: str, value: str) -> bool:
    if label_key(said) == label_key(value):
        return True
    # Keys of names leave out what is no Latin letter or digit.
    return said.isascii() and value.isascii() and name_key(said) == name_key(value)


def _same_case(one: Json, value: Json) -> bool:
    if not isinstance(one, str) or not isinstance(value, str):
        return False
    return one.casefold() == value.strip().casefold()


def _same_words(one: Json, value: Json) -> bool:
    return isinstance(one, str) and isinstance(value, str) and name_key(one) == name_key(value)


def _same_text(one: Json, value: Json) -> bool:
    scalar = (str, int, float)
    if isinstance(one, bool) or isinstance(value, bool):
        return isinstance(one, bool) and isinstance(value, str) and str(one).lower() == value
    return isinstance(one, scalar) and isinstance(value, scalar) and str(one) == str(value)


def _as_one_of(
    value: Json, wanted: set[str], parts: list[JsonObject], root: JsonObject, depth: int
) -> Json:
    """Return the value as the first of the wanted types that it is or can become."""
    makers: dict[str, Wanted] = {
        "null": _null,
        "boolean": _boolean,
        "integer": _integer,
        "number": _number,
        "string": partial(_text, parts=parts),
        "array": partial(_array, parts=parts, root=root, depth=depth),
        "object": partial(_object, parts=parts, root=root, depth=depth),
    }
    own = _OWN[type(value)]
    if isinstance(value, float) and value.is_integer():  # to JSON schema 2.0 is an integer
        own |= {"integer"}
    # What the value is already goes first; then text, which is the loosest, goes last.
    order = sorted(wanted & makers.keys(), key=lambda t: (t not in own, t == "string", t))
    reasons = []
    for kind in order:
        try:
            return makers[kind](value)
        except (_Lossy, BindingError) as why:
            reasons.append(str(why))
    raise _Lossy("; ".join(dict.fromkeys(reasons)) or f"expected {' or '.join(sorted(wanted))}")


_OWN: dict[type, frozenset[str]] = {
    type(None): frozenset(["null"]),
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    list: frozenset(["array"]),
    dict: frozenset(["object"]),
}


def _null(value: Json) -> Json:
    if value is None:
        return None
    raise _Lossy("expected null")


def _boolean(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else ""
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise _Lossy("expected true or false")


def _integer(value: Json) -> Json:
    return _told(integer, _as_number(value), "a whole number")


def _number(value: Json) -> Json:
    return _told(number, _as_number(value), "a number")


def _told(codec: Wanted, value: Json, expected: str) -> Json:
    try:
        return codec(value)
    except BindingError as why:
        raise _Lossy(f"expected {expected}, or text that spells one exactly") from why


def _as_number(value: Json) -> Json:
    """Return the number that words spell ("five", "1,200"), else the value; never for a code."""
    if not isinstance(value, str):
        return value
    words = value.strip()
    for found in recognized(words) if not words.startswith("0") else ():
        whole = (found.start, found.end) == (0, len(words)) and not found.relative
        if whole and found.kind in {"number", "year"}:
            return found.value
    return words


def _text(value: Json, *, parts: list[JsonObject]) -> Json:
    spelled = _told(text, value, "text")
    forms = {str(part["format"]) for part in parts if "format" in part}
    if isinstance(spelled, str) and len(forms) == 1:
        return _formed(spelled, forms.pop())
    return spelled


def _formed(value: str, form: str) -> Json:
    """Return text in the format that a schema names; formats that say less are left alone."""
    if form == "date":
        return _day(value)
    if form == "date-time" and not _MOMENT.fullmatch(value):
        raise _Lossy("expected a moment written as 2024-03-11T17:30:00Z")
    if form == "time" and not _CLOCK.fullmatch(value):
        return _recognized(value, "time", _CLOCK, "a time written as 17:30:00")
    return value


def _day(value: str) -> Json:
    expected = "a day written as 2024-03-11, or one that can only mean one day"
    return value if _DAY.fullmatch(value) else _recognized(value, "date", _DAY, expected)


def _recognized(value: str, kind: str, form: re.Pattern[str], expected: str) -> Json:
    words = value.strip()
    for found in recognized(words):
        whole = (found.start, found.end) == (0, len(words)) and not found.relative
        if whole and found.kind == kind and form.fullmatch(str(found.value)):
            return found.value
    raise _Lossy(f"expected {expected}")


def _array(value: Json, *, parts: list[JsonObject], root: JsonObject, depth: int) -> Json:
    items = next((part["items"] for part in parts if "items" in part), {})
    if isinstance(value, str):
        value = _listed_in(value, items, root, depth)
    if not isinstance(value, list):
        return [_coerced(value, items, root, depth + 1)]
    return [_coerced(item, items, root, depth + 1) for item in value]


def _listed_in(value: str, items: Json, root: JsonObject, depth: int) -> Json:
    """Return the list that a text is: written as JSON, or values that the schema knows.

    "bug and docs" is a list of two only where the schema lists `bug` and `docs`; "Portland, OR"
    may be one place.
    """
    if value.lstrip().startswith("[") and isinstance(found := _json(value), list):
        return found
    pieces = [piece for piece in _SEPARATOR.split(value.strip()) if piece]
    closed = any(_listed(part) for part in choices(items, root))
    numeric = types(items, root) - {"null"} <= {"integer", "number"} and bool(types(items, root))
    if len(pieces) < 2 or not (closed or numeric):
        return value
    found_all: list[Json] = [_coerced(piece, items, root, depth + 1) for piece in pieces]
    return found_all


def _object(value: Json, *, parts: list[JsonObject], root: JsonObject, depth: int) -> Json:
    if isinstance(value, str):
        value = _json(value)
    if not isinstance(value, dict):
        raise _Lossy("expected an object, or its JSON text")
    known: JsonObject = {}
    for part in parts:
        known |= as_object(part.get("properties"))
    return {
        key: _coerced(item, known[key], root, depth + 1) if key in known else item
        for key, item in value.items()
    }


def _json(value: str) -> Json:
    try:
        return plain(json.loads(value))
    except (ValueError, InvalidJson, RecursionError):
        return value


def _shown(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
