"""Beliefs: what a tenant's evidence makes of single words, each worked out when first asked for."""

import math

from semcache.matching.evidence import Evidence, kind
from semcache.matching.words.classes import word_class

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
