"""The intent graph: a goal, its steps, how they hang together, and how far each of them is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Literal, TypeAlias, cast

from pydantic import TypeAdapter

from semcache.canonical import JsonObject, dumps
from semcache.errors import InvalidInput, PlanningError
from semcache.planners.steps.intents import (
    GOAL,
    Decomposition,
    DependencyIssue,
    Said,
    SubIntent,
    in_order,
    issues,
    serves,
)
from semcache.plans.document import ExecutionPlan
from semcache.prompts.parameter import Parameter
from semcache.schemas import read

MAX_WAYS = 20
"""Ways that `why` tells at most."""

Status: TypeAlias = Literal["active", "resolved", "executing", "completed", "failed", "suspended"]
"""How far an intent is: `active` has no operation yet, `suspended` waits for a person."""

Relation: TypeAlias = Literal["is_subgoal_of", "depends_on"]
"""What an edge says of its source and its target."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One intent stands in a relation to another: `step2` depends on `step1`."""

    source: str
    relation: Relation
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentNode:
    """The goal or one step, with what became of it."""

    id: str
    name: str
    """`Goal`, `Step 1`."""
    goal: str
    """What shall be done, in words."""
    intent: SubIntent | None = None
    """The step; None for the goal."""
    status: Status = "active"
    note: str = ""
    """Why it has its status: what failed, which question it waits for."""
    operation: str = ""
    """The operation that was found for it; empty while there is none."""
    found_by: str = ""
    """Who found it, and what speaks for it: `catalog: verb and noun agree`."""
    plan_nodes: tuple[str, ...] = ()
    """Ids of the nodes of the plan that serve it."""


Step: TypeAlias = Literal[
    "decomposed", "intent_created", "edge_created", "resolved", "planned", "advanced"
]
"""What happened to a graph."""


