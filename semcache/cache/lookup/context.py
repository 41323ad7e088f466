"""The context of one lookup: what it asks, what it has considered, and what it came to.

A candidate is evaluated here: it is bound and checked for a prompt, or refused.
"""

import contextlib
import math
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, cast

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.bind_entry import (
    FilledPlan,
    Refused,
    bind_by_slots,
    check_said,
    check_told,
    says_the_same,
    value_change,
)
from semcache.cache.lookup.bind_given import (
    bind_by_names,
    bind_by_schema,
    bind_chosen,
    has_its_slots,
)
from semcache.cache.query import Query
from semcache.cache.result import Candidate, Hit, Miss, Reason, Trace
from semcache.cache.view.view import EntrySummary, View
from semcache.canonical import JsonObject
from semcache.errors import StoreCorrupt
from semcache.events import Phase, Tier
from semcache.matching.gates import STRICT, Verdict, likeness, match_slots
from semcache.matching.model.value_risk import ValueChange
from semcache.plans.codec import MAKERS, check_values
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

    def took(self, phase: Phase, since: float) -> float:
        """Add the seconds `since` then to `phase`; return the time that it is now."""
        now = self.context.clock.monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + (now - since)
        return now

    def likeness(self, cosine: float) -> float:
        """Return a cosine of the embedder as it is told, and compared with thresholds."""
        return likeness(cosine, getattr(self.context.embedder, "strict_cosine", STRICT))

    def late(self) -> bool:
        """Return whether matching took so long that nothing more is to be tried."""
        spent = sum([self.seconds.get(phase, 0.0) for phase in _MATCHING])
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
        decoded = self.context.entries.use((self.query.tenant, entry_id))
        if decoded is not None and decoded[0] == seen.change:
            return self._fresh(entry_id, decoded[1], seen.change)
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
        corrections = self.context.corrections
        if corrections.is_any and corrections.hides(self.query.tenant, entry_id, entry, change):
            return None
        now = self.context.clock.now()
        faded = entry.fades_s is not None and entry.fades_s <= now and not self.query.given
        begin, end = entry.lifetime
        return entry if begin < now < end and not faded else None

    def consider(self, candidate: Candidate) -> None:
        """Keep `candidate` for the trace, if there is room."""
        if len(self.candidates) < KEPT:
            if self.query.secrets is not None:
                candidate = candidate.cleaned(self._clean)
            self.candidates.append(candidate)

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
        query, schema, tiers = self.query, self.query.schema, tuple(self.tiers)
        if query.secrets is not None:
            tiers = tuple([(tier, self._clean(said)) for tier, said in tiers])
        return Trace(
            prompt=query.shown,
            tenant=query.tenant,
            template=query.plain.text,
            catalog=query.tools.fingerprint,
            key=self._clean(psk(schema)) if schema else "",
            unexplained=tuple(map(self._clean, schema.unexplained)) if schema else (),
            tiers=tiers,
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


_BOUND = Verdict("binding", passed=True)


def evaluate(
    lookup: Lookup,
    tier: Tier,
    entry: Entry,
    query: Query,
    verdicts: tuple[Verdict, ...],
    *,
    score: float,
    entry_id: str,
) -> BoundEntry | Verdict:
    """Return what may be served of `entry`, or the verdict that refused it."""
    passed = None
    if verdicts[-1].passed:
        try:
            passed = bind_candidate(lookup, tier, entry, query, score=score, entry_id=entry_id)
            verdicts = (*verdicts, _BOUND)
        except Refused as refused:
            verdicts = (*verdicts, refused.verdict)
    text = entry.template.text
    lookup.consider(Candidate(entry_id, entry.label, text, tier, score, verdicts))
    return verdicts[-1] if passed is None else passed


def bind_candidate(
    lookup: Lookup, tier: Tier, entry: Entry, query: Query, *, score: float, entry_id: str
) -> BoundEntry:
    """Return `entry` with the values of `query`.

    Raises:
        Refused: feedback, another plan for the same words, or the values speak against it.
    """
    seen = lookup.view.entries.known(entry_id)
    # Feedback on a hit of the template tier removes the entry, so a veto names other templates.
    if tier != "template" and is_vetoed(lookup, query, entry_id):
        raise Refused("vetoed", "feedback said that this plan is wrong for this prompt")
    if seen is not None and tier != "schema":
        _check_contested(lookup.view, seen, query)
    if entry.writes:
        check_told(entry, query)
    if tier == "semantic":
        check_said(entry, query)
    plan, served = _filled(lookup, tier, entry, query)
    change = value_change(lookup.view, seen, entry, query, served.values)
    if tier == "semantic" and not says_the_same(entry, query):
        if change is None or not change.unsaid:
            return BoundEntry(entry_id, entry, served, plan, score, 0.0)
        change = change._replace(names=0)  # the risk of the words is of other names too
    risk = _value_risk(lookup, query, entry_id, seen, change)
    judged = change is not None
    return BoundEntry(entry_id, entry, served, plan, score, risk, is_judged=judged)


def fill(lookup: Lookup, entry: Entry, query: Query) -> tuple[ExecutionPlan, FilledPlan]:
    """Return the plan of `entry` with the values of `query`, whatever its risk.

    Raises:
        Refused: the plan cannot take the values.
    """
    return _filled(lookup, "semantic", entry, query)


def _filled(
    lookup: Lookup, tier: Tier, entry: Entry, query: Query
) -> tuple[ExecutionPlan, FilledPlan]:
    start = lookup.context.clock.monotonic()
    try:
        if tier == "schema":
            served = bind_by_schema(entry, query)
        elif lookup.choice:
            served = _by_choice(lookup, entry, query)
        else:
            served = _by_words(lookup, tier, entry, query)
    finally:
        start = lookup.took("bind", start)
    try:
        return _checked(lookup, entry, served), served
    finally:
        lookup.took("check", start)


def _by_words(lookup: Lookup, tier: Tier, entry: Entry, query: Query) -> FilledPlan:
    if query.given:
        return bind_by_names(entry, query)
    aligned = _in_roles(entry, query) if tier == "semantic" else query
    return bind_by_slots(entry, aligned, lookup.view.learned)


def _by_choice(lookup: Lookup, entry: Entry, query: Query) -> FilledPlan:
    """Bind by words where they tell all values, and else as a model chose the plan."""
    if has_its_slots(entry, query):
        with contextlib.suppress(Refused):
            return _by_words(lookup, "semantic", entry, query)
    return bind_chosen(entry, query)


def is_vetoed(lookup: Lookup, query: Query, entry_id: str) -> bool:
    """Return whether feedback said that the plan of an entry is wrong for the prompt."""
    corrections, change = lookup.context.corrections, lookup.context.views.change
    if corrections.without_veto.get(query.tenant) == change:
        return False
    return corrections.vetoes(query.tenant, query.plain.digest, entry_id, change=change)


def _value_risk(
    lookup: Lookup,
    query: Query,
    entry_id: str,
    seen: EntrySummary | None,
    change: ValueChange | None,
) -> float:
    """Return how probable it is that the values make it another plan; `change`: what is in doubt.

    Raises:
        Refused: more probable than the bound allows, and something of them is in doubt.
    """
    labels = lookup.context.labels
    if change is None:
        return _less_likely(labels.least_risk, lookup.choice)
    group = "" if seen is None else seen.group(given=bool(query.given))
    risk = _less_likely(labels.risk(query, entry_id, group, change), lookup.choice)
    if risk > labels.highest_risk:
        raise Refused(
            "risk",
            f"with these values the plan is another one with probability {risk:.3f}; "
            f"served up to {labels.highest_risk:.3f}",
        )
    return risk


def _less_likely(risk: float, by: float) -> float:
    """Return a probability in (0, 1) whose log odds are smaller `by` so much."""
    return risk if not by else risk / (risk + (1 - risk) * math.exp(by))


def _check_contested(view: View, seen: EntrySummary, query: Query) -> None:
    if view.contested(seen, given=bool(query.given)):
        raise Refused("contested", "as many entries that say the same have another plan")


def _checked(lookup: Lookup, entry: Entry, served: FilledPlan) -> ExecutionPlan:
    plan = MAKERS[entry.plan.format](served.bound.plan, served.bound.data)
    catalog = lookup.query.tools.catalog
    findings = check_values(plan, catalog) if catalog is not None else ()
    if findings:
        raise Refused("check", f"{findings[0].path}: {findings[0].what}")
    return plan


def _in_roles(entry: Entry, query: Query) -> Query:
    """Return the prompt with its mentions in the order of the entry's slots."""
    roles = match_slots(entry.template.slots, query.template.slots)
    if roles is None:
        raise Refused("binding", "which value plays which part cannot be told")
    return query._replace(mentions=tuple([query.mentions[role] for role in roles]))
