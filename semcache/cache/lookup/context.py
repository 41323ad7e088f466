"""The context of one lookup: what it asks, what it has considered, and what it came to."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, cast

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry, expired
from semcache.cache.lookup.bind_entry import FilledPlan
from semcache.cache.query import Query
from semcache.cache.result import Candidate, Hit, Miss, Reason, Trace
from semcache.cache.view.view import View
from semcache.canonical import JsonObject
from semcache.errors import StoreCorrupt
from semcache.events import Phase, Tier
from semcache.matching.gates import STRICT, likeness
from semcache.plans.document import ExecutionPlan
from semcache.ports import Clock, Record
from semcache.prompts.schema import psk

KEPT = 8
"""Candidates that a trace keeps."""
MATCHING_S = 2.0
"""Seconds of matching, embedding and searching apart, after which a lookup gives up. Usual are a
thousandth of that, and a planner takes no longer."""
_MATCHING: tuple[Phase, ...] = ("gates", "bind", "check")


class BoundEntry(NamedTuple):
    """An entry that may be served, bound to the prompt's values."""

    id: str
    entry: Entry
    served: FilledPlan
    plan: ExecutionPlan
    score: float
    risk: float
    """Probability that its values make the plan another one; 0 where its words differ."""
    is_judged: bool = False
    """Whether the tenant's own plans and audits tell how probable that is."""


class PhaseTimer:
    """Adds the seconds inside to a phase. Not a generator: one of those takes twice the time."""

    __slots__ = ("_clock", "_phase", "_seconds", "_start")

    def __init__(self, clock: Clock, seconds: dict[Phase, float], phase: Phase) -> None:
        self._clock = clock
        self._seconds = seconds
        self._phase = phase

    def __enter__(self) -> None:
        self._start = self._clock.monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        took = self._clock.monotonic() - self._start
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + took


