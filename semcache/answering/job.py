"""One call of `run` on its way, and the plan that it chose."""

from collections.abc import Mapping
from dataclasses import dataclass

from semcache.cache.found import Found, Hit
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.plans.plan import ExecutionPlan


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
