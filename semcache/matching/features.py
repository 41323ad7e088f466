"""Features: what of a prompt and its neighbors tells whether a neighbor's plan serves the prompt.

Neighbors are grouped by family (entries with the same plan but for values); each family is
described by the member whose words differ least, and by how the other families compare.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

from semcache.matching.alike import Difference, compare, word_class
from semcache.matching.asking import Asking
from semcache.matching.evidence import Evidence, kind, swap
from semcache.matching.proof import upper_share
from semcache.prompts.template import Slot


@dataclass(frozen=True, slots=True)
class Near:
    """A neighbor of a prompt with slots of the same kinds."""

    entry: str
    """Id of the entry."""
    score: float
    """Cosine of the template texts, in [-1, 1]."""
    words: tuple[str, ...]
    """Content words of its template text."""
    slots: tuple[Slot, ...]
    family: str
    """Names what its plan is but for values."""


@dataclass(frozen=True, slots=True)
class Featured:
    """A family of neighbors as the risk model sees it."""

    near: Near
    """Its member that differs least."""
    difference: Difference
    """How the prompt differs from that member."""
    values: tuple[float, ...]
    """One number for each of `NAMES`."""
    nearest: float
    """Cosine of its nearest member, in [-1, 1]."""


NAMES = (
    "cosine", "cosine_high", "margin", "agreeing", "vote", "support", "rival_support",
    "near_support", "rival_near_support", "clean_members", "clean_rivals", "rival_cost",
    "size", "single", "doubt", "extra_open", "missing_open", "extra_meaning", "missing_meaning",
    "unproven_meaning", "extra_light", "missing_light", "extra_role", "missing_role", "alike",
    "worst_word", "all_words", "exchanged", "moved", "clean", "contexts", "unheard", "novel",
    "required", "length", "slots", "same_order", "base_rate", "noise", "labels", "given",
)  # fmt: skip
"""Names of the features, in order."""

NEIGHBORS = 16
"""Neighbors of equal slot kinds that are compared."""
DESCRIBED = 4
"""Families that are described: those that differ least, and the nearest."""

_WEIGHTS = {"open": 1.0, "meaning": 1.2, "digit": 1.5, "slot": 1.5, "role": 0.4, "light": 0.3}
_FIRST_SAME = {"light": 1.5, "role": 1.0, "meaning": 0.5, "open": 0.5, "digit": 0.3, "slot": 0.3}
_KIND = 4.0
"""Times as much as for one word what is known beforehand counts for a class of words."""
_FIRST_OTHER = {"light": 0.5, "role": 0.8}
"""What stands for the counts of a word, by its class, before anything was labeled."""


def odds(evidence: Evidence, word: str) -> float:
    """Return the log odds that a difference in `word` goes with another plan."""
    same, other = evidence.words.of(word)
    first_same, first_other = _first(evidence, word)
    return math.log((other + first_other) / (same + first_same))


def _first(evidence: Evidence, word: str) -> tuple[float, float]:
    """Return what stands for the counts of a word that was not labeled: those of its class."""
    of_class = word_class(word)
    first_same, first_other = _FIRST_SAME[of_class], _FIRST_OTHER.get(of_class, 1.0)
    same, other = evidence.kinds.of(kind(word))
    known = first_same + first_other
    share = (first_other * _KIND + other) / (known * _KIND + same + other)
    return known * (1 - share), known * share


def featured(asking: Asking, near: Sequence[Near]) -> tuple[Featured, ...]:
    """Return the families among `near` (nearest first) with their features."""
    near = near[:NEIGHBORS]
    field = _Field(asking, near, [compare(asking.words, n.words) for n in near])
    return tuple(field.describe(family) for family in field.likeliest())


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z))


class _Field:
    """All neighbors of one prompt, so that each family is seen against the others."""

    def __init__(
        self,
        asking: Asking,
        near: Sequence[Near],
        differences: Sequence[Difference],
    ) -> None:
        self.asking, self.near, self.differences = asking, near, differences
        self._odds: dict[str, float] = {}
        self.costs = costs = [self._cost(difference) for difference in differences]
        self.members: dict[str, list[int]] = {}
        for i, one in enumerate(near):
            self.members.setdefault(one.family, []).append(i)
        # How near in words, in cosine, and in cosine against the nearest of all.
        self._by_words = [math.exp(-1.2 * cost) for cost in costs]
        self._by_cosine = [math.exp(20 * (one.score - 1)) for one in near]
        self._votes = [math.exp(25 * (one.score - near[0].score)) for one in near]
        self._clean = [not d.words for d in differences]
        self._best = {f: min(costs[i] for i in at) for f, at in self.members.items()}

    def likeliest(self) -> list[str]:
        """Return the families worth describing, least difference first."""
        by_cost = sorted(self._best, key=lambda family: self._best[family])[:DESCRIBED]
        nearest = self.near[0].family
        return by_cost if nearest in by_cost else [*by_cost, nearest]

    def _cost(self, difference: Difference) -> float:
        words = sum(
            _WEIGHTS[word_class(word)] * (0.5 + _sigmoid(self._known_odds(word)))
            for word in difference.words
        )
        return words + 0.3 * difference.moved + 0.1 * difference.alike

    def _known_odds(self, word: str) -> float:
        known = self._odds.get(word)
        if known is None:
            known = self._odds[word] = odds(self.asking.evidence, word)
        return known

    def describe(self, family: str) -> Featured:
        at = self.members[family]
        best = min(at, key=lambda i: (self.costs[i], -self.near[i].score))
        values = {
            **self._standing(family, at),
            **self._words(self.differences[best]),
            **self._family(family, self.differences[best]),
            **self._slots(self.near[best]),
            **_tenant(self.asking),
        }
        return Featured(
            near=self.near[best],
            difference=self.differences[best],
            values=tuple(float(values[name]) for name in NAMES),
            nearest=self.near[at[0]].score,
        )

    def _standing(self, family: str, at: Sequence[int]) -> Mapping[str, float]:
        """How the family stands among the neighbors."""
        score = self.near[at[0]].score
        rival = max((n.score for n in self.near if n.family != family), default=0.5)
        votes, all_votes = _total(self._votes, at), sum(self._votes)
        words, near = _total(self._by_words, at), _total(self._by_cosine, at)
        clean = sum(self._clean[i] for i in at)
        first = self.near[:5]
        rival_cost = min((c for f, c in self._best.items() if f != family), default=6.0)
        return {
            "cosine": 5 * (score - 0.9),
            "cosine_high": float(score > 0.99),
            "margin": 5 * _within(score - rival, 0.3),
            "agreeing": sum(n.family == family for n in first) / len(first),
            "vote": math.log((votes + 0.05) / (all_votes - votes + 0.05)),
            "support": math.log(0.1 + words),
            "rival_support": math.log(0.1 + sum(self._by_words) - words),
            "near_support": math.log(0.1 + near),
            "rival_near_support": math.log(0.1 + sum(self._by_cosine) - near),
            "clean_members": min(3, clean),
            "clean_rivals": min(3, sum(self._clean) - clean),
            "rival_cost": _within(rival_cost - self._best[family], 3),
        }

    def _words(self, difference: Difference) -> Mapping[str, float]:
        """What the words of one side only say."""
        evidence = self.asking.evidence
        extra = Counter(map(word_class, difference.extra))
        missing = Counter(map(word_class, difference.missing))
        said = [self._known_odds(word) for word in difference.words]
        exchanged = 0.0
        if len(difference.extra) == len(difference.missing) == 1:
            same, other = evidence.pairs.of(swap(*difference.extra, *difference.missing))
            exchanged = math.log((other + 0.5) / (same + 0.5))
        return {
            "extra_open": min(4, extra["open"] + extra["digit"]),
            "missing_open": min(4, missing["open"] + missing["digit"]),
            "extra_meaning": min(3, extra["meaning"]),
            "missing_meaning": min(3, missing["meaning"]),
            "unproven_meaning": min(3.0, _unproven(evidence, difference.words)),
            "extra_light": min(3, extra["light"]),
            "missing_light": min(3, missing["light"]),
            "extra_role": min(3, extra["role"]),
            "missing_role": min(3, missing["role"]),
            "alike": min(2, difference.alike),
            "worst_word": max(said, default=-2.0) / 2,
            "all_words": _within(sum(said), 8) / 4,
            "exchanged": exchanged / 2,
            "moved": min(3, difference.moved) / 1.5,
            "clean": not said and not difference.moved,
            "length": math.log1p(len(self.asking.words)),
        }

    def _family(self, family: str, difference: Difference) -> Mapping[str, float]:
        """What the family's other entries say of the prompt's words."""
        families, evidence = self.asking.families, self.asking.evidence
        size, known = families.size(family), families.words(family)
        mine = set(self.asking.words)
        same, other = evidence.families.of(family)
        novel = sum(
            _WEIGHTS[word_class(word)] * (1 + self._rarity(word)) / 3
            for word in mine
            if word not in known and word_class(word) != "slot"
        )
        required = sum(
            _WEIGHTS[word_class(word)]
            for word, count in known.items()
            if count == size and word not in mine and word_class(word) != "slot"
        )
        unheard = sum(
            word_class(word) == "open" and not families.using(word) and self._known_odds(word) > 0
            for word in difference.extra
        )
        return {
            "size": math.log1p(size),
            "single": size <= 1,
            "doubt": math.log((other + 0.5) / (same + 0.5)),
            "novel": min(4.0, novel),
            "required": min(4.0, required * min(1.0, 0.4 + 0.2 * size)),
            "unheard": min(2, unheard),
        }

    def _rarity(self, word: str) -> float:
        families = self.asking.families
        return math.log(max(1, len(families)) / (1 + families.using(word)))

    def _slots(self, near: Near) -> Mapping[str, float]:
        mine, its = self.asking.slots, near.slots
        differing = Counter((s.kind, s.before) for s in mine)
        differing -= Counter((s.kind, s.before) for s in its)
        return {
            "contexts": min(3, differing.total()) / 1.5,
            "slots": len(its) / 2,
            "same_order": [s.kind for s in mine] == [s.kind for s in its],
        }


def _tenant(asking: Asking) -> Mapping[str, float]:
    evidence = asking.evidence
    return {
        "base_rate": math.log((evidence.same + 1) / (evidence.labels - evidence.same + 1)),
        "noise": _noise(evidence),
        "labels": math.log1p(evidence.labels) / 3,
        "given": asking.given,
    }


def _noise(evidence: Evidence) -> float:
    """Return the log odds that a neighbor without a differing word has another plan.

    Planners contradict themselves, some more than others; this is how much a tenant's did.
    """
    same = sum(evidence.families.same.values())
    other = sum(evidence.families.other.values())
    return math.log((other + 0.5) / (same + 10))


def _unproven(evidence: Evidence, words: Sequence[str]) -> float:
    """Return how much meaning is in doubt: an upper bound of each word's share of other plans."""
    meaning = (evidence.words.of(w) for w in words if word_class(w) == "meaning")
    return sum(starmap(upper_share, meaning))


def _total(values: Sequence[float], at: Sequence[int]) -> float:
    return sum(values[i] for i in at)


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))
