"""The modular planner: a goal becomes steps, steps find operations, operations become a plan.

Each part is a port of its own (`Decomposer`, `Resolver`); with no model it
plans what patterns and the catalog settle, and says what it would have to guess otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from semcache.errors import NotActionable, PlanningError, Referred
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.split_identifier import joined
from semcache.planners.steps.assembly import assemble
from semcache.planners.steps.intents import (
    Decomposer,
    Decomposition,
    Deferred,
)
from semcache.planners.steps.resolution import (
    NoTool,
    Referral,
    Resolution,
    ResolutionContext,
    Resolved,
    Resolver,
)
from semcache.planners.steps.verdict import ROUNDS, PlanVerdict, repaired, verify
from semcache.ports import Planned, PlanRequest
from semcache.prompts.parameter import Parameter

NAME = "modular 1"
"""Which planner made a plan; the number grows when its plans change."""


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A goal taken apart and its steps resolved, before it is a plan."""

    graph: IntentGraph
    goal: Decomposition
    resolved: Mapping[str, Resolved]


class ModularPlanner:
    """Plans by decomposition, resolution and assembly. Satisfies `ports.Planner`.

    What it did stands in the graph that comes with the plan: every strategy that deferred, every
    operation with what speaks for it. Safe from several threads if its parts are.
    """

    def __init__(
        self,
        decomposer: Decomposer,
        resolver: Resolver,
        *,
        rounds: int = ROUNDS,
    ) -> None:
        """Keep what is asked for.

        Args:
            decomposer: Takes goals apart.
            resolver: Finds the operation of a step.
            rounds: How often a plan that must not run is made anew with what is wrong with it; 0
                for a decomposer that would say the same again.
        """
        self._decomposer = decomposer
        self._resolver = resolver
        self._rounds = rounds

    def __repr__(self) -> str:
        return f"ModularPlanner({self.name!r})"

    @property
    def name(self) -> str:
        """Which planner this is, and by which strategies."""
        return f"{NAME}/{self._decomposer.name}"

    def plan(self, request: PlanRequest) -> Planned:
        """Return a plan that passes `plans.codec` and `verify`, with the graph of its intents.

        Raises:
            NotActionable: the catalog is empty, or a model says that this cannot be done.
            Referred: a person must say which operation is meant, or a value.
            PlanningError: no strategy can take the goal apart, or no plan for it may run.
            ModelError: the model behind a strategy cannot answer.
        """
        return self._finished(request, lambda failure: self._taken_apart(request, failure))

    def decompose(self, request: PlanRequest) -> IntentGraph:
        """Return the graph of the goal with no operation yet; `resume` goes on from it.

        Raises:
            As `plan`.
        """
        return IntentGraph.of(self._taken_apart(request, ""), params=_given(request))

    def resume(self, graph: IntentGraph, request: PlanRequest) -> Planned:
        """Return the plan for a graph that `decompose` gave, or that came back from JSON.

        Nothing is taken apart again: no model is asked for that.

        Raises:
            As `plan`.
        """
        goal = Decomposition(
            graph.goal.goal, graph.ordered(), graph.confidence, graph.strategy, graph.reasons
        )
        request = replace(request, prompt=graph.goal.goal, params=request.params or graph.params)
        return self._finished(request, lambda _: goal)

    def _finished(self, request: PlanRequest, goal_of: Callable[[str], Decomposition]) -> Planned:
        draft, verdict = repaired(
            lambda failure: self._drafted(request, goal_of(failure)),
            lambda draft: verify(
                draft.goal,
                draft.resolved,
                request.catalog,
                params=_given(request),
            ),
            rounds=self._rounds,
        )
        found = {k: one for k, one in draft.resolved.items() if isinstance(one, Resolution)}
        if not verdict.runs:
            raise _refusal(request, draft, verdict)
        made = assemble(draft.graph.ordered(), found, request.catalog)
        made = joined(made, request.prompt, request.catalog)
        intents = draft.graph.planned(made.plan).to_json()
        return Planned(made.plan, made.params, f"{NAME}/{draft.goal.strategy}", intents=intents)

    def _taken_apart(self, request: PlanRequest, failure: str) -> Decomposition:
        if not request.catalog:
            raise NotActionable("the catalog is empty; expected at least one operation")
        failure = failure or request.failure
        asked = replace(request, params=_given(request), params_read=False, failure=failure)
        found = self._decomposer.decompose(asked)
        if isinstance(found, Deferred):
            raise PlanningError(
                f"{request.prompt[:80]!r} cannot be taken apart: {found.why}; say it in simpler "
                "steps, or use a planner with a model"
            )
        return found

    def _drafted(self, request: PlanRequest, goal: Decomposition) -> PlanDraft:
        """Return `goal` with an operation, or what keeps it from one, for each step."""
        given = _given(request)
        graph = IntentGraph.of(goal, params=given)
        resolved: dict[str, Resolved] = {}
        before: dict[str, Resolution] = {}
        for step in graph.ordered():
            asked = ResolutionContext(
                prompt=request.prompt,
                catalog=request.catalog,
                params=given,
                before=before,
                tenant=request.tenant,
                alone=len(goal.intents) == 1,
            )
            one = self._resolver.resolve(step, asked)
            resolved[step.id] = one
            if isinstance(one, Resolution):
                before = {**before, step.id: one}
                graph = graph.resolved(step.id, one.operation, f"{one.source}: {one.why}")
            elif isinstance(one, Referral):
                graph = graph.advanced(step.id, "suspended", one.question)
            else:
                graph = graph.advanced(step.id, "failed", one.why)
        return PlanDraft(graph, goal, resolved)


def _given(request: PlanRequest) -> tuple[Parameter, ...]:
    """Return the values that the caller gave: they count as known, whatever the prompt says."""
    return () if request.params_read else request.params


def _refusal(request: PlanRequest, draft: PlanDraft, verdict: PlanVerdict) -> PlanningError:
    """Return why there is no plan: the question to ask if one would settle it."""
    said = f"no plan for {request.prompt[:80]!r} may run: {verdict.told}"
    if draft.goal.reasons:
        said += f" ({'; '.join(draft.goal.reasons)})"
    asked = [one for one in draft.resolved.values() if isinstance(one, Referral)]
    settled = [one for one in asked if one.kind != "none"]
    if settled and len(settled) == len(asked):
        return Referred(said, questions=tuple(one.question for one in settled))
    none = [one for one in draft.resolved.values() if isinstance(one, NoTool)]
    return NotActionable(said) if none else PlanningError(said)
