"""The semantic tier: entries near in meaning, and of those the one with the least risk."""

import contextlib
import math
from collections.abc import Iterator, Sequence

from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.bind_entry import Refused
from semcache.cache.lookup.context import KEPT, BoundEntry, Lookup
from semcache.cache.lookup.evaluation import bind_candidate, evaluate, says_the_same
from semcache.cache.query import Query
from semcache.cache.result import Candidate, Hit
from semcache.errors import EmbeddingError, InvalidVector
from semcache.forks import give_way
from semcache.matching.decision import WeighedGroup
from semcache.matching.gates import CandidatePair, Verdict, risk_gates, threshold
from semcache.matching.model.risk import probability_wrong
from semcache.matching.words.content import embedded_text
from semcache.ports import Neighbor, Vector
from semcache.prompts.unseen.supposition import suppose

MEMBERS = 3
"""Further members of a group that are tried while those before cannot be bound."""
WIDER = 4
"""Times as many neighbors are looked at where risk decides, or where most are foreign."""
_GATES = risk_gates()
_OF_BINDING = frozenset({"binding", "pinned", "check"})
"""Gates that say of one entry that its plan cannot take the prompt's values."""
_OF_LIKENESS = frozenset({"threshold", "words", "risk"})
"""Gates that say how alike two prompts are, and not whether the plan would be valid."""


def by_meaning(lookup: Lookup) -> Hit | None:
    """Serve the entry near in meaning with the least risk, if that is low enough."""
    if lookup.late():
        return None
    neighbors = neighbors_of(lookup, lookup.query)
    if not neighbors:
        why = "the embedder failed" if neighbors is None else _nothing_near(lookup)
        lookup.tiers.append(("semantic", why))
        return None
    with lookup.timed("gates"):
        weighed = lookup.context.labels.weigh(lookup.view, lookup.query, neighbors)
    hit = _least_risk(lookup, weighed, lookup.query, neighbors)
    hit = by_supposing(lookup) if hit is None else hit
    if hit is not None:
        return hit
    withheld = lookup.failure == "explored"
    if lookup.nearly is not None and not lookup.what_if:
        lookup.context.labels.not_served(lookup.query, *lookup.nearly, withheld=withheld)
    if withheld:
        lookup.tiers.append(("semantic", "withheld, to see whether it had been right"))
    elif weighed:
        lookup.tiers.append(("semantic", "every candidate is too risky"))
    else:
        _explain(lookup, neighbors)
    return None


def _nothing_near(lookup: Lookup) -> str:
    """Return why no entry can be near."""
    if not len(lookup.view.entries):
        return "nothing to compare with"
    mine = lookup.context.embedder.fingerprint
    return f"no entry has a vector of {mine}; `semcache doctor --repair` embeds them anew"


def by_supposing(lookup: Lookup) -> Hit | None:
    """Ask once more, with words that nobody used before read as values where habits say so."""
    hidden = lookup.query.secrets is not None and lookup.query.secrets.spans
    if lookup.query.given or hidden or lookup.failure or lookup.late():
        return None
    with lookup.timed("gates"):
        reading = suppose(lookup.query.text, lookup.query.mentions, lookup.view.habits())
    if reading is None:
        return None
    query = lookup.query.supposing(reading)
    neighbors = neighbors_of(lookup, query)
    if neighbors is None:
        return None
    with lookup.timed("gates"):
        weighed = lookup.context.labels.weigh(lookup.view, query, neighbors)
    return _least_risk(lookup, weighed, query, neighbors)


def neighbors_of(lookup: Lookup, query: Query) -> Sequence[Neighbor] | None:
    """Return what is near in meaning, nearest first; None if the embedder failed.

    Empty only where the index is.
    """
    # Groups are told apart by their members, so that risk is weighed over more of them.
    wanted = lookup.context.settings.neighbors * WIDER
    text, view = embedded_text(query.template), lookup.view
    version = view.version  # before the search, which may see what comes with the next one
    key = version, query.catalog, query.grounding, text
    known = lookup.context.views.neighbors.get(key)
    if known is not None:
        return known
    if not len(view.index):
        return ()
    try:
        with lookup.timed("embed"):
            give_way()
            vector = lookup.context.embedder.embed([text])[0]
        with lookup.timed("search"):
            found = _of_its_own(lookup, vector, wanted)
    except (EmbeddingError, InvalidVector) as error:
        lookup.context.health.failed(query.tenant, "embedder", error)
        lookup.failure = "embedder_failed"
        return None
    lookup.context.views.neighbors.put(key, found)
    return found


def _of_its_own(lookup: Lookup, vector: Vector, wanted: int) -> Sequence[Neighbor]:
    """Return the nearest with the prompt's catalog and grounding, which alone could be served.

    Others may be nearer, so that the search goes on until enough are found. Where all are foreign
    they are returned, for a miss to tell so.
    """
    index, entries = lookup.view.index, lookup.view.entries
    its = lookup.query.prints
    if lookup.view.groups.are_all(*its):
        return index.search(vector, wanted)  # most entries found are never looked at
    count = wanted
    while True:
        found = index.search(vector, count)
        own = [n for n in found if (seen := entries.known(n.id)) is None or seen.prints == its]
        if len(own) >= wanted or len(found) < count:
            return own[:wanted] or found[:wanted]
        count *= WIDER


