"""Weighing: what risk there is in serving each family of neighbors, and why one is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcache.cache.asked import Asked
from semcache.cache.evidence import Known
from semcache.cache.seen import Seen
from semcache.cache.view import View
from semcache.matching.asking import Asking
from semcache.matching.cautions import Doubt
from semcache.matching.content import content
from semcache.matching.features import NEIGHBORS, Featured, Near, featured
from semcache.matching.gates import Gates, common, looked_at
from semcache.matching.pair import Pair, Verdict
from semcache.matching.proof import doubts, misplaced_values, unproven, unproven_values
from semcache.matching.risk import probability_wrong
from semcache.ports import Neighbor

_LOW_RISK = Verdict("risk", passed=True)


class _Judged(NamedTuple):
    verdict: Verdict
    doubts: tuple[Doubt, ...] = ()


class Bar(NamedTuple):
    """What families are judged by."""

    asking: Asking
    cutoff: float
    """Lowest score that may be served."""


_PASSED_OVER = _Judged(Verdict("risk", passed=False, reason="another family came before it"))


@dataclass(slots=True)
class Weighed:
    """A family of neighbors and what the risk model says of it."""

    featured: Featured
    score: float
    """Log odds that it has the prompt's plan."""
    _bar: Bar | None = field(repr=False)
    _judged: _Judged | None = field(default=None, repr=False)

    @property
    def entry(self) -> str:
        """Id of the entry that would be served."""
        return self.featured.near.entry

    @property
    def verdict(self) -> Verdict:
        """Whether it may be served, and if not, why."""
        return self.judge().verdict

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What of its difference only the record of its kind can clear."""
        return self.judge().doubts

    def judge(self) -> _Judged:
        """Return what is said of it, worked out when first asked."""
        if self._judged is None:
            if self._bar is None:
                return _PASSED_OVER
            self._judged = _judged(self.featured, self.score, self._bar)
            self._bar = None
        return self._judged

    def judged_by(self, bar: Bar | None) -> "Weighed":
        """Return the same family to be judged by `bar` where it was not judged yet."""
        return Weighed(self.featured, self.score, bar, self._judged)

    def settle(self) -> None:
        """Let go of what it is judged by, once the lookup is over: families are kept for longer."""
        self._bar = None


def weigh(
    known: Known, view: View, asked: Asked, neighbors: Sequence[Neighbor], gates: Gates
) -> tuple[Weighed, ...]:
    """Return the families among the `neighbors` that pass the `gates`, least risk first."""
    near = _comparable(view, asked, neighbors, gates)
    if not near:
        return ()
    bar = _bar(known, view, asked)
    found = featured(bar.asking, near)
    keys = [one.keys for one in found]
    scores = known.model.scores([one.values for one in found], keys)
    weighed = [Weighed(one, score, bar) for one, score in zip(found, scores, strict=True)]
    weighed.sort(key=lambda one: (-one.score, one.entry))
    weighed[0].judge()  # the first is served or learned from; the others may never be asked about
    return tuple(weighed)


def weighed_alike(
    known: Known, view: View, asked: Asked, weighed: Sequence[Weighed]
) -> tuple[Weighed, ...]:
    """Return families weighed for a prompt that differs from `asked` in nothing but values."""
    bar = _bar(known, view, asked)
    return tuple([one.judged_by(bar) for one in weighed])


def _bar(known: Known, view: View, asked: Asked) -> Bar:
    asking = Asking(
        words=content(asked.given_template.text),
        slots=asked.given_template.slots,
        text=asked.given_template.text,
        given=bool(asked.given),
        evidence=known.evidence,
        families=view.kin(asked.side(), given=bool(asked.given)),
        known=known.beliefs,
        supposed=asked.supposed,
    )
    return Bar(asking, known.cutoff)


def _judged(one: Featured, score: float, bar: Bar) -> _Judged:
    supposed = unproven_values(bar.asking)
    if supposed:
        reason = f"not known to be values: {', '.join(map(repr, supposed))}"
        return _Judged(Verdict("slots", passed=False, reason=reason))
    misplaced = misplaced_values(bar.asking, one.near.words)
    if misplaced:
        reason = f"values behind other words than its own: {', '.join(map(repr, misplaced))}"
        return _Judged(Verdict("slots", passed=False, reason=reason))
    doubted = doubts(one.difference, bar.asking)
    doubtful = unproven(doubted, bar.asking.evidence)
    if doubtful:
        reason = f"not known to be harmless: {', '.join(map(repr, doubtful))}"
        return _Judged(Verdict("words", passed=False, reason=reason), doubted)
    if score >= bar.cutoff:
        return _Judged(_LOW_RISK, doubted)
    reason = (
        f"wrong with probability {probability_wrong(score):.3f}; "
        f"served up to {probability_wrong(bar.cutoff):.3f}"
    )
    words = one.difference.words
    if words:
        reason += f" (differs in {', '.join(map(repr, words[:6]))})"
    return _Judged(Verdict("risk", passed=False, reason=reason), doubted)


def _comparable(
    view: View, asked: Asked, neighbors: Sequence[Neighbor], gates: Gates
) -> list[Near]:
    """Return the first neighbors that pass the gates that no evidence can argue with."""
    side, given = asked.side(), bool(asked.given)
    found: list[Near] = []
    known: dict[tuple[object, ...] | None, bool] = {}
    for neighbor in neighbors:
        seen = view.entries.known(neighbor.id)
        if seen is None:
            continue
        pair = Pair(side, seen.facing(given=given), neighbor.similarity)
        looks = None if given else looked_at(pair.candidate)
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


def _near(seen: Seen, neighbor: Neighbor, pair: Pair, *, given: bool) -> Near:
    template = common(pair).candidate.template if given else pair.candidate.template
    words, family = content(template.text), seen.family(given=given)
    text = template.text
    return Near(neighbor.id, neighbor.similarity, words, template.slots, family, text)
