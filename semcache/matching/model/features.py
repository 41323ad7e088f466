"""Features: what of a prompt and its neighbors tells whether a neighbor's plan serves the prompt.

Neighbors are grouped by plan group (entries with the same plan but for values); each group is
described by the member whose words differ least, and by how the other groups compare. What a
tenant's evidence makes of single words (beliefs) is worked out when it is first asked for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from semcache.matching.evidence import Evidence, kind, leanings, swap
from semcache.matching.plan_groups import PlanGroups
from semcache.matching.words.classes import word_class
from semcache.matching.words.content import other_numbers
from semcache.matching.words.difference import Difference, compare
from semcache.prompts.template import Slot
from semcache.prompts.unseen.supposition import Supposed

WEIGHTS = {"open": 1.0, "meaning": 1.2, "digit": 1.5, "slot": 1.5, "role": 0.4, "light": 0.3}
"""What a word that differs costs, by its class."""
_FIRST_SAME = {"light": 1.5, "role": 1.0, "meaning": 0.5, "open": 0.5, "digit": 0.3, "slot": 0.3}
_KIND = 4.0
"""Times as much as for one word what is known beforehand counts for a class of words."""
_FIRST_OTHER = {"light": 0.5, "role": 0.8}
"""What stands for the counts of a word, by its class, before anything was labeled."""


class Beliefs:
    """What evidence says of words, for as long as the evidence stays what it is.

    Safe to use from several threads: what two of them work out at once is the same.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._odds: dict[str, float] = {}
        self._costs: dict[str, float] = {}
        self._uppers: dict[str, float] = {}
        self._noise: float | None = None

    def odds(self, word: str) -> float:
        """Return the log odds that a difference in `word` goes with another plan."""
        known = self._odds.get(word)
        if known is None:
            same, other = self.evidence.words.of(word)
            first_same, first_other = self._first(word)
            known = math.log((other + first_other) / (same + first_same))
            self._odds[word] = known
        return known

    def _first(self, word: str) -> tuple[float, float]:
        """Return what stands for the counts of a word not labeled: those of its class."""
        of_class = word_class(word)
        first_same, first_other = _FIRST_SAME[of_class], _FIRST_OTHER.get(of_class, 1.0)
        same, other = self.evidence.kinds.of(kind(word))
        known = first_same + first_other
        share = (first_other * _KIND + other) / (known * _KIND + same + other)
        return known * (1 - share), known * share

    def cost(self, word: str) -> float:
        """Return what a difference in `word` costs: more for words that steer a plan."""
        known = self._costs.get(word)
        if known is None:
            probability = 1.0 / (1.0 + math.exp(-self.odds(word)))
            known = self._costs[word] = WEIGHTS[word_class(word)] * (0.5 + probability)
        return known

    def upper(self, word: str) -> float:
        """Return a cautious share of other plans where `word` differs."""
        known = self._uppers.get(word)
        if known is None:
            known = self._uppers[word] = upper_share(*self.evidence.words.of(word))
        return known

    @property
    def base_rate(self) -> float:
        """Log odds that the nearest neighbor of a prompt had the same plan."""
        evidence = self.evidence
        return math.log((evidence.same + 1) / (evidence.labels - evidence.same + 1))

    @property
    def noise(self) -> float:
        """Log odds that a neighbor without a differing word has another plan.

        Planners contradict themselves, some more than others; this is how much a tenant's did.
        """
        if self._noise is None:
            same = sum(self.evidence.families.same.values())
            other = sum(self.evidence.families.other.values())
            self._noise = math.log((other + 0.5) / (same + 10))
        return self._noise


def upper_share(same: float, other: float) -> float:
    """Return a cautious share of other plans: mean and 0.7 deviations of a Beta posterior."""
    a, b = other + 1.0, same + 0.5
    return a / (a + b) + 0.7 * math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))


@dataclass(frozen=True, slots=True)
class MatchContext:
    """What is known of the prompt and its tenant."""

    words: tuple[str, ...]
    """Content words of the prompt's template text."""
    slots: tuple[Slot, ...]
    given: bool
    """Whether the caller gave the values."""
    evidence: Evidence
    groups: PlanGroups
    text: str = ""
    """Its template text."""
    supposed: tuple[Supposed, ...] = ()
    """Values of the prompt that were supposed."""
    known: Beliefs | None = field(default=None, repr=False, compare=False)
    """What was made of the evidence before; None if nothing was."""

    @property
    def beliefs(self) -> Beliefs:
        """What the evidence says of words."""
        return self.known or Beliefs(self.evidence)


class NearEntry(NamedTuple):  # made for every neighbor: a third of the time of a frozen dataclass
    """A neighbor of a prompt with slots of the same kinds."""

    entry: str
    """Id of the entry."""
    score: float
    """Cosine of the template texts, in [-1, 1]."""
    words: tuple[str, ...]
    """Content words of its template text."""
    slots: tuple[Slot, ...]
    group: str
    """Names what its plan is but for values."""
    text: str = ""
    """Its template text."""


