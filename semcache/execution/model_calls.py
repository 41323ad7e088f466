"""What a program asks its model: texts, and whether a condition holds; and what it replied."""

import json
from collections.abc import Iterator, Sequence

from semcache.canonical import Json, JsonObject, no_constant, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import InvalidJson, InvalidPlan
from semcache.execution.variables import as_text
from semcache.plans.program.document import GENERATE
from semcache.ports import Clock, Message, Model, Observer
from semcache.runs.dialog import complete

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


CONDITION = "condition"
"""Name of the call that decides a condition."""

_ASKED: JsonObject = {
    "type": "object",
    # StackVM's own tool takes `stream`; an answer is never streamed here.
    "properties": {"prompt": {}, "context": {}, "stream": {}},
    "required": ["prompt"],
    "additionalProperties": False,
}
CALLS = Catalog([
    Operation(GENERATE, "Ask the model.", _ASKED, effect="read"),
    Operation(CONDITION, "Let the model decide.", _ASKED, effect="read"),
])  # fmt: skip
"""What a model can be asked, described as operations."""


class Asker:
    """Asks the model for one run, and reports each call. As safe from several threads as it is."""

    def __init__(self, model: Model | None, observer: Observer, clock: Clock, run: str) -> None:
        self._model = model
        self._observer = observer
        self._clock = clock
        self._run = run

    def operation(self, name: str) -> Operation:
        """Return asking the model as an operation, so that the bounds of a call hold for it."""
        code = self._decide if name == CONDITION else self._generate
        return Operation(name, "", _ASKED, effect="read", call=code)

    def _generate(self, given: JsonObject) -> str:
        return self._complete([_question(given)], "generate")

    def _decide(self, given: JsonObject) -> str:
        return self._complete([Message("system", RULE), _question(given)], CONDITION)

    def _complete(self, messages: Sequence[Message], purpose: str) -> str:
        if self._model is None:
            raise InvalidPlan("the program asks a model, and the engine has none; give it one")
        return complete(
            self._model,
            messages,
            purpose=purpose,
            observer=self._observer,
            clock=self._clock,
            run=self._run,
        ).text


def _question(given: JsonObject) -> Message:
    prompt, context = as_text(given["prompt"]), given.get("context")
    if context in (None, ""):
        return Message("user", prompt)
    return Message("user", f"{prompt}\n\nContext:\n{as_text(context)}")
