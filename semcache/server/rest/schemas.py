"""What the REST door answers, for its OpenAPI document."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class NearestEntry(BaseModel):
    """An entry that was considered."""

    entry: str
    key: str
    template: str
    tier: str
    score: float = Field(description="Cosine of the template texts, in [-1, 1]")
    verdicts: list[dict[str, Any]] = Field(description="What the gates said, in order")


class LookupResult(BaseModel):
    """A hit with the prompt's own values, or a miss that says why."""

    hit: bool
    id: str | None = Field(description="What `feedback` takes; null for a what-if")
    tier: str | None = Field(default=None, description="Where a hit came from")
    score: float | None = None
    risk: float | None = Field(default=None, description="Chance that the plan is wrong, in [0, 1]")
    entry: str | None = None
    key: str | None = None
    params: dict[str, Any] | None = Field(default=None, description="The prompt's own values")
    plan: Any = Field(default=None, description="The bound plan of a hit")
    reason: str | None = Field(default=None, description="Why a prompt missed")
    nearest: NearestEntry | None = None
    trace: dict[str, Any] = Field(description="How the lookup went")
    explanation: str | None = Field(default=None, description="Why, for a person; of a what-if")


class StoreResult(BaseModel):
    """What storing a plan did."""

    stored: bool
    id: str = Field(description="The entry; empty if nothing was stored")
    replaced: bool
    reason: str
    key: str
    bound: dict[str, list[str]] = Field(description="Parameter → places in the plan")
    pinned: dict[str, str] = Field(description="Parameter → the only value served, and why")


class FeedbackResult(BaseModel):
    """A judgment that was taken."""

    id: str
    right: bool
    outcome: str = Field(description="`counted` as evidence, `vetoed` for this prompt, `removed`")
    pending: str = Field(description="Why it is not done yet; empty if it is")


class InvalidateResult(BaseModel):
    """How many plans were removed."""

    removed: int
    pending: str = Field(description="Why it is not done yet; empty if it is")


class AskResult(BaseModel):
    """What a run gave, or what must be asked first."""

    id: str
    text: str
    value: Any
    tier: str = Field(description="Where the plan came from, or `planned`")
    planned: bool
    run: str
    milliseconds: float
    found: dict[str, Any]
    plan: Any
    intents: Any = None
    needs: dict[str, Any] | None = Field(description="`token` and questions, if it waits")


class StatisticsResult(BaseModel):
    """Counts of the tenant since its first lookup."""

    entries: int
    lookups: int
    hits: dict[str, int] = Field(description="Tier → hits")
    misses: dict[str, int] = Field(description="Reason → misses")
    stored: int
    feedback_right: int
    feedback_wrong: int
    hit_rate: float
    saved: dict[str, float] = Field(description="What hits saved; empty before a plan had a cost")
    certificate: dict[str, float | None] = Field(
        description="`max_wrong`, and the `share` of wrong hits that `samples` leave possible"
    )


class RecentLookup(BaseModel):
    """A lookup of late."""

    id: str
    at: float = Field(description="Epoch seconds")
    prompt: str
    template: str
    hit: bool
    tier: str
    reason: str
    score: float | None
    risk: float | None
    milliseconds: float
    right: bool | None


class RecentLookupDetails(RecentLookup):
    """A lookup of late, with all that was found."""

    found: dict[str, Any]
    explanation: str


class Group(BaseModel):
    """Plans that differ only in values."""

    group: str
    entries: int
    operations: list[str]
    plan: Any
    examples: list[dict[str, Any]]


class Caller(BaseModel):
    """Who holds the token."""

    tenant: str
    rights: list[str]
    operations: bool = Field(description="Whether prompts can be answered here")


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """Which parts answer."""

    ready: bool
    store: str
    embedder: str