@dataclass(frozen=True, slots=True)
class GroupFeatures:
    """A group of neighbors as the risk model sees it."""

    near: NearEntry
    """Its member that differs least."""
    difference: Difference
    """How the prompt differs from that member."""
    values: tuple[float, ...]
    """One number for each of `NAMES`."""
    nearest: float
    """Cosine of its nearest member, in [-1, 1]."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What its difference consists of, as the evidence keeps it."""
        return leanings(self.difference, self.near.group)


NAMES = (
    "cosine", "cosine_high", "margin", "agreeing", "vote", "support", "rival_support",
    "near_support", "rival_near_support", "clean_members", "clean_rivals", "rival_cost",
    "size", "single", "doubt", "extra_open", "missing_open", "extra_meaning", "missing_meaning",
    "unproven_meaning", "extra_light", "missing_light", "extra_role", "missing_role", "alike",
    "worst_word", "all_words", "exchanged", "moved", "clean", "contexts", "unheard", "novel",
    "required", "length", "slots", "same_order", "base_rate", "noise", "labels", "given",
    "supposed", "supposed_doubt", "supposed_record",
)  # fmt: skip
"""Names of the features, in order."""
_IN_ORDER = itemgetter(*NAMES)

NEIGHBORS = 16
"""Neighbors of equal slot kinds that are compared."""
DESCRIBED = 4
"""Groups that are described: those that differ least, and the nearest."""


def featured(
    context: MatchContext, near: Sequence[NearEntry], wanted: str | None = None
) -> tuple[GroupFeatures, ...]:
    """Return the groups among `near` (nearest first) that are likeliest, with their features.

    `wanted`: a group that is described in any case, if it is there.
    """
    near = near[:NEIGHBORS]
    differences = [
        compare(context.words, n.words).numbered(other_numbers(context.text, n.text)) for n in near
    ]
    field = _Field(context, near, differences)
    return tuple([field.describe(group) for group in field.likeliest(wanted)])


