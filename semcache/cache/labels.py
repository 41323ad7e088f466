"""Labels: what planned prompts and feedback say of neighbors, and how it weighs the next lookup."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from semcache.cache.asked import Asked
from semcache.cache.seen import Seen
from semcache.cache.view import View
from semcache.canonical import dumps, loads
from semcache.errors import InvalidJson
from semcache.matching.asking import Asking
from semcache.matching.beliefs import Beliefs
from semcache.matching.cautions import NEARLY, Doubt, learn
from semcache.matching.content import content
from semcache.matching.evidence import Evidence
from semcache.matching.features import NEIGHBORS, Featured, Near, featured
from semcache.matching.gates import Gates, common
from semcache.matching.pair import Pair, Verdict
from semcache.matching.proof import doubts, unproven, unproven_values
from semcache.matching.risk import (
    Model,
    Prior,
    lowest_cutoff,
    probability_wrong,
    raised,
    score_key,
)
from semcache.ports import Neighbor, PlanStore
from semcache.prompts.mentions import Mention
from semcache.prompts.supposing import Supposed
from semcache.prompts.template import slot_name

log = logging.getLogger(__name__)

NOTE = "evidence"
EVERY = 64
"""Labels of a tenant between two writes of its evidence; what a crash loses."""
REMEMBERED = 512
"""Lookups whose neighbors are remembered until their prompts are planned."""
LABELED = 3
"""Families that a planned prompt labels."""
_FIRST, _OTHERS, _TOLD = 1.0, 0.3, 0.1
"""Weight of a label: for the family that would have been served or whose hit was planned all the
same, for others, and by somebody's word: those who judge hits judge the wrong ones."""
_LOW_RISK = Verdict("risk", passed=True)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A family of neighbors and what the risk model says of it."""

    featured: Featured
    score: float
    """Log odds that it has the prompt's plan."""
    verdict: Verdict
    doubts: tuple[Doubt, ...] = ()
    """What of its difference only the record of its kind can clear."""

    @property
    def entry(self) -> str:
        """Id of the entry that would be served."""
        return self.featured.near.entry


class _Read(NamedTuple):
    """One reading of a prompt, and the families that were weighed for it."""

    weighed: tuple[Weighed, ...]
    supposed: tuple[Supposed, ...]
    others: tuple[Weighed, ...] = ()
    """Families with another member than the one that differs least: those that were asked for."""


_Remembered: TypeAlias = OrderedDict[tuple[str, str], tuple[_Read, ...]]
"""Tenant and prompt → its readings: the plain one, and then the one with what was supposed."""


@dataclass(slots=True)
class _Known:
    """A tenant's evidence, and what of it is not written yet."""

    evidence: Evidence
    pending: Evidence
    model: Model
    beliefs: Beliefs
    cutoff: float
    """Lowest score that may be served."""


