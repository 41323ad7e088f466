"""Group risk: how risky each plan group near a prompt is, worked out once for prompts alike."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from semcache.cache.evidence.evidence_notes import TenantEvidence
from semcache.cache.query import Query
from semcache.cache.view.summaries import EntrySummary
from semcache.cache.view.view import View
from semcache.forks import Lock
from semcache.matching.decision import DecisionRule, WeighedGroup
from semcache.matching.gates import Gates, Pair, common, gate_key
from semcache.matching.model.features import (
    NEIGHBORS,
    MatchContext,
    NearEntry,
    featured,
)
from semcache.matching.words.content import content
from semcache.ports import Neighbor


def weigh(
    known: TenantEvidence, view: View, query: Query, neighbors: Sequence[Neighbor], gates: Gates
) -> tuple[WeighedGroup, ...]:
    """Return the groups among the `neighbors` that pass the `gates`, least risk first."""
    near = _comparable(view, query, neighbors, gates)
    if not near:
        return ()
    rule = _rule(known, view, query)
    found = featured(rule.context, near)
    keys = [one.keys for one in found]
    scores = known.model.scores([one.values for one in found], keys)
    weighed = [WeighedGroup(one, score, rule) for one, score in zip(found, scores, strict=True)]
    weighed.sort(key=lambda one: (-one.score, one.entry))
    weighed[0].judge()  # the first is served or learned from; the others may never be asked about
    return tuple(weighed)


def weighed_again(
    known: TenantEvidence, view: View, query: Query, weighed: Sequence[WeighedGroup]
) -> tuple[WeighedGroup, ...]:
    """Return groups weighed for a prompt that differs from `query` in nothing but values."""
    rule = _rule(known, view, query)
    return tuple([one.judged_by(rule) for one in weighed])


def _rule(known: TenantEvidence, view: View, query: Query) -> DecisionRule:
    context = MatchContext(
        words=content(query.given_template.text),
        slots=query.given_template.slots,
        text=query.given_template.text,
        given=bool(query.given),
        evidence=known.evidence,
        groups=view.plan_groups(query.side(), given=bool(query.given)),
        known=known.beliefs,
        supposed=query.supposed,
    )
    return DecisionRule(context, known.cutoff)


def _comparable(
    view: View, query: Query, neighbors: Sequence[Neighbor], gates: Gates
) -> list[NearEntry]:
    """Return the first neighbors that pass the gates that no evidence can argue with."""
    side, given = query.side(), bool(query.given)
    found: list[NearEntry] = []
    known: dict[tuple[object, ...] | None, bool] = {}
    for neighbor in neighbors:
        seen = view.entries.known(neighbor.id)
        if seen is None:
            continue
        pair = Pair(side, seen.facing(given=given), neighbor.similarity)
        looks = None if given else gate_key(pair.candidate)
        admitted = known.get(looks)  # most candidates are alike in what the gates look at
        if admitted is None:
            admitted = gates.admit(pair)
            if looks is not None:
                known[looks] = admitted
        if admitted:
            found.append(_near(seen, neighbor, pair, given=given))
            if len(found) == NEIGHBORS:
                break
    return found


def _near(seen: EntrySummary, neighbor: Neighbor, pair: Pair, *, given: bool) -> NearEntry:
    template = common(pair).candidate.template if given else pair.candidate.template
    words, group = content(template.text), seen.group(given=given)
    text = template.text
    return NearEntry(neighbor.id, neighbor.similarity, words, template.slots, group, text)


class _Weighing(NamedTuple):
    neighbors: Sequence[Neighbor]
    version: int
    """Of the evidence."""
    weighed: tuple[WeighedGroup, ...]


class ScoreCache:
    """The last weighings of all tenants. Safe from several threads."""

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._lock = Lock()
        self._kept: OrderedDict[_Key, _Weighing] = OrderedDict()

    def of(
        self,
        known: TenantEvidence,
        view: View,
        query: Query,
        neighbors: Sequence[Neighbor],
        weigh: Callable[[], tuple[WeighedGroup, ...]],
    ) -> tuple[WeighedGroup, ...]:
        """Return what `weigh` would, without asking it if a prompt like `query` was weighed before.

        Before: among the very same neighbors, of which `NeighborCache` has others once the view
        changed, and by the same evidence.
        """
        if query.supposed:
            return weigh()
        key = _but_for_values(query, view)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.neighbors is neighbors and kept.version == known.version:
            return weighed_again(known, view, query, kept.weighed)
        weighed = weigh()
        # Others than those handed out, which hold on to the evidence until their lookup is over.
        apart = tuple([one.judged_by(None) for one in weighed])
        with self._lock:
            self._kept[key] = _Weighing(neighbors, known.version, apart)
            self._kept.move_to_end(key)
            if len(self._kept) > self._keep:
                self._kept.popitem(last=False)
        return weighed

    def forget(self, tenant: str | None) -> None:
        """Drop what is kept of the tenant, or of all (None)."""
        with self._lock:
            for key in [key for key in self._kept if tenant in {None, key.tenant}]:
                del self._kept[key]


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
        query.side().said if view.fixed else frozenset(),
    )
