"""What the core reports while it works: small frozen values, handed to an observer."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tier = Literal["template", "schema", "semantic"]
"""Where a hit came from."""

Phase = Literal[
    "normalize", "mentions", "embed", "search", "gates", "bind", "check", "lookup",
    "plan", "generalize", "store", "execute",
]  # fmt: skip
"""A step of the way of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFinished:
    """A step of the way of one prompt ended, well or not."""

    tenant: str
    run: str
    """Id of the run; empty outside one."""
    phase: Phase
    seconds: float
    error: str = ""
    """Class name of what it raised; empty if it ended well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupFinished:
    """A prompt was looked up."""

    tenant: str
    run: str
    key: str
    """Readable key of the entry on a hit, of the prompt on a miss; empty if unknown."""
    tier: Tier | None
    """None on a miss."""
    reason: str
    """Why it missed; empty on a hit."""
    score: float | None
    """Cosine in [-1, 1] of the entry served or the nearest one; None if none was compared."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryStored:
    """A plan template was written."""

    tenant: str
    entry: str
    replaced: bool
    evicted: int
    """How many other entries made room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesRemoved:
    """Entries were removed."""

    tenant: str
    count: int
    why: Literal["invalidated", "expired", "evicted", "cleared", "feedback", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFailed:
    """A part of the cache failed and was passed over; the caller saw a miss, not an error."""

    tenant: str
    part: str
    """`store`, `index`, `embedder`, `vocabulary`…"""
    error: str
    """Class and message of the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A language model answered, or failed to."""

    run: str
    purpose: str
    """What it was asked for: `normalize`, `plan`."""
    model: str
    attempt: int
    """1 for the first."""
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    error: str = ""
    cached: bool = False
    """Whether it was remembered: nobody was asked, and no tokens were spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLookedUp:
    """A response cache was asked for the answer of a model."""

    key: str
    """SHA-256 of the request, 64 hex digits, unless the caller has keys of its own."""
    group: str
    hit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished:
    """A node of a plan was executed."""

    run: str
    node: str
    operation: str
    """Empty for a node that calls nothing."""
    step: int
    """1 for the first step of the plan."""
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """Something broken was found on opening and put right."""

    what: str
    details: str


Event: TypeAlias = (
    PhaseFinished
    | LookupFinished
    | EntryStored
    | EntriesRemoved
    | TierFailed
    | ModelCalled
    | ResponseLookedUp
    | NodeFinished
    | Repaired
)
"""Anything that is reported."""