class Labels:
    """Evidence of all tenants, kept in the store's notes, each tenant's apart. Thread-safe."""

    def __init__(self, store: PlanStore, prior: Prior, *, max_wrong: float, gates: Gates) -> None:
        self._store = store
        self._prior = prior
        self._max_wrong = max_wrong
        self._lowest = lowest_cutoff(prior.steps, max_wrong)
        self._gates = gates
        self._known: dict[str, _Known] = {}
        self._asked: _Remembered = OrderedDict()
        self._answered: _Remembered = OrderedDict()
        """Those whose prompts were planned since: a hit among them may still be judged."""
        self._lock = threading.RLock()

    def weigh(self, view: View, asked: Asked, neighbors: Sequence[Neighbor]) -> tuple[Weighed, ...]:
        """Return the families among `neighbors`, least risk first; they await the prompt's plan.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        with self._lock:
            weighed = self._families(view, asked, neighbors)
            key = (asked.tenant, asked.shown)
            plain = self._asked.get(key, ())[:1] if asked.supposed else ()
            _remember(self._asked, key, (*plain, _Read(weighed, asked.supposed)))
            return weighed

    def another(
        self,
        view: View,
        asked: Asked,
        neighbors: Sequence[Neighbor],
        family: str,
        without: Collection[str],
    ) -> Weighed | None:
        """Return the family as if its members `without` were not there; None if no other is near.

        For a prompt that was weighed before.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        left = [neighbor for neighbor in neighbors if neighbor.id not in without]
        with self._lock:
            found = self._families(view, asked, left)
            other = next((one for one in found if one.featured.near.family == family), None)
            key = (asked.tenant, asked.shown)
            if other is not None and key in self._asked:
                *before, last = self._asked[key]
                last = last._replace(others=(*last.others, other))
                self._asked[key] = (*before, last)
            return other

    def _families(
        self, view: View, asked: Asked, neighbors: Sequence[Neighbor]
    ) -> tuple[Weighed, ...]:
        """Return the families among `neighbors`, least risk first."""
        known = self._of(asked.tenant)
        near = _comparable(view, asked, neighbors, self._gates)
        if not near:
            return ()
        asking = Asking(
            words=content(asked.given_template.text),
            slots=asked.given_template.slots,
            given=bool(asked.given),
            evidence=known.evidence,
            families=view.kin(asked.side(), given=bool(asked.given)),
            known=known.beliefs,
            supposed=asked.supposed,
        )
        found = featured(asking, near)
        keys = [one.keys for one in found]
        scores = known.model.scores([one.values for one in found], keys)
        weighed = [
            self._weighed(known, one, score, asking)
            for one, score in zip(found, scores, strict=True)
        ]
        weighed.sort(key=lambda one: (-one.score, one.entry))
        return tuple(weighed)

    def _weighed(self, known: _Known, one: Featured, score: float, asking: Asking) -> Weighed:
        supposed = unproven_values(asking)
        if supposed:
            reason = f"not known to be values: {', '.join(map(repr, supposed))}"
            return Weighed(one, score, Verdict("slots", passed=False, reason=reason))
        doubted = doubts(one.difference, asking)
        doubtful = unproven(doubted, known.evidence)
        if doubtful:
            reason = f"not known to be harmless: {', '.join(map(repr, doubtful))}"
            verdict = Verdict("words", passed=False, reason=reason)
            return Weighed(one, score, verdict, doubted)
        if score >= known.cutoff:
            return Weighed(one, score, _LOW_RISK, doubted)
        reason = (
            f"wrong with probability {probability_wrong(score):.3f}; "
            f"served up to {probability_wrong(known.cutoff):.3f}"
        )
        words = one.difference.words
        if words:
            reason += f" (differs in {', '.join(map(repr, words[:6]))})"
        return Weighed(one, score, Verdict("risk", passed=False, reason=reason), doubted)

    # Learning ------------------------------------------------------------------------------

    def planned(
        self,
        tenant: str,
        text: str,
        families: Collection[str],
        mentions: Collection[Mention] = (),
    ) -> None:
        """Take in the plan of a prompt that was looked up before: it labels its neighbors.

        `mentions`: what its values turned out to be; they label what was supposed.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._lock:
            readings = self._asked.pop((tenant, text), ())
            if not any(read.weighed or read.supposed for read in readings):
                return
            _remember(self._answered, (tenant, text), readings)
            news = Evidence()
            spans = {(m.start, m.end, slot_name(m.kind)) for m in mentions}
            right = [read for read in readings if news.read_right(read.supposed, spans)]
            last = right[-1] if right else _Read((), ())
            # Readings that were wrong say nothing of words; that they were is in the evidence now.
            _learn(news, self._of(tenant), last.weighed, families)
            if last.weighed:
                nearest = max(last.weighed, key=lambda one: one.featured.near.score)
                news.count(same=nearest.featured.near.family in families)
            self._take(tenant, news)

    def judged(
        self, tenant: str, text: str, entry: str, *, right: bool, explored: bool = False
    ) -> None:
        """Take in how a hit turned out, by somebody's word or by the plan made for it (`explored`).

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._lock:
            key = (tenant, text)
            readings = self._asked.get(key) or self._answered.get(key, ())
            weighed = (*readings[-1].weighed, *readings[-1].others) if readings else ()
            served = next((one for one in weighed if one.entry == entry), None)
            if served is None:
                return
            news = Evidence()
            news.record.add(score_key(served.score), same=right)
            if key in self._asked:  # else its plan has labeled the pair already
                found = served.featured
                news.learn(found.difference, found.near.family, same=right)
                if explored or not right:
                    _learn_doubts(news, self._of(tenant), served, same=right)
                model, weight = self._of(tenant).model, _FIRST if explored else _TOLD
                news.shift(model.step(found.values, found.keys, same=right, weight=weight))
            self._take(tenant, news)

    def _take(self, tenant: str, news: Evidence) -> None:
        known = self._of(tenant)
        known.pending.merge(news)
        known.evidence.merge(news)
        self._derive(known)
        if known.pending.labels >= EVERY or news.record.same or news.record.other:
            self._write(tenant, known)

    def _derive(self, known: _Known) -> None:
        known.model = Model(self._prior, known.evidence)
        known.beliefs = Beliefs(known.evidence)
        known.cutoff = raised(self._lowest, self._max_wrong, known.evidence.record)

    # Keeping -------------------------------------------------------------------------------

    def _of(self, tenant: str) -> _Known:
        known = self._known.get(tenant)
        if known is None:
            evidence = self._read(self._store.get_note(tenant, NOTE))
            model, beliefs = Model(self._prior, evidence), Beliefs(evidence)
            cutoff = raised(self._lowest, self._max_wrong, evidence.record)
            known = self._known[tenant] = _Known(evidence, Evidence(), model, beliefs, cutoff)
        return known

    def _read(self, note: str | None) -> Evidence:
        if note is None:
            return Evidence()
        try:
            return Evidence.from_json(loads(note, what=NOTE), weights=len(self._prior.weights))
        except (InvalidJson, ValueError) as error:
            # What was learned is a convenience: without it the tenant starts from the prior again.
            log.warning("evidence is passed over: %s", error)
            return Evidence()

    def _write(self, tenant: str, known: _Known) -> None:
        self._store.update_note(tenant, NOTE, partial(self._added, known.pending))
        known.pending = Evidence()
        known.evidence = self._read(self._store.get_note(tenant, NOTE))
        self._derive(known)

    def _added(self, pending: Evidence, note: str | None) -> str:
        evidence = self._read(note)
        evidence.merge(pending)
        evidence.trim()
        return dumps(evidence.to_json())

    def flush(self) -> None:
        """Write what is pending.

        Raises:
            StoreUnavailable: the store cannot be written; what is pending waits for the next.
        """
        with self._lock:
            for tenant, known in self._known.items():
                if known.pending.labels:
                    self._write(tenant, known)

    def forget(self, tenant: str | None) -> None:
        """Drop what is in memory of the tenant, or of all (None)."""
        with self._lock:
            self._known = {t: known for t, known in self._known.items() if tenant not in {None, t}}
            for remembered in (self._asked, self._answered):
                for key in [key for key in remembered if tenant in {None, key[0]}]:
                    del remembered[key]

    # Carrying ------------------------------------------------------------------------------

    @property
    def weights(self) -> int:
        """How many weights the risk model has."""
        return len(self._prior.weights)

    def evidence(self, tenant: str) -> Evidence:
        """Return a copy of what the tenant's labels said, of all processes; written first.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._lock:
            known = self._known.get(tenant)
            if known is not None and known.pending.labels:
                self._write(tenant, known)
            return self._read(self._store.get_note(tenant, NOTE))

    def absorb(self, tenant: str, evidence: Evidence) -> None:
        """Add `evidence` to what the tenant's own labels said.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._lock:
            known = self._of(tenant)
            known.pending.merge(evidence)
            self._write(tenant, known)


