"""The instructions of a program: what each type of them does.

What a type of instruction does is one line of `HANDLERS`. A handler returns a `Done` and changes
nothing, so that calls which do not depend on one another can run at the same time and still be
recorded in the order of the program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from semcache.canonical import Json, JsonObject
from semcache.errors import ExecutionError, InvalidJson
from semcache.execution.model_calls import CALLS, CONDITION, several, verdict
from semcache.execution.variables import as_text
from semcache.plans.program.checks import fitted
from semcache.plans.program.document import GENERATE, Instruction

if TYPE_CHECKING:
    from semcache.execution.program import ProgramRun


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
