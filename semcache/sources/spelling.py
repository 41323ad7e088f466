"""How values are spelled in a request, by the styles of OpenAPI."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from semcache.canonical import Json, JsonObject, dumps

Where = Literal["path", "query", "header", "cookie"]
Pairs = list[tuple[str, str]]
"""Names and values of a query string or of cookies, not encoded."""


@dataclass(frozen=True, slots=True)
class Argument:
    """How one input of an operation travels in the request."""

    input: str
    """Its name in the input of the operation."""
    name: str
    """Its name on the wire."""
    where: Where
    style: str
    """How lists and objects are spelled, by OpenAPI's names: `form`, `simple`, `deepObject`."""
    explode: bool
    """Whether each item of a list has a pair of its own."""
    as_json: bool = False
    """Whether the value is spelled as JSON, whatever it is."""


def pairs(argument: Argument, value: Json) -> Pairs:
    """Return the pairs of a query string or cookie for one value."""
    if argument.as_json:
        return [(argument.name, dumps(value))]
    if isinstance(value, list):
        return _list_pairs(argument, value)
    if isinstance(value, dict):
        return _object_pairs(argument, value)
    # A null is what is not given: a query string has no word for it.
    return [] if value is None else [(argument.name, _text(value))]


def _list_pairs(argument: Argument, value: list[Json]) -> Pairs:
    if argument.explode and argument.style == "form":
        return [(argument.name, _text(item)) for item in value]
    separator = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(argument.style, ",")
    return [(argument.name, separator.join(map(_text, value)))]


def _object_pairs(argument: Argument, value: JsonObject) -> Pairs:
    if argument.style == "deepObject":
        return [(f"{argument.name}[{key}]", _text(item)) for key, item in value.items()]
    if argument.explode:
        return [(key, _text(item)) for key, item in value.items()]
    return [(argument.name, ",".join(f"{k},{_text(v)}" for k, v in value.items()))]


def simple(argument: Argument, value: Json) -> str:
    """Return a value in OpenAPI's style `simple`, nothing encoded."""
    if argument.as_json:
        return dumps(value)
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        between = "=" if argument.explode else ","
        return ",".join(f"{key}{between}{_text(item)}" for key, item in value.items())
    return "" if value is None else _text(value)


def path_part(argument: Argument, value: Json) -> str:
    """Return a value as one part of a path: every character that could end the part is encoded."""
    if argument.style == "simple" and not argument.as_json and isinstance(value, list):
        return ",".join(quote(_text(item), safe="") for item in value)
    text = quote(simple(argument, value), safe="")
    prefix = {"label": ".", "matrix": f";{quote(argument.name, safe='')}="}.get(argument.style, "")
    return prefix + text if text else ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value)