def _learn(
    news: Evidence, known: _Known, weighed: Sequence[Weighed], families: Collection[str]
) -> None:
    """Take in what the families were that were weighed for a prompt."""
    if weighed:
        _learn_doubts(news, known, weighed[0], same=weighed[0].featured.near.family in families)
    for rank, one in enumerate(weighed[:LABELED]):
        found = one.featured
        same = found.near.family in families
        news.learn(found.difference, found.near.family, same=same)
        weight = _OTHERS if rank else _FIRST
        news.shift(known.model.step(found.values, found.keys, same=same, weight=weight))


def _learn_doubts(news: Evidence, known: _Known, one: Weighed, *, same: bool) -> None:
    """Take in what must be proven of a family that was nearly served, or was."""
    if one.score >= known.cutoff - NEARLY:
        learn(news, one.doubts, same=same)


def _remember(remembered: _Remembered, key: tuple[str, str], readings: tuple[_Read, ...]) -> None:
    remembered[key] = readings
    remembered.move_to_end(key)
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)


def _comparable(
    view: View, asked: Asked, neighbors: Sequence[Neighbor], gates: Gates
) -> list[Near]:
    """Return the first neighbors that pass the gates that no evidence can argue with."""
    side, given = asked.side(), bool(asked.given)
    found: list[Near] = []
    for neighbor in neighbors:
        seen = view.entries.known(neighbor.id)
        if seen is None:
            continue
        pair = Pair(side, seen.facing(given=given), neighbor.similarity)
        if gates.admit(pair):
            found.append(_near(seen, neighbor, pair, given=given))
            if len(found) == NEIGHBORS:
                break
    return found


def _near(seen: Seen, neighbor: Neighbor, pair: Pair, *, given: bool) -> Near:
    template = common(pair).candidate.template
    return Near(
        entry=neighbor.id,
        score=neighbor.similarity,
        words=content(template.text),
        slots=template.slots,
        family=seen.family(given=given),
    )
