"""A JSON object out of what a model said."""

import json
import re
from collections.abc import Iterator

from semcache.canonical import Json, JsonObject, no_constant, plain
from semcache.errors import InvalidJson

CONTEXT = 30
"""Characters shown on each side of a fault."""
SHOWN = 1500
"""Characters of an answer that are shown with a fault."""


def json_object(text: str, *, listed: str = "") -> JsonObject:
    """Return the first JSON object in `text`.

    With `listed`, an array of objects counts too, as the object that has it under that name.

    Reasoning in `<think>` and words around the object are passed over; a fenced block goes before
    anything outside it, the first before others. Commas before a closing bracket, closing brackets
    that nothing opened, and line breaks inside texts are forgiven; nothing that could be read in
    two ways is.

    Raises:
        InvalidJson: there is no object, or it is broken; the message shows where, for the model.
    """
    said = _without_reasoning(text)
    start = _start(said, listed)
    found = "".join(_mended(said, start))
    try:
        value: Json = json.loads(
            found, strict=False, parse_constant=no_constant, object_pairs_hook=_members
        )
        copy = plain(value, what="the answer")
    except json.JSONDecodeError as error:
        raise InvalidJson(_broken(error.msg, found, error.pos)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidJson(_broken(str(error), found, 0)) from error
    if listed and isinstance(copy, list):
        return {listed: copy}
    if not isinstance(copy, dict):
        raise InvalidJson("the answer is no JSON object; expected one that starts with '{'")
    return copy


def _without_reasoning(text: str) -> str:
    """Return `text` after its reasoning; some models close `<think>` without having opened it."""
    before, closed, after = text.partition("</think>")
    opened = text.lstrip().startswith("<think>")
    if closed and (opened or "<think>" not in before):
        return after
    if opened:
        raise InvalidJson("the answer ends inside <think>; expected one JSON object after it")
    return text


# At the start of a line only: inside a text of the object a fence is data.
_FENCES = (
    re.compile(r"^[ \t]*```json\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*```\w*\s*(?=\{)", re.MULTILINE),
)
_LISTED_FENCES = (_FENCES[0], re.compile(r"^[ \t]*```\w*\s*(?=[\[{])", re.MULTILINE))
_OBJECT = re.compile(r"\{(?=\s*[\"}])")
_LISTED = re.compile(r"\{(?=\s*[\"}])|\[(?=\s*\{\s*\")")


def _start(said: str, listed: str) -> int:
    """Return where the object begins.

    Only a brace before a quote or its own end counts: words may have braces too, and an object
    inside a broken one must never be taken for the whole.
    """
    fences, begins = (_LISTED_FENCES, _LISTED) if listed else (_FENCES, _OBJECT)
    fence = next((match for match in (f.search(said) for f in fences) if match), None)
    found = begins.search(said, fence.end() if fence else 0)
    if found is None:
        raise InvalidJson(
            f"no JSON object was found in {said.strip()[:SHOWN]!r}; expected one JSON object"
        )
    return found.start()


_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[{}\[\]]|(?P<surplus>,)(?=\s*[}\]])|[^"{}\[\],]+|.', re.DOTALL
)
_OPENS = {"}": "{", "]": "["}


def _mended(said: str, start: int) -> Iterator[str]:
    """Yield the object that begins at `start`, less the commas and brackets that are too many."""
    stack: list[str] = []
    for token in _TOKEN.finditer(said, start):
        match token[0]:
            case "{" | "[":
                stack.append(token[0])
                yield token[0]
            case "}" | "]" as closer:
                if stack[-1] == _OPENS[closer]:
                    stack.pop()
                    yield closer
                if not stack:
                    _nothing_follows(said, start, token.end())
                    return
            case word if token["surplus"] is None:
                yield word
    raise InvalidJson(_broken("it ends before it is closed", said[start:], len(said) - start))


_CONTINUES = re.compile(r"[\s}\]]*(?:[,:]\s*[\"{\[]|\"[^\"\n]*\"\s*:)")


def _nothing_follows(said: str, start: int, end: int) -> None:
    """Raise if the object goes on after its end: a bracket too many would cut it in half."""
    if _CONTINUES.match(said, end):
        raise InvalidJson(_broken("it is closed too early", said[start:], end - start))


def _members(pairs: list[tuple[str, Json]]) -> JsonObject:
    members: JsonObject = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key!r} stands twice in one object")
        members[key] = value
    return members


def _broken(what: str, text: str, at: int) -> str:
    near = text[max(0, at - CONTEXT) : at + CONTEXT]
    return f"the JSON is broken: {what} at character {at}, near {near!r}, in {text[:SHOWN]}"
