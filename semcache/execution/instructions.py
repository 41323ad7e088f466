"""The instructions of a program: what each type of them does, and what it asks the model.

What a type of instruction does is one line of `HANDLERS`. A handler returns a `Done` and changes
nothing, so that calls which do not depend on one another can run at the same time and still be
recorded in the order of the program.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from semcache.canonical import Json, JsonObject, no_constant, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import ExecutionError, InvalidJson, InvalidPlan
from semcache.execution.variables import as_text
from semcache.plans.program import GENERATE, Instruction
from semcache.plans.program_checks import fitted
from semcache.ports import Clock, Message, Model, Observer
from semcache.runs.dialog import complete

if TYPE_CHECKING:
    from semcache.execution.program import ProgramRun

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


# What each type of instruction does.


@dataclass(frozen=True, slots=True)
class Done:
    """What an instruction did."""

    sets: Mapping[str, Json] = field(default_factory=dict)
    """Variables and their new values."""
    jump: int | None = None
    """`seq_no` to go on at; None for the next instruction."""
    given: Json = None
    output: Json = None
    seconds: float | None = None
    """How long it took, where that was not when its turn came."""


def _reasoning(_: "ProgramRun", _step: Instruction) -> Done:
    return Done()


def _assign(run: "ProgramRun", step: Instruction) -> Done:
    """Set variables; each value is read as it was before the instruction."""
    node = str(step.seq)
    if not step.pairs:
        (name,) = step.sets
        value = run.kept(run.value(step, "value"), step)
        return Done({name: value}, output=value)
    values: JsonObject = {
        name: run.kept(run.reader.assigned(value, (*step.inside, name), run.variables, node), step)
        for name, value in step.parameters.items()
    }
    return Done(values, output=values)


def _call(run: "ProgramRun", step: Instruction) -> Done:
    """Call an operation of the catalog, or the model."""
    node = str(step.seq)
    given: JsonObject = {name: run.value(step, *way) for name, way in step.inputs}
    if step.call == GENERATE:
        result = run.called(
            run.asker.operation(GENERATE), _with_form(given, step.sets), node, catalog=CALLS
        )
    else:
        given = fitted(step.call, given, run.catalog)
        result = run.called(run.catalog.get(step.call), given, node)
    return Done(_outputs(step, result), given=given, output=result)


def _with_form(given: JsonObject, names: Sequence[str]) -> JsonObject:
    """Return the question, with the form of the answer if it has several parts."""
    if len(names) < 2:
        return given
    form = f"Reply with one JSON object and nothing else. Its keys: {', '.join(names)}."
    return {**given, "prompt": f"{as_text(given.get('prompt'))}\n\n{form}"}


def _outputs(step: Instruction, result: Json) -> JsonObject:
    if len(step.sets) < 2:
        return dict.fromkeys(step.sets, result)
    try:
        return several(result, step.sets)
    except InvalidJson as error:
        node = str(step.seq)
        raise ExecutionError(f"instruction {node}: {error}", node=node) from error


def _jump(run: "ProgramRun", step: Instruction) -> Done:
    """Go elsewhere, where the model decides if it is asked."""
    if not step.conditional:
        return Done(jump=_seq(step, "target_seq"))
    node = str(step.seq)
    given: JsonObject = {
        "prompt": run.value(step, "condition_prompt"),
        "context": run.value(step, "context"),
    }
    reply = run.called(run.asker.operation(CONDITION), given, node, catalog=CALLS)
    try:
        holds = verdict(as_text(reply))
    except InvalidJson as error:
        raise ExecutionError(f"instruction {node}: {error}", node=node) from error
    return Done(jump=_seq(step, f"jump_if_{str(holds).lower()}"), given=given, output=reply)


def _seq(step: Instruction, name: str) -> int:
    found = step.parameters[name]
    return found if isinstance(found, int) else -1


HANDLERS: Mapping[str, "Callable[[ProgramRun, Instruction], Done]"] = MappingProxyType({
    "assign": _assign,
    "calling": _call,
    "jmp": _jump,
    "jmp_if": _jump,
    "llm_generate": _call,
    "reasoning": _reasoning,
    "retrieve_knowledge_graph": _call,
    "vector_search": _call,
})  # fmt: skip
"""Type of instruction → what it does."""