@dataclass(slots=True)
class Lookup:
    """One lookup on its way: what was considered, and how long each phase took."""

    context: CacheContext
    view: View
    query: Query
    change: int
    """Number of the last change that the view knows of."""
    above: float | None = None
    """Cosine that must be exceeded, whatever the risk is; None: risk alone decides."""
    what_if: bool = False
    """Whether it is only to be seen what would be found: nothing is learned and no entry lives
    longer, as `settings.ttl_slides` says."""
    choice: float = 0.0
    """What a model's choices add to the log odds that a plan is right; 0: none was made."""
    candidates: list[Candidate] = field(default_factory=list)
    tiers: list[tuple[Tier, str]] = field(default_factory=list)
    seconds: dict[Phase, float] = field(default_factory=dict)
    failure: Reason | None = None
    nearly: tuple[float, JsonObject] | None = None
    """Score and plan of the candidate that came nearest to being served."""

    def timed(self, phase: Phase) -> PhaseTimer:
        """Add the seconds inside to `phase`."""
        return PhaseTimer(self.context.clock, self.seconds, phase)

    def likeness(self, cosine: float) -> float:
        """Return a cosine of the embedder as it is told, and compared with thresholds."""
        return likeness(cosine, getattr(self.context.embedder, "strict_cosine", STRICT))

    def late(self) -> bool:
        """Return whether matching took so long that nothing more is to be tried."""
        spent = sum(self.seconds.get(phase, 0.0) for phase in _MATCHING)
        if spent > MATCHING_S and self.failure is None:
            self.failure = "too_slow"
            self.tiers.append(("semantic", f"given up after {spent:.1f} s of matching"))
        return spent > MATCHING_S

    def known(self, entry_id: str) -> Entry | None:
        """Return an entry of the view if it may be served now.

        The view is caught up, so that an entry read before is good if no later change wrote it.
        """
        seen = self.view.entries.known(entry_id)
        if seen is None:
            return None
        entry = self.context.entries.known(self.query.tenant, entry_id, seen.change)
        if entry is not None:
            return self._fresh(entry_id, entry, seen.change)
        record = self._read(entry_id)
        return None if record is None else self.decode(record)

    def _read(self, entry_id: str) -> Record | None:
        try:
            return self.context.store.get(self.query.tenant, entry_id)
        except StoreCorrupt as error:
            self.context.health.failed(self.query.tenant, "store", error)
            return None

    def decode(self, record: Record) -> Entry | None:
        """Return the entry of a record if it may be served now."""
        try:
            return self._fresh(record.id, self.context.entries.entry(record), record.change)
        except StoreCorrupt as error:
            self.context.health.failed(self.query.tenant, "store", error)
            return None

    def _fresh(self, entry_id: str, entry: Entry, change: int) -> Entry | None:
        if self.context.corrections.hides(self.query.tenant, entry_id, entry, change):
            return None
        now = self.context.clock.now()
        faded = entry.fades_s is not None and entry.fades_s <= now and not self.query.given
        return None if faded or expired(entry, now) else entry

    def consider(self, candidate: Candidate) -> None:
        """Keep `candidate` for the trace, if there is room."""
        if len(self.candidates) < KEPT:
            if self.query.secrets is not None:
                candidate = candidate.cleaned(self._clean)
            self.candidates.append(candidate)

    def _told(self) -> tuple[tuple[Tier, str], ...]:
        if self.query.secrets is None:
            return tuple(self.tiers)
        return tuple([(tier, self._clean(said)) for tier, said in self.tiers])

    def _clean(self, text: str) -> str:
        """Return `text` as it may be written down."""
        secrets = self.query.secrets
        return text if secrets is None or not text else secrets.clean(text)

    def hit(self, tier: Tier, passed: BoundEntry, risk: float | None = None) -> Hit:
        """Return the hit that serves what passed; `risk`: what that of its words is."""
        if not self.what_if:
            renew(self.context, tier, passed.id, passed.entry)
        return Hit(
            plan=passed.plan,
            tier=tier,
            score=passed.score,
            params=dict(passed.served.values),
            entry=passed.id,
            key=passed.entry.label,
            trace=self._trace(),
            risk=passed.risk if risk is None else max(risk, passed.risk),
        )

    def miss(self) -> Miss:
        """Return the miss of a lookup that nothing passed, with the nearest and its verdict."""
        refused = [c for c in self.candidates if not c.served]
        nearest = max(refused, key=lambda c: (c.score, len(c.verdicts)), default=None)
        reason = (
            self.failure or _reason(nearest) or ("no_candidate" if self.view.entries else "empty")
        )
        return Miss(reason, nearest, self._trace())

    def _trace(self) -> Trace:
        schema = self.query.schema
        return Trace(
            prompt=self.query.shown,
            tenant=self.query.tenant,
            template=self.query.plain.text,
            catalog=self.query.catalog,
            key=self._clean(psk(schema)) if schema else "",
            unexplained=tuple(map(self._clean, schema.unexplained)) if schema else (),
            tiers=self._told(),
            candidates=tuple(self.candidates),
            seconds=self.seconds,
            change=self.change,
        )


def _reason(nearest: Candidate | None) -> Reason | None:
    return cast(Reason, nearest.verdicts[-1].gate) if nearest else None


def renew(context: CacheContext, tier: Tier, entry_id: str, entry: Entry) -> None:
    """Begin the TTL of an entry anew if hits of that tier do so, at most 16 times a TTL."""
    settings = context.settings
    slides, ttl_s = settings.ttl_slides, settings.ttl_s
    if settings.frozen or slides == "never" or (tier == "semantic" and slides != "always"):
        return
    if ttl_s is None or entry.expires_s is None or entry.plan.perishable:
        return
    until = context.clock.now() + ttl_s
    least = until - ttl_s / 16
    if entry.expires_s <= least:
        context.writer.extend(entry.tenant, entry_id, until, least_s=least)
