"""What a model replied to a program: a JSON object, or a yes or no; strictly."""

import json
from collections.abc import Iterator, Sequence

from semcache.canonical import Json, JsonObject, no_constant, plain
from semcache.errors import InvalidJson

MAX_TRIED = 200  # braces of one reply at which an object is looked for
SHOWN = 300  # characters of a reply in an error

RULE = (
    "Decide the condition from what you are given here and nothing else. Reply with one JSON "
    'object and nothing else: {"result": true or false, "explanation": "why, in one sentence"}'
)
"""What a model is told that decides a condition."""


def verdict(reply: str) -> bool:
    """Return the decision in `reply`: the boolean `result` of its JSON object.

    Raises:
        InvalidJson: there is no such object, its `result` is no boolean ("true" is text), or two
            objects disagree.
    """
    found = [value["result"] for value in objects(reply) if "result" in value]
    if not found:
        raise InvalidJson(f'expected a JSON object with "result"; the reply is {reply[:SHOWN]!r}')
    for result in found:
        if not isinstance(result, bool):
            raise InvalidJson(f'"result" is {result!r}; expected true or false, as a JSON boolean')
    if len(set(map(bool, found))) > 1:
        raise InvalidJson(f"the reply decides both ways: {reply[:SHOWN]!r}")
    return bool(found[0])


def several(result: Json, names: Sequence[str]) -> JsonObject:
    """Return the values of `names`: members of `result`, or of the JSON object in its text.

    Raises:
        InvalidJson: it has not all of them.
    """
    options = [result] if isinstance(result, dict) else []
    options += list(objects(result)) if isinstance(result, str) else []
    for option in options:
        if all(name in option for name in names):
            return {name: option[name] for name in names}
    told = ", ".join(map(repr, names))
    had = f"; it has {', '.join(map(repr, options[0]))}" if options else ""
    raise InvalidJson(f"expected an object with {told}{had}")


def objects(reply: str) -> Iterator[JsonObject]:
    """Yield the outermost JSON objects in `reply`; reasoning in `<think>` is left out."""
    text = reply.rpartition("</think>")[2]
    decoder = json.JSONDecoder(strict=False, parse_constant=no_constant)
    place = text.find("{")
    for _ in range(MAX_TRIED):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
            copy = plain(value)
        except (ValueError, RecursionError, InvalidJson):
            end = place + 1
        else:
            if isinstance(copy, dict):
                yield copy
        place = text.find("{", end)
