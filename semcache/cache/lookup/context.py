"""The context of one lookup: what it asks, what it has considered, and what the tiers work with."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, TypeAlias, cast

from semcache.cache.entries.entry import Entry, expired
from semcache.cache.evidence.group_risk import WeighedGroup
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.lookup.bind_entry import Served
from semcache.cache.query import Query
from semcache.cache.result import Candidate, Hit, Miss, Reason, Trace
from semcache.cache.view.summaries import DecodedEntries
from semcache.cache.view.view import View
from semcache.errors import StoreCorrupt
from semcache.events import Phase, Tier
from semcache.forks import Lock
from semcache.matching.gates import Gates
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Clock, Embedder, Neighbor, PlanStore, Record
from semcache.prompts.schema.key import psk
from semcache.prompts.schema.schema import PromptSchema

KEPT = 8
"""Candidates that a trace keeps."""


Searched: TypeAlias = tuple[str, str, str]
"""Catalog, grounding, and the text that was embedded."""


class NeighborCache:
    """The neighbors of the last texts of all tenants, as long as views stay what they are.

    A template text that hits by meaning comes again with other values, and is near the same
    entries until one is added or dropped. It keeps about 6 KB a text. Thread-safe.
    """

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._lock = Lock()
        self._found: OrderedDict[tuple[int, Searched], Sequence[Neighbor]] = OrderedDict()

    def get(self, searched: Searched, version: int) -> Sequence[Neighbor] | None:
        """Return what was found in that version of a view; None if nobody searched."""
        return self._found.get((version, searched))

    def put(self, searched: Searched, version: int, neighbors: Sequence[Neighbor]) -> None:
        """Keep what was found; what was searched longest ago makes room."""
        with self._lock:
            self._found[version, searched] = neighbors
            if len(self._found) > self._keep:
                self._found.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the tiers work with."""

    store: PlanStore
    decoded: DecodedEntries
    embedder: Embedder
    clock: Clock
    neighbors: int
    exact: Gates
    """Gates of the template and schema tiers."""
    near: Gates
    """Gates of the semantic tier that no evidence can argue with."""
    normalized: Callable[[Query], PromptSchema | None]
    """What a prompt's schema is, if one can be had; asked only where the template tier missed."""
    weigh: Callable[[View, Query, Sequence[Neighbor]], Sequence[WeighedGroup]]
    """What the risk of each family of neighbors is."""
    another: Callable[[View, Query, Sequence[Neighbor], str, Collection[str]], WeighedGroup | None]
    """What it is of one family without the members that could not be bound."""
    labels: TrainingLabels
    """What is known of the risk of values, and what becomes of it."""
    vetoed: Callable[[Query, str], bool]
    """Whether feedback said that an entry is wrong for a prompt."""
    hidden: Callable[[str, str, Entry, int], bool]
    """Whether a correction that waits for the store keeps an entry from being served: told the
    tenant, the id, the entry and the number of the change that wrote it."""
    failed: Callable[[str, str, Exception], None]
    """Told the tenant, the part and the error when a part fails and is passed over."""
    served: Callable[[Tier, str, Entry], None]
    """Told the tier, the id and the entry of each hit."""
    above: float | None = None
    """Cosine that must be exceeded, whatever the risk is; None: risk alone decides."""
    nearby: NeighborCache = field(default_factory=NeighborCache)
    """What was near the texts that were searched for last."""


class BoundEntry(NamedTuple):
    """An entry that may be served, bound to the prompt's values."""

    id: str
    entry: Entry
    served: Served
    plan: ExecutionPlan
    score: float
    risk: float
    """Probability that its values make the plan another one; 0 where its words differ."""


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

    parts: Parts
    view: View
    asked: Query
    change: int
    """Number of the last change that the view knows of."""
    candidates: list[Candidate] = field(default_factory=list)
    tiers: list[tuple[Tier, str]] = field(default_factory=list)
    seconds: dict[Phase, float] = field(default_factory=dict)
    trouble: Reason | None = None

    def timed(self, phase: Phase) -> PhaseTimer:
        """Add the seconds inside to `phase`."""
        return PhaseTimer(self.parts.clock, self.seconds, phase)

    def known(self, entry_id: str) -> Entry | None:
        """Return an entry of the view if it may be served now.

        The view is caught up, so that an entry read before is good if no later change wrote it.
        """
        seen = self.view.entries.known(entry_id)
        if seen is None:
            return None
        entry = self.parts.decoded.known(self.asked.tenant, entry_id, seen.change)
        if entry is not None:
            return self._fresh(entry_id, entry, seen.change)
        record = self._read(entry_id)
        return None if record is None else self.decode(record)

    def _read(self, entry_id: str) -> Record | None:
        try:
            return self.parts.store.get(self.asked.tenant, entry_id)
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def decode(self, record: Record) -> Entry | None:
        """Return the entry of a record if it may be served now."""
        try:
            return self._fresh(record.id, self.parts.decoded.entry(record), record.change)
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def _fresh(self, entry_id: str, entry: Entry, change: int) -> Entry | None:
        if self.parts.hidden(self.asked.tenant, entry_id, entry, change):
            return None
        now = self.parts.clock.now()
        faded = entry.fades_s is not None and entry.fades_s <= now and not self.asked.given
        return None if faded or expired(entry, now) else entry

    def consider(self, candidate: Candidate) -> None:
        """Keep `candidate` for the trace, if there is room."""
        if len(self.candidates) < KEPT:
            self.candidates.append(candidate.cleaned(self._clean))

    def _clean(self, text: str) -> str:
        """Return `text` as it may be written down."""
        secrets = self.asked.secrets
        return text if secrets is None or not text else secrets.clean(text)

    def hit(self, tier: Tier, passed: BoundEntry, risk: float | None = None) -> Hit:
        """Return the hit that serves what passed; `risk`: what that of its words is."""
        self.parts.served(tier, passed.id, passed.entry)
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
            self.trouble or _reason(nearest) or ("no_candidate" if self.view.entries else "empty")
        )
        return Miss(reason, nearest, self._trace())

    def _trace(self) -> Trace:
        schema = self.asked.schema
        return Trace(
            prompt=self.asked.shown,
            tenant=self.asked.tenant,
            template=self.asked.plain.text,
            catalog=self.asked.catalog,
            key=self._clean(psk(schema)) if schema else "",
            unexplained=tuple(map(self._clean, schema.unexplained)) if schema else (),
            tiers=tuple((tier, self._clean(said)) for tier, said in self.tiers),
            candidates=tuple(self.candidates),
            seconds=self.seconds,
            change=self.change,
        )


def _reason(nearest: Candidate | None) -> Reason | None:
    return cast(Reason, nearest.verdicts[-1].gate) if nearest else None