class _Field:
    """All neighbors of one prompt, so that each group is seen against the others."""

    def __init__(
        self,
        context: MatchContext,
        near: Sequence[NearEntry],
        differences: Sequence[Difference],
    ) -> None:
        self.context, self.near, self.differences = context, near, differences
        self.beliefs = context.beliefs
        self.costs = costs = [self._cost(difference) for difference in differences]
        self.members: dict[str, list[int]] = {}
        for i, one in enumerate(near):
            self.members.setdefault(one.group, []).append(i)
        # How near in words, in cosine, and in cosine against the nearest of all.
        self._by_words = [math.exp(-1.2 * cost) for cost in costs]
        self._by_cosine = [math.exp(20 * (one.score - 1)) for one in near]
        self._votes = [math.exp(25 * (one.score - near[0].score)) for one in near]
        self._clean = [not d.extra and not d.missing for d in differences]
        self._best = {f: min([costs[i] for i in at]) for f, at in self.members.items()}
        self._highest = {f: max([near[i].score for i in at]) for f, at in self.members.items()}
        self._all_votes, self._all_clean = sum(self._votes), sum(self._clean)
        self._all_words, self._all_near = sum(self._by_words), sum(self._by_cosine)
        self._common = {**_tenant(context, self.beliefs), **_supposed(context)}
        self._said = frozenset(context.words)
        self._kinds = [slot.kind for slot in context.slots]
        self._contexts = [(slot.kind, slot.before) for slot in context.slots]
        self._telling = self._telling_words()

    def likeliest(self, wanted: str | None) -> list[str]:
        """Return the groups worth describing, least difference first, and the wanted one."""
        by_cost = sorted(self._best, key=lambda group: self._best[group])[:DESCRIBED]
        more = dict.fromkeys((self.near[0].group, wanted))
        return [*by_cost, *(g for g in more if g in self.members and g not in by_cost)]

    def _cost(self, difference: Difference) -> float:
        words = sum(map(self.beliefs.cost, difference.words))
        return words + 0.3 * difference.moved + 0.1 * difference.alike

    def _telling_words(self) -> list[tuple[str, float]]:
        """Return the prompt's words, slots apart, with what each weighs if a group has it not."""
        using, groups = self.context.groups.using, max(1, len(self.context.groups))
        words = [(word, word_class(word)) for word in dict.fromkeys(self.context.words)]
        return [
            (word, WEIGHTS[of_class] * (1 + math.log(groups / (1 + using(word)))) / 3)
            for word, of_class in words
            if of_class != "slot"
        ]

    def describe(self, group: str) -> GroupFeatures:
        at = self.members[group]
        best = min(at, key=lambda i: (self.costs[i], -self.near[i].score))
        values = {
            **self._standing(group, at),
            **self._words(self.differences[best]),
            **self._family(group, self.differences[best]),
            **self._slots(self.near[best]),
            **self._common,
        }
        return GroupFeatures(
            near=self.near[best],
            difference=self.differences[best],
            values=tuple(map(float, _IN_ORDER(values))),
            nearest=self.near[at[0]].score,
        )

    def _standing(self, group: str, at: Sequence[int]) -> Mapping[str, float]:
        """How the group stands among the neighbors."""
        score = self.near[at[0]].score
        rival = max([s for f, s in self._highest.items() if f != group], default=0.5)
        votes = _total(self._votes, at)
        words, near = _total(self._by_words, at), _total(self._by_cosine, at)
        clean = sum([self._clean[i] for i in at])
        first = self.near[:5]
        rival_cost = min([c for f, c in self._best.items() if f != group], default=6.0)
        return {
            "cosine": 5 * (score - 0.9),
            "cosine_high": float(score > 0.99),
            "margin": 5 * _within(score - rival, 0.3),
            "agreeing": sum([n.group == group for n in first]) / len(first),
            "vote": math.log((votes + 0.05) / (self._all_votes - votes + 0.05)),
            "support": math.log(0.1 + words),
            "rival_support": math.log(0.1 + self._all_words - words),
            "near_support": math.log(0.1 + near),
            "rival_near_support": math.log(0.1 + self._all_near - near),
            "clean_members": min(3, clean),
            "clean_rivals": min(3, self._all_clean - clean),
            "rival_cost": _within(rival_cost - self._best[group], 3),
        }

    def _words(self, difference: Difference) -> Mapping[str, float]:
        """What the words of one side only say."""
        extra = [word_class(word) for word in difference.extra]
        missing = [word_class(word) for word in difference.missing]
        said = [self.beliefs.odds(word) for word in difference.words]
        exchanged = 0.0
        if len(difference.extra) == len(difference.missing) == 1:
            exchange = swap(*difference.extra, *difference.missing)
            same, other = self.context.evidence.pairs.of(exchange)
            exchanged = math.log((other + 0.5) / (same + 0.5))
        return {
            "extra_open": min(4, extra.count("open") + extra.count("digit")),
            "missing_open": min(4, missing.count("open") + missing.count("digit")),
            "extra_meaning": min(3, extra.count("meaning")),
            "missing_meaning": min(3, missing.count("meaning")),
            "unproven_meaning": min(3.0, _unproven(self.beliefs, difference.words)),
            "extra_light": min(3, extra.count("light")),
            "missing_light": min(3, missing.count("light")),
            "extra_role": min(3, extra.count("role")),
            "missing_role": min(3, missing.count("role")),
            "alike": min(2, difference.alike),
            "worst_word": max(said, default=-2.0) / 2,
            "all_words": _within(sum(said), 8) / 4,
            "exchanged": exchanged / 2,
            "moved": min(3, difference.moved) / 1.5,
            "clean": not said and not difference.moved,
            "length": math.log1p(len(self.context.words)),
        }

    def _family(self, group: str, difference: Difference) -> Mapping[str, float]:
        """What the group's other entries say of the prompt's words."""
        groups, said = self.context.groups, self._said
        size, known = groups.size(group), groups.words(group)
        same, other = self.context.evidence.families.of(group)
        novel = sum([weight for word, weight in self._telling if word not in known])
        always = [word_class(word) for word in groups.always(group) if word not in said]
        required = sum([WEIGHTS[of_class] for of_class in always if of_class != "slot"])
        unheard = sum(
            [
                word_class(w) == "open" and not groups.using(w) and self.beliefs.odds(w) > 0
                for w in difference.extra
            ]
        )
        return {
            "size": math.log1p(size),
            "single": size <= 1,
            "doubt": math.log((other + 0.5) / (same + 0.5)),
            "novel": min(4.0, novel),
            "required": min(4.0, required * min(1.0, 0.4 + 0.2 * size)),
            "unheard": min(2, unheard),
        }

    def _slots(self, near: NearEntry) -> Mapping[str, float]:
        its = near.slots
        differing = self._contexts.copy()
        for slot in its:
            if (slot.kind, slot.before) in differing:
                differing.remove((slot.kind, slot.before))
        return {
            "contexts": min(3, len(differing)) / 1.5,
            "slots": len(its) / 2,
            "same_order": self._kinds == [slot.kind for slot in its],
        }


def _tenant(context: MatchContext, beliefs: Beliefs) -> Mapping[str, float]:
    return {
        "base_rate": beliefs.base_rate,
        "noise": beliefs.noise,
        "labels": math.log1p(context.evidence.labels) / 3,
        "given": context.given,
    }


def _supposed(context: MatchContext) -> Mapping[str, float]:
    """What was supposed of the prompt; all 0 where nothing was."""
    supposed = context.supposed
    misread = [context.evidence.share_misread(one) for one in supposed]
    return {
        "supposed": min(3, len(supposed)),
        "supposed_doubt": max((-one.odds for one in supposed), default=0.0) / 2,
        "supposed_record": max((math.log(p / (1 - p)) for p in misread), default=0.0) / 2,
    }


def _unproven(beliefs: Beliefs, words: Sequence[str]) -> float:
    """Return how much meaning is in doubt: an upper bound of each word's share of other plans."""
    return sum([beliefs.upper(word) for word in words if word_class(word) == "meaning"])


def _total(values: Sequence[float], at: Sequence[int]) -> float:
    return sum([values[i] for i in at])


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))
