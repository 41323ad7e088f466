"""The risk of candidates: of plan groups near a prompt, and of values, by a tenant's evidence."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

from semcache.cache.evidence.evidence_notes import EvidenceNotes, TenantEvidence
from semcache.cache.query import Query
from semcache.cache.view.view import View
from semcache.matching.decision import DecisionRule, WeighedGroup
from semcache.matching.gates import Gates
from semcache.matching.model.bound import is_withheld, lowest_sampled
from semcache.matching.model.features import MatchContext, featured
from semcache.matching.model.risk import Prior
from semcache.matching.model.value_risk import ValueChange, shipped_values
from semcache.matching.words.content import content
from semcache.ports import Neighbor, PlanStore
from semcache.process.forks import Forked, Lock, follow_forks
from semcache.process.memo import Lru
from semcache.prompts.unseen.supposition import Supposed

REMEMBERED = 512
"""Lookups whose neighbors are remembered until their prompts are planned."""
WEIGHED = 512
"""Template texts whose groups are kept as they were weighed."""


class ChangedValues(NamedTuple):
    """A plan for the words of a prompt that was made for other values."""

    entry: str
    group: str
    kind: str
    """What of its values was in doubt; see `ValueChange.kind`."""


class NearlyServed(NamedTuple):
    """A candidate that would have been served with a lower cutoff."""

    score: float
    plan: str
    """Digest of what would have been served."""


class DoubtfulChoice(NamedTuple):
    """A plan that was chosen in doubt."""

    plan: str
    """Its digest."""
    max_wrong: float
    """Share of such choices that may be wrong."""


class Reading(NamedTuple):
    """One reading of a prompt, and the groups that were weighed for it."""

    weighed: tuple[WeighedGroup, ...]
    supposed: tuple[Supposed, ...]
    others: tuple[WeighedGroup, ...] = ()
    """Groups with another member than the one that differs least: those that were asked for."""


Remembered: TypeAlias = Lru[tuple[str, str], tuple[Reading, ...]]
"""Tenant and prompt → its readings: the plain one, and then the one with what was supposed."""


class CandidateRisk(Forked):
    """Evidence of all tenants, kept in the store's notes, each tenant's apart. Thread-safe.

    A tenant waits for its own evidence alone, and a lookup only for the first reading of it.
    """

    def __init__(
        self,
        store: PlanStore,
        prior: Prior,
        *,
        max_wrong: float,
        gates: Gates,
        embedder: str = "",
        adapts: bool = True,
    ) -> None:
        """Read evidence from `store` as it is needed.

        `embedder`: its fingerprint. `adapts`: whether a tenant's own samples may lower its cutoff;
        not where no plans are taken, which would go on giving samples.
        """
        self.notes = EvidenceNotes(
            store, prior, max_wrong=max_wrong, embedder=embedder, adapts=adapts
        )
        """The evidence itself."""
        self._gates = gates
        self._values = shipped_values()
        self.highest_risk = self._values.bound(max_wrong)
        """Risk of values up to which plans are served."""
        self.least_risk = self._values.plain
        """Probability that a plan is wrong where nothing of its values is in doubt."""
        self._weighings: Lru[_Key, _Weighing] = Lru(WEIGHED)
        self._begin()
        self._lock = Lock()
        follow_forks(self)

    def _begin(self) -> None:
        self._asked: Remembered = Lru(REMEMBERED)
        self._answered: Remembered = Lru(REMEMBERED)
        """Those whose prompts were planned since: a hit among them may still be judged."""
        self._changed: Lru[tuple[str, str], ChangedValues] = Lru(REMEMBERED)
        """Tenant and prompt → the plan that was served or refused with its values."""
        self._nearly: Lru[tuple[str, str], NearlyServed] = Lru(REMEMBERED)
        """Tenant and prompt → what was not served and awaits its plan."""
        self._chosen: Lru[tuple[str, str], DoubtfulChoice] = Lru(REMEMBERED)
        """Tenant and prompt → the plan that was chosen in doubt, and not served."""

    def forked(self) -> None:
        """Begin anew in a forked child: what is pending is the parent's to write."""
        self._begin()
        self.notes.forked()

    def risk(self, query: Query, entry: str, group: str, change: ValueChange) -> float:
        """Return the probability that the plan of `entry` is wrong for the values of a prompt.

        Where they are in doubt, the prompt's own plan or an audit of its hit will tell.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        values = self.notes.tenants[query.tenant].evidence.values
        risk = self._values.risk(change, values.of(change.kind))
        if query.known is None:  # else the reading may be wrong, which says nothing of values
            changed = ChangedValues(entry, group, change.kind)
            self._changed.put((query.tenant, query.shown), changed)
        return risk

    def weigh(
        self, view: View, query: Query, neighbors: Sequence[Neighbor]
    ) -> tuple[WeighedGroup, ...]:
        """Return the groups among `neighbors`, least risk first; they await the prompt's plan.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        weighed = self.weighed(view, query, neighbors)
        key = (query.tenant, query.shown)
        if not query.supposed:
            self._asked.put(key, (Reading(weighed, ()),))
            return weighed
        with self._lock:
            plain = (self._asked.get(key) or ())[:1]
            self._asked.put(key, (*plain, Reading(weighed, query.supposed)))
        return weighed

    def _weighed(
        self,
        known: TenantEvidence,
        version: int,
        view: View,
        query: Query,
        neighbors: Sequence[Neighbor],
    ) -> tuple[WeighedGroup, ...]:
        """Return the groups, weighed once for prompts alike.

        Alike: among the very same neighbors, of which `Views.neighbors` has others once the view
        changed, and by the same evidence.
        """
        if query.supposed:
            return weigh(known, view, query, neighbors, self._gates)
        key = _but_for_values(query, view)
        kept = self._weighings.get(key)
        if kept is not None and kept.neighbors is neighbors and kept.version == version:
            rule = _rule(known, view, query)
            return tuple([one.judged_by(rule) for one in kept.weighed])
        weighed = weigh(known, view, query, neighbors, self._gates)
        # Others than those handed out, which hold on to the evidence until their lookup is over.
        apart = tuple([one.judged_by(None) for one in weighed])
        self._weighings.put(key, _Weighing(neighbors, version, apart))
        return weighed

    def weighed(
        self, view: View, query: Query, neighbors: Sequence[Neighbor]
    ) -> tuple[WeighedGroup, ...]:
        """Return the groups among `neighbors`, least risk first; none awaits the prompt's plan.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        known = self.notes.tenants[query.tenant]
        version = known.version
        if version:
            weighed = self._weighed(known, version, view, query, neighbors)
            if known.version == version:
                return weighed
        with known.lock:  # the evidence was changed meanwhile
            return self._weighed(known, known.version, view, query, neighbors)

    def weighed_one(
        self, gates: Gates, view: View, query: Query, neighbors: Sequence[Neighbor], group: str
    ) -> WeighedGroup | None:
        """Return one group among `neighbors`, by other gates; None if it is not among them.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        known = self.notes.tenants[query.tenant]
        with known.lock:
            found = weigh(known, view, query, neighbors, gates, wanted=group)
        return next((one for one in found if one.featured.near.group == group), None)

    def another(
        self,
        view: View,
        query: Query,
        neighbors: Sequence[Neighbor],
        group: str,
        without: Collection[str],
    ) -> WeighedGroup | None:
        """Return the group as if its members `without` were not there; None if no other is near.

        For a prompt that was weighed before.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        left = [neighbor for neighbor in neighbors if neighbor.id not in without]
        known = self.notes.tenants[query.tenant]
        with known.lock:
            found = weigh(known, view, query, left, self._gates)
        other = next((one for one in found if one.featured.near.group == group), None)
        key = (query.tenant, query.shown)
        with self._lock:
            readings = self._asked.get(key)
            if other is not None and readings:
                *before, last = readings
                self._asked.put(key, (*before, last._replace(others=(*last.others, other))))
        return other

    def is_near(self, score: float) -> bool:
        """Return whether what a refused candidate of that score turns out to be is of use."""
        return score >= lowest_sampled(self.notes.shipped)

    def is_withheld(self, query: Query, score: float) -> bool:
        """Return whether a prompt that would be served at `score` is to be planned all the same.

        So it is with one in a few of those that are served because of the tenant's own samples.
        """
        return score < self.notes.shipped and is_withheld(query.shown)


def weigh(
    known: TenantEvidence,
    view: View,
    query: Query,
    neighbors: Sequence[Neighbor],
    gates: Gates,
    *,
    wanted: str | None = None,
) -> tuple[WeighedGroup, ...]:
    """Return the likeliest groups among the `neighbors` that pass the `gates`, least risk first.

    `wanted`: a group that is among them in any case, if it passes.
    """
    near = view.comparable(query.side(), neighbors, gates, given=bool(query.given))
    if not near:
        return ()
    rule = _rule(known, view, query)
    found = featured(rule.context, near, wanted)
    keys = [one.keys for one in found]
    scores = known.model.scores([one.values for one in found], keys)
    weighed = [WeighedGroup(one, score, rule) for one, score in zip(found, scores, strict=True)]
    weighed.sort(key=lambda one: (-one.score, one.entry))
    weighed[0].judge()  # the first is served or learned from; the others may never be asked about
    return tuple(weighed)


def _rule(known: TenantEvidence, view: View, query: Query) -> DecisionRule:
    context = MatchContext(
        words=content(query.given_template.text),
        slots=query.given_template.slots,
        text=query.given_template.text,
        given=bool(query.given),
        evidence=known.evidence,
        groups=view.plan_groups(query.prints, given=bool(query.given)),
        known=known.beliefs,
        supposed=query.supposed,
    )
    return DecisionRule(context, known.cutoff)


class _Weighing(NamedTuple):
    neighbors: Sequence[Neighbor]
    version: int
    """Of the evidence."""
    weighed: tuple[WeighedGroup, ...]


class _Key(NamedTuple):
    """All that weighing looks at in a prompt."""

    tenant: str
    text: str
    slots: tuple[tuple[str, str, str], ...]
    """Kind, name, and the word before, of each."""
    given: frozenset[str]
    catalog: str
    grounding: str
    said: frozenset[str]
    """Its values too where an entry holds on to some; empty where none does."""


def _but_for_values(query: Query, view: View) -> _Key:
    template = query.given_template
    return _Key(
        query.tenant,
        template.text,
        tuple([slot[:3] for slot in template.slots]),
        frozenset(query.given),
        query.catalog,
        query.grounding,
        query.said() if view.fixed else frozenset(),
    )