@dataclass(frozen=True, slots=True)
class Traced:
    """One thing that happened to a graph, in the order in which it happened."""

    what: Step
    intent: str
    """Id of the node; of an edge, its source."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """The way from something that was called back to the goal."""

    nodes: tuple[IntentNode, ...]
    """From the step that it serves, over the steps that need that one, to the goal."""

    @property
    def text(self) -> str:
        """The way in words."""
        step, *others = self.nodes
        said = f"{step.operation or 'nothing'} serves {step.id}, {step.goal!r}"
        for one in others:
            link = "for the goal" if one.id == GOAL else f"needed by {one.id},"
            said += f"; {link} {one.goal!r}"
        return said


@dataclass(frozen=True, slots=True)
class IntentGraph:
    """A goal and its steps. Immutable: each change gives a new graph."""

    nodes: tuple[IntentNode, ...]
    """The goal first, then the steps in the order in which they were said."""
    knots: tuple[DependencyIssue, ...] = ()
    """What is odd about the dependencies; empty if nothing is."""
    strategy: str = ""
    """What took the goal apart: `pattern:sequential_actions`."""
    confidence: float = 1.0
    """How sure the decomposition is of the whole, in [0, 1]."""
    reasons: tuple[str, ...] = ()
    """What led to the decomposition, in order."""
    params: tuple[Said, ...] = ()
    """What is known of the values of the prompt as a whole."""
    trace: tuple[Traced, ...] = ()
    """What happened, in order: from the decomposition to the last node that ran."""

    @classmethod
    def of(
        cls, decomposition: Decomposition, *, params: tuple[Parameter, ...] = ()
    ) -> "IntentGraph":
        """Return the graph of a decomposition: an edge to the goal and to each dependency.

        Raises:
            InvalidInput: two intents have one id, or one has the goal's.
        """
        intents = decomposition.intents
        ids = [GOAL, *(one.id for one in intents)]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise InvalidInput(f"two intents have the id {twice[0]!r}; expected one each")
        root = IntentNode(id=GOAL, name="Goal", goal=decomposition.goal)
        steps = (
            IntentNode(id=one.id, name=f"Step {i}", goal=one.goal, intent=one)
            for i, one in enumerate(intents, 1)
        )
        told = f"{len(intents)} by {decomposition.strategy}, {decomposition.confidence:.2f} sure"
        trace = [Traced("decomposed", GOAL, told)]
        trace += [Traced("intent_created", one.id, one.goal) for one in intents]
        edges = _edges(intents)
        trace += [Traced("edge_created", e.source, f"{e.relation} {e.target}") for e in edges]
        return cls(
            trace=tuple(trace),
            nodes=(root, *steps),
            knots=tuple(issues(intents)),
            strategy=decomposition.strategy,
            confidence=decomposition.confidence,
            reasons=decomposition.reasons,
            params=params,
        )

    @property
    def goal(self) -> IntentNode:
        """The goal."""
        return self.nodes[0]

    @property
    def steps(self) -> tuple[IntentNode, ...]:
        """The steps, in the order in which they were said."""
        return self.nodes[1:]

    @property
    def intents(self) -> tuple[SubIntent, ...]:
        """What the steps are to do, in the order in which they were said."""
        return tuple(one.intent for one in self.nodes if one.intent is not None)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """What each step is to the goal, and to the steps that it needs."""
        return _edges(self.intents)

    def node(self, name: str) -> IntentNode:
        """Return the node of that id.

        Raises:
            InvalidInput: there is none.
        """
        found = next((one for one in self.nodes if one.id == name), None)
        if found is None:
            known = ", ".join(one.id for one in self.nodes)
            raise InvalidInput(f"no intent has the id {name!r}; known: {known}")
        return found

    def dependencies(self, name: str) -> tuple[str, ...]:
        """Return the ids of the steps that `name` needs, in the order in which they were said."""
        needed = next((one.depends_on for one in self.intents if one.id == name), ())
        return tuple(one.id for one in self.nodes if one.id in needed)

    def dependents(self, name: str) -> tuple[str, ...]:
        """Return the ids of the steps that need `name`."""
        return tuple(one.id for one in self.intents if name in one.depends_on)

    def ordered(self) -> tuple[SubIntent, ...]:
        """Return the steps so that each comes after those that it needs; else as they were said.

        Raises:
            PlanningError: the dependencies are cyclic, or name a step that there is not.
        """
        stuck = [knot.what for knot in self.knots if knot.code != "forward"]
        if stuck:
            raise PlanningError(
                f"the steps of {self.goal.goal[:80]!r} cannot be put in order: {'; '.join(stuck)}"
            )
        return tuple(in_order(self.intents))

    def advanced(self, name: str, status: Status, note: str = "") -> "IntentGraph":
        """Return the graph with the status of one node changed; the goal follows its steps.

        Raises:
            InvalidInput: no node has that id.
        """
        changed = self._changed(self.node(name).id, status=status, note=note)
        return _traced(_settled(changed), "advanced", name, f"{status} {note}".strip())

    def resolved(self, name: str, operation: str, found_by: str = "") -> "IntentGraph":
        """Return the graph with the operation that was found for one step, and why.

        Raises:
            InvalidInput: no node has that id.
        """
        node = self.node(name)
        changed = self._changed(node.id, status="resolved", operation=operation, found_by=found_by)
        return _traced(changed, "resolved", node.id, operation)

    def planned(self, plan: ExecutionPlan) -> "IntentGraph":
        """Return the graph with the nodes of `plan` that serve each step."""
        graph, serving = self, serves(plan)
        for one in self.steps:
            nodes = tuple(node for node, intent in serving.items() if intent == one.id)
            graph = graph._changed(one.id, plan_nodes=nodes)
        return _traced(graph, "planned", GOAL, f"{len(serving)} nodes")

    def finished(self, plan_node: str, *, error: str = "") -> "IntentGraph":
        """Return the graph after a node of its plan ended: the step that it serves is further.

        A step is completed with the last of its nodes; unchanged for a node that serves none.
        """
        served = [one for one in self.steps if plan_node in one.plan_nodes]
        graph = self
        for one in served:
            if error:
                graph = graph.advanced(one.id, "failed", error)
            else:
                last = one.plan_nodes[-1] == plan_node
                graph = graph.advanced(one.id, "completed" if last else "executing")
        return graph

    def why(self, called: str) -> tuple[Way, ...]:
        """Return why something was called: the ways from it back to the goal.

        `called` is the id of a plan node, the name of an operation, or the id of an intent. Empty
        if nothing of that name serves this goal; at most 20, for a graph may have any number.
        """
        serving = [one for one in self.steps if called in (one.id, one.operation, *one.plan_nodes)]
        found = (Way(nodes) for one in serving for nodes in self._ways(one))
        return tuple(islice(found, MAX_WAYS))

    def to_json(self) -> JsonObject:
        """Return the graph as JSON."""
        told = _adapter().dump_python(self, mode="json", exclude_defaults=True)
        return cast("JsonObject", told)

    @classmethod
    def from_json(cls, told: JsonObject) -> "IntentGraph":
        """Return the graph that `to_json` told.

        Raises:
            InvalidInput: it is not one.
        """
        # As text: only then does pydantic take lists for tuples without guessing at the rest.
        return _agreeing(read(_adapter(), dumps(told), what="the intent graph"))

    def mermaid(self) -> str:
        """Return the goal and its steps as a Mermaid flowchart."""
        from semcache.planners.intent_drawing import mermaid  # noqa: PLC0415 - it draws this class

        return mermaid(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/vnd.mermaid": self.mermaid(), "text/plain": str(self)}

    def __str__(self) -> str:
        """Return the goal and its steps as text, a line each."""
        from semcache.planners.intent_drawing import text  # noqa: PLC0415 - it draws this class

        return text(self)

    def _changed(self, name: str, **changes: object) -> "IntentGraph":
        nodes = tuple(
            replace(one, **changes) if one.id == name else one  # type: ignore[arg-type]  # by name
            for one in self.nodes
        )
        return replace(self, nodes=nodes)

    def _ways(
        self, step: IntentNode, before: tuple[str, ...] = ()
    ) -> Iterator[tuple[IntentNode, ...]]:
        users = [name for name in self.dependents(step.id) if name not in before]
        if not users:
            yield (step, self.goal)
        for name in users:
            for rest in self._ways(self.node(name), (*before, step.id)):
                yield (step, *rest)


def _edges(intents: tuple[SubIntent, ...]) -> tuple[Edge, ...]:
    ids = {GOAL, *(one.id for one in intents)}
    return (
        *(Edge(one.id, "is_subgoal_of", GOAL) for one in intents),
        *(
            Edge(one.id, "depends_on", other)
            for one in intents
            for other in dict.fromkeys(one.depends_on)
            if other in ids
        ),
    )


def _agreeing(graph: IntentGraph) -> IntentGraph:
    """Return a graph whose nodes are the goal and its steps, with what is odd about them."""
    intents = graph.intents
    ids = [GOAL, *(one.id for one in intents)]
    if [one.id for one in graph.nodes] != ids or len(set(ids)) < len(ids):
        raise InvalidInput(
            f"the intent graph at '/nodes': expected {GOAL!r}, which has no intent, and then steps "
            f"that each have the intent of their own id; found {ids!r:.200}"
        )
    return replace(graph, knots=tuple(issues(intents)))


def _traced(graph: IntentGraph, what: Step, intent: str, detail: str) -> IntentGraph:
    return replace(graph, trace=(*graph.trace, Traced(what, intent, detail)))


_FIRST: tuple[Status, ...] = ("failed", "suspended", "executing")


def _settled(graph: IntentGraph) -> IntentGraph:
    """Return the graph with the status of the goal as its steps make it."""
    found = {one.status for one in graph.steps}
    status: Status = next((one for one in _FIRST if one in found), "active")
    if status == "active" and "completed" in found:
        status = "completed" if found == {"completed"} else "executing"
    root = replace(graph.goal, status=status)
    return replace(graph, nodes=(root, *graph.nodes[1:]))


@cache
def _adapter() -> TypeAdapter[IntentGraph]:
    return TypeAdapter(IntentGraph)
