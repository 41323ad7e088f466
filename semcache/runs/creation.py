"""Making runs and agents while a program runs: factories that nest to any depth that is allowed."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Effect, Operation
from semcache.ports import Clock, Observer
from semcache.runs.here import OpenRun, here
from semcache.runs.recorder import Runs

P = ParamSpec("P")
T = TypeVar("T")


def workflow(
    name: str,
    work: Callable[P, T],
    *,
    runs: Runs,
    clock: Clock,
    emit: Observer | None = None,
    tenant: str = "default",
) -> Callable[P, T]:
    """Return `work` as a run of its own: a root, or a child of the run that calls it.

    Inside another run its tree, clock and observers are those of that run; elsewhere `runs` keeps
    it, and `emit`, if given, hears of it instead and hands it on.

    Raises:
        InvalidInput: on a call with eight runs one in the other already.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        standing = here()
        with OpenRun(
            name,
            home=runs,
            emit=standing.emit if standing is not None else emit,
            clock=standing.clock if standing is not None else clock,
            tenant=tenant,
        ) as opened:
            value = work(*args, **kwargs)
            opened.gave(value)
            return value

    return run


def agent(
    name: str, summary: str, ask: Callable[[str], Json], *, effect: Effect = "read"
) -> Operation:
    """Return an operation that asks an agent: it takes a `prompt`, and gives what `ask` answers.

    `ask` may be `lambda prompt: semcache.run(prompt).value`: that run then stands in the tree of
    the run whose plan called the operation.
    """

    def call(given: JsonObject) -> Json:
        return ask(str(given["prompt"]))

    schema: JsonObject = {
        "type": "object",
        "properties": {"prompt": {"type": "string", "description": "What the agent is asked"}},
        "required": ["prompt"],
        "additionalProperties": False,
    }
    return Operation(name, summary, schema, effect=effect, call=call)