def _least_risk(
    lookup: Lookup, weighed: Sequence[WeighedGroup], query: Query, neighbors: Sequence[Neighbor]
) -> Hit | None:
    """Serve the group with the least risk for the prompt so read, if that is low enough."""
    try:
        return _first_that_may(lookup, weighed, query, neighbors)
    finally:
        for group in weighed:
            group.settle()


def _first_that_may(
    lookup: Lookup, weighed: Sequence[WeighedGroup], query: Query, neighbors: Sequence[Neighbor]
) -> Hit | None:
    for group in weighed[:KEPT]:
        for one in _members(lookup, group, query, neighbors):
            if (entry := lookup.known(one.entry)) is None:
                break
            passed = _member(lookup, one, entry, query)
            if isinstance(passed, BoundEntry):
                if lookup.context.labels.is_withheld(query, one.score):
                    lookup.failure, lookup.nearly = "explored", (one.score, passed.plan.to_dict())
                    return None
                lookup.query = query
                lookup.tiers.append(("semantic", "hit by supposing" if query.supposed else "hit"))
                return lookup.hit("semantic", passed, probability_wrong(one.score))
            if passed.gate not in _OF_BINDING:
                break
    return None


def _members(
    lookup: Lookup, group: WeighedGroup, query: Query, neighbors: Sequence[Neighbor]
) -> Iterator[WeighedGroup]:
    """Yield the member of a group that differs least, and then the next, each weighed."""
    tried: list[str] = []
    member: WeighedGroup | None = group
    while member is not None and len(tried) <= MEMBERS and not lookup.late():
        yield member
        tried.append(member.entry)
        with lookup.timed("gates"):
            name = group.featured.near.group
            member = lookup.context.labels.another(lookup.view, query, neighbors, name, tried)


def _member(lookup: Lookup, one: WeighedGroup, entry: Entry, query: Query) -> BoundEntry | Verdict:
    verdicts: tuple[Verdict, ...] = (one.verdict,)
    if one.verdict.passed and lookup.above is not None:
        pair = CandidatePair(query.side(), entry.side, lookup.likeness(one.featured.nearest))
        verdicts = (*verdicts, threshold(lookup.above)(pair))
    score = lookup.likeness(one.featured.near.score)
    if verdicts[-1].gate == "risk" and not verdicts[-1].passed:
        _note_refused(lookup, one, entry, query)
    return evaluate(lookup, "semantic", entry, query, verdicts, score=score, entry_id=one.entry)


def _note_refused(lookup: Lookup, one: WeighedGroup, entry: Entry, query: Query) -> None:
    """Keep what a lower cutoff would have served: its prompt's plan will tell if that was right."""
    best = -math.inf if lookup.nearly is None else lookup.nearly[0]
    hidden = query.secrets is not None and query.secrets.spans
    if hidden or one.score <= best or not lookup.context.labels.is_near(one.score):
        return
    if says_the_same(entry, query):
        return  # its values decide, which have a risk and labels of their own
    pair = CandidatePair(query.side(), entry.side, lookup.likeness(one.featured.nearest))
    if lookup.above is not None and not threshold(lookup.above)(pair).passed:
        return
    with contextlib.suppress(Refused):
        passed = bind_candidate(
            lookup, "semantic", entry, query, score=one.score, entry_id=one.entry
        )
        lookup.nearly = one.score, passed.plan.to_dict()


def _explain(lookup: Lookup, neighbors: Sequence[Neighbor]) -> None:
    """Say of the nearest what keeps them from being compared."""
    side = lookup.query.side()
    for near in neighbors[:KEPT]:
        seen = lookup.view.entries.known(near.id)
        if seen is None:
            continue
        facing = seen.facing(given=bool(lookup.query.given))
        verdicts = _GATES(CandidatePair(side, facing, near.similarity))
        text, score = seen.side.template.text, lookup.likeness(near.similarity)
        lookup.consider(Candidate(near.id, seen.label, text, "semantic", score, verdicts))
    lookup.tiers.append(("semantic", "no candidate passed"))


def candidate_in_doubt(lookup: Lookup, floor: float) -> Hit | None:
    """Return, bound, the nearest candidate of a miss that only its likeness kept back.

    `floor`: cosine in [-1, 1] under which none is in doubt.
    """
    near = [c for c in lookup.candidates if c.score >= floor and c.tier == "semantic"]
    for candidate in sorted(near, key=lambda c: -c.score):
        entry = lookup.known(candidate.entry)
        if entry is None or candidate.verdicts[-1].gate not in _OF_LIKENESS:
            continue
        try:
            score, known = candidate.score, candidate.entry
            passed = bind_candidate(
                lookup, "semantic", entry, lookup.query, score=score, entry_id=known
            )
        except Refused:
            continue
        lookup.tiers.append(("semantic", "the nearest is in doubt"))
        return lookup.hit("semantic", passed)
    return None
