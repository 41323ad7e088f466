"""One execution of one plan, as far as its format does not matter: what it may use, who hears."""

import json
from typing import TypedDict

from semcache.canonical import Json
from semcache.catalog.catalog import Catalog
from semcache.errors import ExecutionError, InvalidJson
from semcache.events import NodeFinished
from semcache.execution.budget import Budget, bounded
from semcache.ports import Clock, Limits, NodeResult, Observer

NO_RESULT = "Execution completed but no result was produced."


class RunArguments(TypedDict):
    """What `Engine.execute` is given beside the plan."""

    catalog: Catalog
    limits: Limits
    clock: Clock
    observer: Observer
    run: str


class PlanRun:
    """What the executions of all formats have in common."""

    def __init__(
        self, *, catalog: Catalog, limits: Limits, clock: Clock, observer: Observer, run: str
    ) -> None:
        self.catalog = catalog
        self.limits = limits
        self.clock = clock
        self.observer = observer
        self.run = run
        self.budget = Budget(limits, clock)
        self.nodes: list[NodeResult] = []

    def report(
        self, node: str, operation: str, *, step: int, seconds: float, error: str = ""
    ) -> None:
        """Tell that a node ended; `error`: the class of its error, empty if none."""
        self.observer(
            NodeFinished(
                run=self.run,
                node=node,
                operation=operation,
                step=step,
                seconds=seconds,
                error=error,
            )
        )

    def own(self, value: Json, *, what: str, node: str) -> Json:
        """Return a value that the plan made itself, which counts as a result of the run.

        Raises:
            OutputTooLarge, ExecutionError: it is over the bounds, or no JSON.
        """
        try:
            return bounded(value, self.limits, what=what, node=node, budget=self.budget)
        except InvalidJson as error:
            raise ExecutionError(str(error), node=node) from error


def to_text(value: Json) -> str:
    """Return the `answer` of a result, else its `message`, else all of it as indented JSON.

    An answer or message that is no text is told as JSON on one line. By the document of OneMCP.
    """
    if value is None:
        return NO_RESULT
    for name in ("answer", "message"):
        told = value.get(name) if isinstance(value, dict) else None
        if told is not None:
            return told if isinstance(told, str) else _json(told, indent=None)
    return _json(value, indent=2)


def _json(value: Json, *, indent: int | None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
