"""The tiers: one prompt is asked for by template text, by schema, and by meaning, in that order."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NamedTuple, cast

from semcache.cache.asked import Asked
from semcache.cache.entry import Decoded, Entry
from semcache.cache.found import Candidate, Found, Hit, Miss, Reason, Trace
from semcache.cache.given import serve_by_names
from semcache.cache.labels import Weighed
from semcache.cache.serving import Refused, Served, serve_by_schema, serve_by_slots
from semcache.cache.view import View
from semcache.catalog.catalog import Catalog
from semcache.errors import EmbeddingError, InvalidPlan, InvalidVector, StoreCorrupt
from semcache.events import Phase, Tier
from semcache.matching.content import embedded_text, is_telling
from semcache.matching.gates import Gates, threshold
from semcache.matching.pair import Pair, Verdict
from semcache.matching.risk import probability_wrong
from semcache.matching.roles import match_slots
from semcache.plans.checks import check_values
from semcache.plans.codec import adopt
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Clock, Embedder, Neighbor, PlanStore, Record
from semcache.prompts.alignment import align
from semcache.prompts.key import identity, psk
from semcache.prompts.schema import PromptSchema
from semcache.prompts.supposing import suppose

log = logging.getLogger(__name__)

KEPT = 8
"""Candidates that a trace keeps."""
MEMBERS = 3
"""Further members of a family that are tried while those before cannot be bound."""
WIDER = 4
"""Times as many neighbors are looked at where risk decides."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the tiers work with."""

    store: PlanStore
    decoded: Decoded
    embedder: Embedder
    clock: Clock
    catalog: Catalog | None
    neighbors: int
    exact: Gates
    """Gates of the template and schema tiers."""
    near: Gates
    """Gates of the semantic tier that no evidence can argue with."""
    normalized: Callable[[Asked], PromptSchema | None]
    """What a prompt's schema is, if one can be had; asked only where the template tier missed."""
    weigh: Callable[[View, Asked, Sequence[Neighbor]], Sequence[Weighed]]
    """What the risk of each family of neighbors is."""
    another: Callable[[View, Asked, Sequence[Neighbor], str, Collection[str]], Weighed | None]
    """What it is of one family without the members that could not be bound."""
    vetoed: Callable[[Asked, str], bool]
    """Whether feedback said that an entry is wrong for a prompt."""
    failed: Callable[[str, str, Exception], None]
    """Told the tenant, the part and the error when a part fails and is passed over."""
    served: Callable[[Tier, str, Entry], None]
    """Told the tier, the id and the entry of each hit."""
    above: float | None = None
    """Cosine that must be exceeded, whatever the risk is; None: risk alone decides."""


class _Passed(NamedTuple):
    id: str
    entry: Entry
    served: Served
    plan: ExecutionPlan
    score: float


class _Timed:
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


_BOUND = Verdict("binding", passed=True)


