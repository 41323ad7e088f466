"""Answer: what a run gives."""

from dataclasses import dataclass, field

from semcache.cache.found import Found, Hit
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import NeedsInput
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.plans.plan import ExecutionPlan
from semcache.ports import NodeResult
from semcache.runs.tree import Run


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run gives."""

    text: str
    """The answer for a person."""
    value: Json
    """The answer as the plan gave it."""
    found: Found
    """What the lookup found: a hit, or the miss that led to planning."""
    plan: ExecutionPlan
    """The plan that was executed, values bound."""
    run: Run = field(repr=False)
    """The run as a tree: print it, or look at `run.id` and its nodes."""
    planned: bool
    """Whether a planner was asked."""
    seconds: float
    """Seconds from the call to the answer."""
    nodes: tuple[NodeResult, ...] = field(default=(), repr=False)
    """What each node did, in order."""
    intents: IntentGraph | None = field(default=None, repr=False)
    """The goal, its steps and how far each came; None if the plan names no intents."""
    needs: NeedsInput | None = None
    """What a person must be asked before there is a value: `text` has the questions, `value` is
    None, and `SemCache.answer` goes on. None: the run came to its end."""

    @property
    def tier(self) -> str:
        """Where the plan came from: `template`, `schema`, `semantic`, or `planned`."""
        return self.found.tier if isinstance(self.found, Hit) else "planned"

    def to_dict(self) -> JsonObject:
        """Return the answer as JSON."""
        return {
            "text": self.text,
            "value": self.value,
            "tier": self.tier,
            "planned": self.planned,
            "run": self.run.id,
            "milliseconds": round(self.seconds * 1000, 3),
            "found": self.found.to_dict(),
            "plan": self.plan.to_dict(),
            "intents": None if self.intents is None else self.intents.to_json(),
            "needs": None if self.needs is None else self.needs.to_json(),
        }
