"""JSON values and their one canonical form: what is hashed, compared and stored."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from semcache.errors import InvalidJson

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""Any JSON value."""
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object."""
Pointer: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a JSON document: keys and list positions from the root."""

MAX_BITS = 4096  # of an integer
MAX_DEPTH = 100  # levels of nesting; deeper is a mistake or an attack, and json recurses


def plain(value: object, *, what: str = "value") -> Json:
    """Return a deep copy of `value` as plain JSON: dict, list, str, int, float, bool, None.

    Mappings become dicts and tuples become lists; nothing else is converted. `what` names the
    value in errors.

    Raises:
        InvalidJson: NaN or infinity, a cycle, a key that is not text, a lone surrogate, more than
            100 levels, or a type that JSON does not have.
    """
    try:
        return _parsed(value, 0)
    except ValueError:
        return _plain(value, what, (), frozenset())  # takes three times as long, and says where


def _parsed(value: object, depth: int) -> Json:
    """Return a deep copy of `value`, if it is what a JSON parser gives, of those very types.

    Raises:
        ValueError: it is not, or has a fault.
    """
    if type(value) is str:
        if not value.isascii():
            value.encode()
        return value
    if type(value) is dict and depth < MAX_DEPTH:
        if all(type(key) is str and key.isascii() for key in value):
            return {key: _parsed(item, depth + 1) for key, item in value.items()}
    elif type(value) is list and depth < MAX_DEPTH:
        return [_parsed(item, depth + 1) for item in value]
    elif (
        value is None
        or type(value) is bool
        or (type(value) is int and value.bit_length() <= MAX_BITS)
        or (type(value) is float and math.isfinite(value))
    ):
        return value
    raise ValueError


def _plain(value: object, what: str, at: Pointer, above: frozenset[int]) -> Json:
    if type(value) is str and value.isascii():  # most of what there is, in a third of the time
        return value
    match value:
        case None | bool():
            return value
        case int():
            return _integer(value, what, at)
        case str():
            return _text(value, what, at)
        case float():
            if math.isfinite(value):
                return value
            raise InvalidJson(f"{_place(what, at)} is {value!r}; JSON has only finite numbers")
        case Mapping() | list() | tuple():
            return _container(value, what, at, above)
        case _:
            raise InvalidJson(
                f"{_place(what, at)} is of type {type(value).__name__}; "
                "expected an object, a list, text, a number, a boolean or null"
            )


def _container(
    value: "Mapping[object, object] | list[object] | tuple[object, ...]",
    what: str,
    at: Pointer,
    above: frozenset[int],
) -> Json:
    if id(value) in above:
        raise InvalidJson(f"{_place(what, at)} contains itself; JSON has no cycles")
    if len(at) >= MAX_DEPTH:
        raise InvalidJson(f"{_place(what, at[:3])} is nested deeper than {MAX_DEPTH} levels")
    inner = above | {id(value)}
    if not isinstance(value, Mapping):
        return [_plain(item, what, (*at, i), inner) for i, item in enumerate(value)]
    plain_object: JsonObject = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidJson(f"{_place(what, at)} has the key {key!r}; keys must be text")
        plain_object[_text(key, what, at)] = _plain(item, what, (*at, key), inner)
    return plain_object


def _integer(value: int, what: str, at: Pointer) -> int:
    # Beyond this Python itself refuses to write the digits down, and no schema means such a number.
    if value.bit_length() > MAX_BITS:
        raise InvalidJson(
            f"{_place(what, at)} is an integer of {value.bit_length()} bits; at most {MAX_BITS}"
        )
    return int(value)


def _text(value: str, what: str, at: Pointer) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidJson(
            f"{_place(what, at)} holds a lone surrogate; expected valid Unicode text"
        ) from error
    return str(value)


def _place(what: str, at: Pointer) -> str:
    return f"{what} at {pointer_text(at)!r}" if at else what


# Made once: `json.dumps` and `json.loads` make a new one for each call with options.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def dumps(value: Json) -> str:
    """Return the canonical text of `value`: sorted keys, no spaces, finite numbers only.

    Raises:
        InvalidJson: `value` is no JSON after all: a cycle, NaN, an integer without end.
    """
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidJson(f"a value cannot be written as JSON: {error}") from error


def spelled(value: Json) -> str:
    """Return compact JSON text of `value` with the keys in the order they have, for keeping."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def loads(text: str, *, what: str = "text", strict: bool = True) -> Json:
    """Return the JSON value that `text` spells.

    Not `strict`, line breaks and other control characters may stand inside texts as they are.

    Raises:
        InvalidJson: `text` is not JSON, or spells NaN, infinity or a lone surrogate.
    """
    try:
        value: Json = _DECODERS[strict].decode(text)
        if "\\ud" in text or "\\uD" in text:
            spelled(value).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"{what} is not JSON: {error}") from error
    return value


def no_constant(name: str) -> float:
    """Refuse NaN and infinity: the `parse_constant` of a JSON decoder that keeps to the standard.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.20} is beyond all numbers that a computer counts with")
    return number


_DECODERS = {
    strict: json.JSONDecoder(parse_constant=no_constant, parse_float=_finite, strict=strict)
    for strict in (True, False)
}


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical text of `value`, as 64 lower-case hex digits."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


_PLAIN = frozenset({str, int, float})


def same(left: Json, right: Json) -> bool:
    """Return whether two values are equal as JSON: `1` is `1.0`, but neither `"1"` nor `true`."""
    if type(left) is type(right) and type(left) in _PLAIN:
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def as_object(value: Json) -> JsonObject:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def leaves(value: Json, at: Pointer = ()) -> Iterator[tuple[Pointer, Json]]:
    """Yield each scalar and each empty container of `value` with its pointer, in document order."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from leaves(item, (*at, i))
    else:
        yield at, value


def value_at(value: Json, pointer: Pointer) -> Json:
    """Return what stands at `pointer` in `value`.

    Raises:
        LookupError: nothing stands there; its argument is the step that leads nowhere.
    """
    for step in pointer:
        match value:
            case dict() if isinstance(step, str) and step in value:
                value = value[step]
            case list() if isinstance(step, int) and 0 <= step < len(value):
                value = value[step]
            case _:
                raise LookupError(step)
    return value


def with_texts(value: Json, change: Callable[[str], Json]) -> Json:
    """Return a copy of `value` with what `change` makes of each text in it; keys stay."""
    match value:
        case str():
            return change(value)
        case dict():
            return {key: with_texts(item, change) for key, item in value.items()}
        case list():
            return [with_texts(item, change) for item in value]
        case _:
            return value


def pointer_text(pointer: Pointer) -> str:
    """Return `pointer` as text, by RFC 6901 (`/call/input/args/0`; the root is the empty text)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)