@dataclass(slots=True)
class Lookup:
    """One lookup on its way: what was considered, and how long each phase took."""

    parts: Parts
    view: View
    asked: Asked
    change: int
    """Number of the last change that the view knows of."""
    candidates: list[Candidate] = field(default_factory=list)
    tiers: list[tuple[Tier, str]] = field(default_factory=list)
    seconds: dict[Phase, float] = field(default_factory=dict)
    trouble: Reason | None = None

    def find(self) -> Found:
        """Return the hit of the first tier that has one, or a miss."""
        for tier in (self._template, self._aligned, self._schema, self._semantic):
            hit = tier()
            if hit is not None:
                return hit
        return self._miss()

    def timed(self, phase: Phase) -> _Timed:
        """Add the seconds inside to `phase`."""
        return _Timed(self.parts.clock, self.seconds, phase)

    # Template tier -------------------------------------------------------------------------

    def _template(self) -> Hit | None:
        ids = self.view.same_template(self.asked.template)
        if self.asked.given:
            also = self.view.same_without_given(self.asked.given_template)
            ids += [known for known in also if known not in ids]
        entries = [(known, entry) for known in ids if (entry := self._known(known)) is not None]
        passed = self._exact("template", entries, self.asked)
        self._say("template", passed, "refused" if ids else "no entry with this template text")
        return self._hit("template", passed) if passed else None

    def _aligned(self) -> Hit | None:
        """Find values never seen before: what stands where a template has its slots."""
        for entry_id in self.view.skeletons.candidates(self.asked.text):
            seen = self.view.entries.known(entry_id)
            if seen is None or seen.side.template.text == self.asked.template.text:
                continue
            if not is_telling(seen.side.template):
                continue
            mentions = align(
                self.asked.text,
                seen.side.template,
                mentions=self.asked.mentions,
                vocabulary=self.view.vocabulary,
            )
            entry = self._known(entry_id) if mentions else None
            if mentions is None or entry is None:
                continue
            passed = self._exact("template", [(entry_id, entry)], self.asked.aligned(mentions))
            if passed is not None:
                self.tiers.append(("template", "hit by alignment"))
                return self._hit("template", passed)
        return None

    # Schema tier ---------------------------------------------------------------------------

    def _schema(self) -> Hit | None:
        if self.asked.schema is None:
            with self.timed("normalize"):
                self.asked = replace(self.asked, schema=self.parts.normalized(self.asked))
        schema = self.asked.schema
        if schema is None:
            return None
        if schema.partial:
            self.tiers.append(("schema", f"partial: {', '.join(schema.unexplained)}"))
            return None
        records = self.parts.store.find(self.asked.tenant, f"schema:{identity(schema)}")
        entries = [(r.id, entry) for r in records if (entry := self._entry(r)) is not None]
        passed = self._exact("schema", entries, self.asked)
        nothing = f"no entry with the key {psk(schema)}"
        self._say("schema", passed, "refused" if records else nothing)
        return self._hit("schema", passed) if passed else None

    def _say(self, tier: Tier, passed: _Passed | None, otherwise: str) -> None:
        self.tiers.append((tier, "hit" if passed else otherwise))

    def _exact(
        self, tier: Tier, entries: Iterable[tuple[str, Entry]], asked: Asked
    ) -> _Passed | None:
        side = asked.side()
        for entry_id, entry in entries:
            verdicts = self.parts.exact(Pair(side, entry.side, 1.0))
            passed = self._judge(tier, entry, asked, verdicts, score=1.0, entry_id=entry_id)
            if isinstance(passed, _Passed):
                return passed
        return None

    # Semantic tier -------------------------------------------------------------------------

    def _semantic(self) -> Hit | None:
        if not len(self.view.index):
            self.tiers.append(("semantic", "nothing to compare with"))
            return None
        neighbors = self._neighbors(self.asked)
        if neighbors is None:
            self.tiers.append(("semantic", "the embedder failed"))
            return None
        with self.timed("gates"):
            weighed = self.parts.weigh(self.view, self.asked, neighbors)
        hit = self._least_risk(weighed, self.asked, neighbors) or self._supposed()
        if hit is not None:
            return hit
        if weighed:
            self.tiers.append(("semantic", "every candidate is too risky"))
        else:
            self._explain(neighbors)
        return None

    def _supposed(self) -> Hit | None:
        """Ask once more, with words that nobody used before read as values where habits say so."""
        hidden = self.asked.secrets is not None and self.asked.secrets.spans
        if self.asked.given or hidden:
            return None
        with self.timed("gates"):
            reading = suppose(self.asked.text, self.asked.mentions, self.view.habits())
        if reading is None:
            return None
        asked = self.asked.supposing(reading)
        neighbors = self._neighbors(asked)
        if neighbors is None:
            return None
        with self.timed("gates"):
            weighed = self.parts.weigh(self.view, asked, neighbors)
        return self._least_risk(weighed, asked, neighbors)

    def _neighbors(self, asked: Asked) -> Sequence[Neighbor] | None:
        """Return what is near in meaning, nearest first; None if the embedder failed."""
        # Families are told apart by their members, so that risk is weighed over more of them.
        wanted = self.parts.neighbors * WIDER
        try:
            with self.timed("embed"):
                vector = self.parts.embedder.embed([embedded_text(asked.template)])[0]
            with self.timed("search"):
                return self.view.index.search(vector, wanted)
        except (EmbeddingError, InvalidVector) as error:
            self.parts.failed(asked.tenant, "embedder", error)
            self.trouble = "embedder_failed"
            return None

    def _least_risk(
        self, weighed: Sequence[Weighed], asked: Asked, neighbors: Sequence[Neighbor]
    ) -> Hit | None:
        """Serve the family with the least risk for the prompt so read, if that is low enough."""
        for family in weighed[:KEPT]:
            for one in self._members(family, asked, neighbors):
                if (entry := self._known(one.entry)) is None:
                    break
                passed = self._member(one, entry, asked)
                if isinstance(passed, _Passed):
                    self.asked = asked
                    self.tiers.append(("semantic", "hit by supposing" if asked.supposed else "hit"))
                    hit = self._hit("semantic", passed)
                    return replace(hit, risk=probability_wrong(one.score))
                if passed.gate not in _OF_BINDING:
                    break
        return None

    def _members(
        self, family: Weighed, asked: Asked, neighbors: Sequence[Neighbor]
    ) -> Iterator[Weighed]:
        """Yield the member of a family that differs least, and then the next, each weighed."""
        tried: list[str] = []
        member: Weighed | None = family
        while member is not None and len(tried) <= MEMBERS:
            yield member
            tried.append(member.entry)
            with self.timed("gates"):
                name = family.featured.near.family
                member = self.parts.another(self.view, asked, neighbors, name, tried)

    def _member(self, one: Weighed, entry: Entry, asked: Asked) -> _Passed | Verdict:
        verdicts: tuple[Verdict, ...] = (one.verdict,)
        if one.verdict.passed and self.parts.above is not None:
            pair = Pair(asked.side(), entry.side, one.featured.nearest)
            verdicts = (*verdicts, threshold(self.parts.above)(pair))
        score = one.featured.near.score
        return self._judge("semantic", entry, asked, verdicts, score=score, entry_id=one.entry)

    def _explain(self, neighbors: Sequence[Neighbor]) -> None:
        """Say of the nearest what keeps them from being compared."""
        side = self.asked.side()
        for near in neighbors[:KEPT]:
            seen = self.view.entries.known(near.id)
            if seen is None:
                continue
            facing = seen.facing(given=bool(self.asked.given))
            verdicts = self.parts.near(Pair(side, facing, near.similarity))
            text, score = seen.side.template.text, near.similarity
            self._consider(Candidate(near.id, seen.label, text, "semantic", score, verdicts))
        self.tiers.append(("semantic", "no candidate passed"))

    def grey(self, floor: float) -> Hit | None:
        """Return, bound, the nearest candidate of a miss that only its likeness kept back.

        `floor`: cosine in [-1, 1] under which none is in doubt.
        """
        near = [c for c in self.candidates if c.score >= floor and c.tier == "semantic"]
        for candidate in sorted(near, key=lambda c: -c.score):
            entry = self._known(candidate.entry)
            if entry is None or candidate.verdicts[-1].gate not in _OF_LIKENESS:
                continue
            try:
                passed = self._serve(
                    "semantic", entry, self.asked, candidate.score, candidate.entry
                )
            except Refused:
                continue
            self.tiers.append(("semantic", "the nearest is in doubt"))
            return self._hit("semantic", passed)
        return None

    # What the tiers share ------------------------------------------------------------------

    def entry(self, entry_id: str) -> Entry | None:
        """Return an entry of the view if it may be served now; None if it is gone."""
        return self._known(entry_id)

    def _known(self, entry_id: str) -> Entry | None:
        """Return an entry of the view if it may be served now.

        The view is caught up, so that an entry read before is good if no later change wrote it.
        """
        seen = self.view.entries.known(entry_id)
        if seen is None:
            return None
        entry = self.parts.decoded.known(self.asked.tenant, entry_id, seen.change)
        if entry is not None:
            return self._fresh(entry)
        record = self._read(entry_id)
        return None if record is None else self._entry(record)

    def _read(self, entry_id: str) -> Record | None:
        try:
            return self.parts.store.get(self.asked.tenant, entry_id)
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def _entry(self, record: Record) -> Entry | None:
        """Return the entry of a record if it may be served now."""
        try:
            return self._fresh(self.parts.decoded.entry(record))
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def _fresh(self, entry: Entry) -> Entry | None:
        end = entry.expires_s
        if entry.fades_s is not None and not self.asked.given:
            end = entry.fades_s if end is None else min(end, entry.fades_s)
        return None if end is not None and end <= self.parts.clock.now() else entry

    def _judge(
        self,
        tier: Tier,
        entry: Entry,
        asked: Asked,
        verdicts: tuple[Verdict, ...],
        *,
        score: float,
        entry_id: str,
    ) -> _Passed | Verdict:
        """Return what may be served of `entry`, or the verdict that refused it."""
        passed = None
        if verdicts[-1].passed:
            try:
                passed = self._serve(tier, entry, asked, score, entry_id)
                verdicts = (*verdicts, _BOUND)
            except Refused as refused:
                verdicts = (*verdicts, refused.verdict)
        text = entry.template.text
        self._consider(Candidate(entry_id, entry.label, text, tier, score, verdicts))
        return verdicts[-1] if passed is None else passed

    def _serve(
        self, tier: Tier, entry: Entry, asked: Asked, score: float, entry_id: str
    ) -> _Passed:
        # Feedback on a hit of the template tier removes the entry, so a veto names other templates.
        if tier != "template" and self.parts.vetoed(asked, entry_id):
            raise Refused("vetoed", "feedback said that this plan is wrong for this prompt")
        self._check_contested(tier, asked, entry_id)
        if tier == "semantic" and not asked.given:
            asked = _in_roles(entry, asked)
        with self.timed("bind"):
            if tier == "schema":
                served = serve_by_schema(entry, asked)
            elif asked.given:
                served = serve_by_names(entry, asked)
            else:
                served = serve_by_slots(entry, asked, self.view.learned)
        with self.timed("check"):
            plan = self._checked(served)
        return _Passed(entry_id, entry, served, plan, score)

    def _check_contested(self, tier: Tier, asked: Asked, entry_id: str) -> None:
        seen = None if tier == "schema" else self.view.entries.known(entry_id)
        if seen is not None and self.view.contested(seen, given=bool(asked.given)):
            raise Refused("contested", "as many entries that say the same have another plan")

    def _checked(self, served: Served) -> ExecutionPlan:
        try:
            plan = adopt(served.bound.plan, served.bound.data)
        except InvalidPlan as error:
            raise Refused("check", str(error)) from error
        findings = check_values(plan, self.parts.catalog) if self.parts.catalog is not None else ()
        if findings:
            raise Refused("check", f"{findings[0].path}: {findings[0].what}")
        return plan

    def _consider(self, candidate: Candidate) -> None:
        if len(self.candidates) < KEPT:
            self.candidates.append(candidate.cleaned(self._clean))

    def _clean(self, text: str) -> str:
        """Return `text` as it may be written down."""
        secrets = self.asked.secrets
        return text if secrets is None or not text else secrets.clean(text)

    def _hit(self, tier: Tier, passed: _Passed) -> Hit:
        self.parts.served(tier, passed.id, passed.entry)
        return Hit(
            plan=passed.plan,
            tier=tier,
            score=passed.score,
            params=dict(passed.served.values),
            entry=passed.id,
            key=passed.entry.label,
            trace=self._trace(),
        )

    def _miss(self) -> Miss:
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
            template=self.asked.template.text,
            key=self._clean(psk(schema)) if schema else "",
            unexplained=tuple(map(self._clean, schema.unexplained)) if schema else (),
            tiers=tuple((tier, self._clean(said)) for tier, said in self.tiers),
            candidates=tuple(self.candidates),
            seconds=self.seconds,
            change=self.change,
        )


_OF_BINDING = frozenset({"binding", "pinned", "check"})
"""Gates that say of one entry that its plan cannot take the prompt's values."""
_OF_LIKENESS = frozenset({"threshold", "words", "risk"})
"""Gates that say how alike two prompts are, and not whether the plan would be valid."""


def _in_roles(entry: Entry, asked: Asked) -> Asked:
    """Return the prompt with its mentions in the order of the entry's slots."""
    roles = match_slots(entry.template.slots, asked.template.slots)
    if roles is None:
        raise Refused("binding", "which value plays which part cannot be told")
    return replace(asked, mentions=tuple(asked.mentions[role] for role in roles))


def _reason(nearest: Candidate | None) -> Reason | None:
    return cast(Reason, nearest.verdicts[-1].gate) if nearest else None
