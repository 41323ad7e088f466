"""The engine of the routes format: one node after the other, from the start to an end."""

from typing import Unpack

from semcache.canonical import Json, JsonObject, Pointer, as_object
from semcache.catalog.catalog import Catalog
from semcache.errors import (
    ExpressionError,
    InvalidPlan,
    OutputTooLarge,
    SemCacheError,
    StepLimitExceeded,
)
from semcache.execution.budget import Budget
from semcache.execution.call import call
from semcache.execution.plan_run import PlanRun, RunArguments, to_text
from semcache.plans.checks import refuse
from semcache.plans.plan import ExecutionPlan
from semcache.plans.references.expressions import evaluate, reads
from semcache.plans.references.paths import LAST_RESULT, is_expression, literal, parse
from semcache.plans.routes.checks import broken_routes
from semcache.plans.routes.document import START, RoutePlan, is_end, route_of
from semcache.ports import Clock, Limits, NodeResult, Observer, Outcome


class Scope:
    """What the nodes of a running plan have left behind. Of one run, on one thread."""

    __slots__ = ("_budget", "_data", "_grown", "_last", "_limit", "_results")

    def __init__(self, data: frozenset[Pointer], *, budget: Budget, limit: int) -> None:
        """Keep where values were bound, the time that is left, and how large one value may be."""
        self._data = data
        self._budget = budget
        self._limit = limit
        self._grown = 0
        self._results: JsonObject = {}
        self._last: Json = None

    def keep(self, node: str, result: Json) -> None:
        """Keep `result` as what `node` gave last."""
        self._results[node] = result
        self._last = result

    def value(self, expression: str, node: str) -> Json:
        """Return what `expression` gives over the results so far; null for what is not there.

        Raises:
            ExpressionError: it cannot be read, or looks at too much; the error names `node`.
            DeadlineExceeded: the time of the run is over.
        """
        try:
            parsed = parse(expression)
            root = self._results
            if LAST_RESULT in reads(parsed):
                root = {**root, LAST_RESULT: self._last}
            at = f"in an expression of {node!r}"
            return evaluate(parsed, root, check=lambda: self._budget.check(node, at=at))
        except ExpressionError as error:
            raise ExpressionError(f"node {node!r}: {error}", node=node) from error

    def holds(self, condition: str, node: str) -> bool:
        """Return whether `condition` is truthy: not null, false, 0 or empty. Raises as `value`."""
        return bool(self.value(condition, node))

    def resolved(self, value: Json, at: Pointer) -> Json:
        """Return `value`, which stands at `at` in the plan, with every expression in it replaced.

        What stands at or below bound data is returned as it is.

        Raises:
            ExpressionError, DeadlineExceeded: as `value`.
            OutputTooLarge: what its expressions make is over the bound of one value.
        """
        self._grown = 0
        return self._resolved(value, at)

    def _resolved(self, value: Json, at: Pointer) -> Json:
        if at in self._data:
            return value
        match value:
            case str():
                return self._text(value, str(at[0]))
            case dict():
                return {key: self._resolved(item, (*at, key)) for key, item in value.items()}
            case list():
                return [self._resolved(item, (*at, i)) for i, item in enumerate(value)]
            case _:
                return value

    def _text(self, text: str, node: str) -> Json:
        if not is_expression(text):
            return literal(text)
        found = self.value(text, node)
        # Counted as it grows: a thousand parts of a text are gigabytes before they are one value.
        self._grown += len(found) if isinstance(found, (str, list, dict)) else 0
        if self._grown > self._limit:
            raise OutputTooLarge(f"node {node!r} reads over {self._limit:,} bytes", node=node)
        return found


class RoutesEngine:
    """Runs plans in the routes format. Holds no state between runs; safe from several threads."""

    def execute(
        self,
        plan: ExecutionPlan,
        *,
        catalog: Catalog,
        limits: Limits,
        clock: Clock,
        observer: Observer,
        run: str = "",
    ) -> Outcome:
        """Run a plan with its values already bound, and return what its end gives.

        Nothing is called if the plan is malformed, calls an unknown operation, or has an unbound
        placeholder. A node that runs again overwrites its result. Every node is reported, the one
        that failed with the class of its error.

        Raises:
            InvalidPlan: the plan is malformed; it carries all findings.
            ExecutionError: an operation failed or was refused, or a limit was reached; the error
                names the node.
        """
        if not isinstance(plan, RoutePlan):
            raise InvalidPlan(
                f"the plan has the format {plan.format!r}; this engine runs {RoutePlan.format!r}"
            )
        refuse(broken_routes(plan, catalog))
        execution = _Run(
            plan, catalog=catalog, limits=limits, clock=clock, observer=observer, run=run
        )
        return execution.outcome()


class _Run(PlanRun):
    """One execution of one plan."""

    def __init__(self, plan: RoutePlan, **given: Unpack[RunArguments]) -> None:
        super().__init__(**given)
        self.plan = plan
        self.scope = Scope(plan.data, budget=self.budget, limit=self.limits.max_output_bytes)

    def outcome(self) -> Outcome:
        name = START
        while name:
            self.check_budget(name)
            name = self.visit(name)
        value = self.nodes[-1].output
        return Outcome(value, to_text(value), tuple(self.nodes))

    def check_budget(self, name: str) -> None:
        if len(self.nodes) >= self.limits.max_steps:
            raise StepLimitExceeded(
                f"the plan took {self.limits.max_steps} steps and reached no end; before {name!r}",
                node=name,
            )
        self.budget.check(name, at=f"before {name!r}")

    def visit(self, name: str) -> str:
        """Run one node and return the one that it leads to; empty after an end."""
        node = as_object(self.plan.body[name])
        operation = "" if name == START or is_end(node) else str(node["operation"])
        started = self.clock.monotonic()
        try:
            given, result = self.performed(name, node, operation)
            following = self.following(name, node, result)
        except SemCacheError as error:
            self.ended(name, operation, started, type(error).__name__)
            raise
        seconds = self.ended(name, operation, started)
        self.nodes.append(NodeResult(name, operation, seconds, given, result))
        return following

    def performed(self, name: str, node: JsonObject, operation: str) -> tuple[Json, Json]:
        """Return what goes into a node and what comes out."""
        if not operation:
            return None, self.variables(name, node)
        given = self.scope.resolved(node.get("input") or {}, (name, "input"))
        result = call(
            self.catalog.get(operation),
            given,
            catalog=self.catalog,
            limits=self.limits,
            timeout_s=self.budget.call_s(),
            node=name,
            budget=self.budget,
        )
        return given, result

    def variables(self, name: str, node: JsonObject) -> Json:
        values = self.scope.resolved(node.get("vars") or {}, (name, "vars"))
        return self.own(values, what=f"the `vars` of {name!r}", node=name)

    def following(self, name: str, node: JsonObject, result: Json) -> str:
        """Keep the result of a node and return where it leads."""
        self.scope.keep(name, result)
        route = route_of(node)
        for branch in route.branches:
            if self.scope.holds(branch.condition, name):
                return branch.node
        return route.otherwise

    def ended(self, name: str, operation: str, started: float, error: str = "") -> float:
        """Report the end of a node; return how many seconds it took."""
        seconds = self.clock.monotonic() - started
        self.report(name, operation, step=len(self.nodes) + 1, seconds=seconds, error=error)
        return seconds
