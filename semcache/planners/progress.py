"""Progress: the intents of a run, followed while it runs, kept with it, and learned from."""

import threading
from dataclasses import replace

from semcache.catalog.builtin import Question
from semcache.catalog.catalog import Catalog
from semcache.errors import InputNeeded, InvalidInput
from semcache.events import Event, NodeFinished
from semcache.planners.intent_graph import IntentGraph, IntentNode
from semcache.planners.learned import Learned
from semcache.planners.note_store import NoteStore
from semcache.plans.document import ExecutionPlan
from semcache.ports import Clock, Observer, PlanStore

KEPT_S = 30 * 24 * 3600.0
"""Seconds that the intents of a run are kept."""


class Progress:
    """The graph of one run, which advances with the nodes of its plan. Satisfies `Observer`.

    Safe from several threads. Without a graph it only hands events on.
    """

    def __init__(self, graph: IntentGraph | None, observer: Observer) -> None:
        self._graph = graph
        self._observer = observer
        self._lock = threading.Lock()

    @property
    def graph(self) -> IntentGraph | None:
        """The graph as far as the run is; None if its plan has none."""
        return self._graph

    def __call__(self, event: Event, /) -> None:
        """Take one event and hand it on."""
        # A question without an answer is no failure; `suspended` says what waits for it.
        if isinstance(event, NodeFinished) and event.error != InputNeeded.__name__:
            with self._lock:
                if self._graph is not None:
                    self._graph = self._graph.finished(event.node, error=event.error)
        self._observer(event)

    def suspended(self, questions: tuple[Question, ...]) -> None:
        """Let the steps that ask these questions wait."""
        if self._graph is None:
            return
        topics = {question.topic: question.text for question in questions}
        with self._lock:
            for step in self._graph.steps:
                if step.intent is not None and step.intent.topic in topics:
                    said = topics[step.intent.topic]
                    self._graph = self._graph.advanced(step.id, "suspended", said)


class IntentLog:
    """The intents of plans and runs, by tenant, in the notes of a store; and what they teach.

    Safe from several threads and processes. Every method may raise `StoreUnavailable`.
    """

    def __init__(self, store: PlanStore, clock: Clock, learned: Learned) -> None:
        """Keep what is asked for; `learned`: what runs teach."""
        self._kept = NoteStore(store, clock, "intents", ttl_s=KEPT_S)
        self._learned = learned

    def get(self, tenant: str, name: str) -> IntentGraph | None:
        """Return the graph of a run, or of the plan of an entry; None if there is none."""
        told = self._kept.get(tenant, name)
        try:
            return None if told is None else IntentGraph.from_json(told)
        except InvalidInput:
            return None  # written by a later version; a run goes on without it

    def keep(self, tenant: str, name: str, graph: IntentGraph) -> None:
        """Keep the graph of a run or an entry."""
        self._kept.put(tenant, name, graph.to_json())

    def learn(self, tenant: str, graph: IntentGraph, catalog: Catalog) -> None:
        """Remember which operations did their steps, and which failed at them."""
        for step in graph.steps:
            known = step.intent is not None and step.intent.kind == "api_call" and step.operation
            if step.intent is None or not known or step.status not in {"completed", "failed"}:
                continue
            well = step.status == "completed"
            self._learned.ran(tenant, step.intent, step.operation, catalog, well=well)


def fresh(graph: IntentGraph, plan: ExecutionPlan, prompt: str) -> IntentGraph:
    """Return the graph of a cached plan for another run of it: nothing is done yet.

    The goal is the prompt of this run. The steps are those of the prompt that was planned, with
    `<name>` where they had its values.
    """
    nodes = tuple(
        replace(one, goal=_without_values(one), status="resolved", note="") for one in graph.steps
    )
    root = replace(graph.goal, goal=prompt, status="active", note="")
    trace = tuple(one for one in graph.trace if one.what != "advanced")
    return replace(graph, nodes=(root, *nodes), trace=trace).planned(plan)


def _without_values(step: IntentNode) -> str:
    text = step.goal
    for param in step.intent.params if step.intent is not None else ():
        if param.mention:
            text = text.replace(param.mention, f"<{param.name}>")
    return text
