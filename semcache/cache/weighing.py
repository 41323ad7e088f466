"""Weighing: what risk there is in serving each family of neighbors, and why one is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.cache.asked import Asked
from semcache.cache.evidence import Known
from semcache.cache.seen import Seen
from semcache.cache.view import View
from semcache.matching.asking import Asking
from semcache.matching.cautions import Doubt
from semcache.matching.content import content
from semcache.matching.features import NEIGHBORS, Featured, Near, featured
from semcache.matching.gates import Gates, common
from semcache.matching.pair import Pair, Verdict
from semcache.matching.proof import doubts, unproven, unproven_values
from semcache.matching.risk import probability_wrong
from semcache.ports import Neighbor

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


def weigh(
    known: Known, view: View, asked: Asked, neighbors: Sequence[Neighbor], gates: Gates
) -> tuple[Weighed, ...]:
    """Return the families among the `neighbors` that pass the `gates`, least risk first."""
    near = _comparable(view, asked, neighbors, gates)
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
        _weighed(known, one, score, asking) for one, score in zip(found, scores, strict=True)
    ]
    weighed.sort(key=lambda one: (-one.score, one.entry))
    return tuple(weighed)


def _weighed(known: Known, one: Featured, score: float, asking: Asking) -> Weighed:
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
