"""The engine of the routes format: one node after the other, from the start to an end."""

from typing import Unpack

from semcache.canonical import Json, JsonObject, Pointer, as_object
from semcache.errors import ExpressionError, OutputTooLarge, StepLimitExceeded
from semcache.execution.plan_run import PlanRun, RunArguments, other_format
from semcache.plans.codec import refuse
from semcache.plans.document import ExecutionPlan, filled
from semcache.plans.expressions import evaluate, reads
from semcache.plans.paths import LAST_RESULT, is_expression, literal, parse
from semcache.plans.routes import START, RoutePlan, broken_routes, is_end, route_of
from semcache.ports import Outcome


class RoutesEngine:
    """Runs plans in the routes format. Holds no state between runs; safe from several threads."""

    def execute(self, plan: ExecutionPlan, **given: Unpack[RunArguments]) -> Outcome:
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
            raise other_format(plan, RoutePlan.format)
        refuse(broken_routes(plan, given["catalog"]))
        return _Run(plan, **given).outcome()


class _Run(PlanRun):
    """One execution of one plan."""

    def __init__(self, plan: RoutePlan, **given: Unpack[RunArguments]) -> None:
        super().__init__(**given)
        self.plan = plan
        self.results: JsonObject = {}
        """What each node gave last."""
        self.last: Json = None
        self.grown = 0
        """Bytes, at least, of what the expressions of the input at hand have made."""

    def outcome(self) -> Outcome:
        name = START
        while name:
            self.check_budget(name)
            name = self.step(name)
        value = self.nodes[-1].output
        return self.ended(value, value)

    def check_budget(self, name: str) -> None:
        if len(self.nodes) >= self.limits.max_steps:
            raise StepLimitExceeded(
                f"the plan took {self.limits.max_steps} steps and reached no end; before {name!r}",
                node=name,
            )
        self.budget.check(name, at=f"before {name!r}")

    def step(self, name: str) -> str:
        """Run one node and return the one that it leads to; empty after an end."""
        node = as_object(self.plan.body[name])
        operation = "" if name == START or is_end(node) else str(node["operation"])
        with self.visit(name, operation) as visit:
            if operation:
                visit.input = self.resolved(node.get("input") or {}, (name, "input"))
                visit.output = self.called(self.catalog.get(operation), visit.input, name)
            else:
                values = self.resolved(node.get("vars") or {}, (name, "vars"))
                visit.output = self.own(values, what=f"the `vars` of {name!r}", node=name)
            self.results[name] = self.last = visit.output
            return self.following(name, node)

    def following(self, name: str, node: JsonObject) -> str:
        """Return where a node leads: a condition holds if it is not null, false, 0 or empty."""
        route = route_of(node)
        for branch in route.branches:
            if self.value(branch.condition, name):
                return branch.node
        return route.otherwise

    def value(self, expression: str, node: str) -> Json:
        """Return what `expression` gives over the results so far; null for what is not there.

        Raises:
            ExpressionError: it cannot be read, or looks at too much; the error names `node`.
            DeadlineExceeded: the time of the run is over.
        """
        try:
            parsed = parse(expression)
            root = self.results
            if LAST_RESULT in reads(parsed):
                root = {**root, LAST_RESULT: self.last}
            at = f"in an expression of {node!r}"
            return evaluate(parsed, root, check=lambda: self.budget.check(node, at=at))
        except ExpressionError as error:
            raise ExpressionError(f"node {node!r}: {error}", node=node) from error

    def resolved(self, value: Json, at: Pointer) -> Json:
        """Return `value`, which stands at `at` in the plan, with every expression in it replaced.

        Raises:
            ExpressionError, DeadlineExceeded: as `value`.
            OutputTooLarge: what its expressions make is over the bound of one value.
        """
        self.grown = 0
        return filled(value, at, self.plan.data, self.read)

    def read(self, text: str, at: Pointer) -> Json:
        """Return what a text of the plan gives."""
        if not is_expression(text):
            return literal(text)
        node = str(at[0])
        found = self.value(text, node)
        # Counted as it grows: a thousand parts of a text are gigabytes before they are one value.
        self.grown += len(found) if isinstance(found, (str, list, dict)) else 0
        if self.grown > (limit := self.limits.max_output_bytes):
            raise OutputTooLarge(f"node {node!r} reads over {limit:,} bytes", node=node)
        return found
