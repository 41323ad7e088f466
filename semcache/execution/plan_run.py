"""One execution of one plan, as far as its format does not matter: what it may use, who hears."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from semcache.canonical import Json
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import ExecutionError, InvalidJson, InvalidPlan, SemCacheError
from semcache.events import NodeFinished
from semcache.execution.call import Budget, bounded, call
from semcache.plans.document import ExecutionPlan
from semcache.ports import Clock, Limits, NodeResult, Observer, Outcome

NO_RESULT = "Execution completed but no result was produced."


class RunArguments(TypedDict):
    """What `Engine.execute` is given beside the plan; see `ports.Engine`."""

    catalog: Catalog
    limits: Limits
    clock: Clock
    observer: Observer
    run: NotRequired[str]


@dataclass(slots=True)
class Visit:
    """What went into a node and came out of it."""

    input: Json = None
    output: Json = None
    seconds: float | None = None
    """How long it took, where that was not as long as the visit."""


class PlanRun:
    """What the executions of all formats have in common."""

    def __init__(
        self, *, catalog: Catalog, limits: Limits, clock: Clock, observer: Observer, run: str = ""
    ) -> None:
        self.catalog = catalog
        self.limits = limits
        self.clock = clock
        self.observer = observer
        self.run = run
        self.budget = Budget(limits, clock)
        self.nodes: list[NodeResult] = []
        self.steps = 0
        """How many visits have ended, failed ones too."""

    @contextmanager
    def visit(self, node: str, operation: str, *, started: float | None = None) -> Iterator[Visit]:
        """Report how the block ended, and keep what it says of the node if it ended well.

        `started`: when the visit began, by the monotonic clock; None: now.
        """
        begun = self.clock.monotonic() if started is None else started
        visit = Visit()
        try:
            yield visit
        except SemCacheError as error:
            seconds = self.clock.monotonic() - begun
            self._report(node, operation, seconds, type(error).__name__)
            raise
        seconds = self.clock.monotonic() - begun if visit.seconds is None else visit.seconds
        self._report(node, operation, seconds, "")
        self.nodes.append(NodeResult(node, operation, seconds, visit.input, visit.output))

    def _report(self, node: str, operation: str, seconds: float, error: str) -> None:
        self.steps += 1
        self.observer(
            NodeFinished(
                run=self.run,
                node=node,
                operation=operation,
                step=self.steps,
                seconds=seconds,
                error=error,
            )
        )

    def called(
        self,
        operation: Operation,
        given: Json,
        node: str,
        *,
        catalog: Catalog | None = None,
        key: str = "",
    ) -> Json:
        """Return what an operation gives, called within what is left of the budget."""
        return call(
            operation,
            given,
            catalog=catalog or self.catalog,
            limits=self.limits,
            timeout_s=self.budget.call_s(),
            node=node,
            key=key,
            budget=self.budget,
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

    def ended(self, value: Json, answer: Json) -> Outcome:
        """Return the outcome of the run, told by `answer`."""
        return Outcome(value, to_text(answer), tuple(self.nodes))


def other_format(plan: ExecutionPlan, expected: str) -> InvalidPlan:
    """Return what an engine says of a plan that it does not run."""
    return InvalidPlan(f"the plan has the format {plan.format!r}; this engine runs {expected!r}")


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
