"""What the core reports while it works: small frozen values, handed to an observer."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from semcache.canonical import Json, JsonObject

Tier = Literal["template", "schema", "semantic", "selected"]
"""Where a hit came from; `selected`: a model chose it among a few cached plans."""

Phase = Literal[
    "normalize", "mentions", "embed", "search", "gates", "bind", "check", "lookup",
    "plan", "generalize", "store", "execute",
]  # fmt: skip
"""A step of the way of a prompt."""

NodeKind = Literal["run", "step", "attempt", "operation", "model", "reflection"]
"""What a node of a run tree is: a handled prompt or a piece of work of the caller's, a step of its
way, one try at something that may be tried again, a call of an operation or of a model, a look at a
failure."""

NodeStatus = Literal["running", "completed", "failed", "cancelled", "revised"]
"""Where a node stands; `revised`: completed, and replaced by a later attempt beside it."""

Level = Literal["run", "step", "model"]
"""What was reflected on: a whole run, a step of it, a call of a model."""


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


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What a million tokens cost, in whatever currency the caller counts in."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the price of that many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


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
class NodeOpened:
    """A node of a run tree began."""

    tree: str
    """Id of the outermost run."""
    run: str
    """Id of the run that it belongs to; the node's own for a run."""
    id: str
    parent: str
    """Id of the node that it stands under; empty for the root of its tree."""
    tenant: str
    name: str
    kind: NodeKind
    started_s: float
    """Epoch seconds."""
    input: Json = None
    """What went in; as all values in events about nodes, without secrets and cut to 2000
    characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClosed:
    """A node of a run tree ended, well or not."""

    tree: str
    run: str
    id: str
    status: NodeStatus
    seconds: float
    output: Json = None
    error: str = ""
    """Class and message of what it raised; empty if it ended well."""
    notes: JsonObject = field(default_factory=dict)
    """What else is known of it: tier, effect, reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRevised:
    """A completed node was replaced by a new attempt beside it."""

    tree: str
    id: str
    """The one that is replaced."""
    by: str
    """The one that replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionStarted:
    """Something failed and is looked at."""

    run: str
    """Id of the run; empty outside one."""
    level: Level
    name: str
    attempt: int
    """The attempt that failed, 1 for the first."""
    error: str
    """Class and message of the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionFinished:
    """It is decided what comes of a failure."""

    run: str
    level: Level
    name: str
    attempt: int
    retry: bool
    """Whether it is tried again."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequested:
    """An agent asked for a further run; nothing runs before the application accepts."""

    tree: str
    id: str
    """Id of the request."""
    tenant: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnDecided:
    """The application accepted or refused such a request."""

    tree: str
    id: str
    accepted: bool


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
    | NodeOpened
    | NodeClosed
    | NodeRevised
    | ReflectionStarted
    | ReflectionFinished
    | SpawnRequested
    | SpawnDecided
    | Repaired
)
"""Anything that is reported."""
