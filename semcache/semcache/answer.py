"""What a run is asked, the plan that it chose, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semcache.cache.result import Found, Hit
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import NeedsInput
from semcache.planners.intent_graph import IntentGraph
from semcache.plans.document import ExecutionPlan
from semcache.ports import NodeResult
from semcache.runs.tree import Run


@dataclass(frozen=True, slots=True)
class Job:
    """One call of `run`."""

    prompt: str
    tenant: str
    params: Mapping[str, object] | None
    allow_writes: bool | None
    threshold: float | None
    run: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plan that a run executes, and how it was come by."""

    found: Found
    plan: ExecutionPlan
    planned: bool
    key: str
    """What its failures are remembered by."""
    entry: str = ""
    """Id of the entry that has it; empty if none does."""
    graph: IntentGraph | None = None
    """The intents that it serves, if they are at hand."""

    @classmethod
    def of(cls, hit: Hit) -> "Chosen":
        """Return the plan of a hit."""
        return cls(hit, hit.plan, planned=False, key=failing_key(hit), entry=hit.entry)


def failing_key(found: Found) -> str:
    """Return what failures are remembered by: the entry, or the prompt where there is none.

    Not the template text: the first plan for a prompt teaches values, and so changes it.
    """
    if isinstance(found, Hit):
        return entry_key(found.key, found.entry)
    return found.trace.template or found.trace.prompt


def entry_key(label: str, entry: str) -> str:
    """Return what the failures of the plan of an entry are remembered by."""
    return f"{label} ({entry[:12]})"


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
