"""Evidence: what a tenant's own planned prompts said about words, groups and weights.

Each planned miss labels its neighbors for free: their plan is the planned one, or it is not. What
that says is kept as sums, so that evidence of two processes is merged by adding.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from semcache.canonical import Json, JsonObject
from semcache.matching.samples import Samples
from semcache.matching.words.classes import word_class
from semcache.matching.words.difference import Difference
from semcache.process.imports import ensure_imported
from semcache.process.memo import memoized
from semcache.prompts.unseen.supposition import Supposed
from semcache.prompts.words import (
    AGGREGATION,
    COMPARISON,
    CONJUNCTIONS,
    NEGATION,
    ORDER,
    QUANTIFIERS,
    SCOPE,
)

FORMAT = 2
"""Version of the JSON of evidence; another version is not read."""
MAX_WORDS = 4000
"""Words, and pairs of words, that are kept; the rarest make room."""
MAX_FAMILIES = 2000
"""Groups whose doubts are kept."""
MAX_LEANINGS = 8000
"""Words, pairs and groups whose own weights are kept; those least labeled make room."""

DOUBTFUL = "doubtful"
"""Choices of plans that are still too likely wrong by the risk after two of them."""

MOVED = "<moved>"
"""Stands among the words for another order of the same words."""
TURNED = "<turned>"
"""The same where other words are joined by it."""

_MISREAD = 0.3
"""Share of suppositions that are taken to be wrong before any was labeled."""
_STANDS_FOR = 3.0
"""Labels that the wider class of a supposition weighs against its own."""

_SURE = (math.log(9), math.log(99))
"""Log odds from which suppositions are counted apart: nine in ten, and 99 in a hundred."""

_SCOPE = (SCOPE | QUANTIFIERS) - NEGATION - COMPARISON - AGGREGATION - ORDER - CONJUNCTIONS

Weights = NDArray[np.float64]


@dataclass(slots=True)
class Tally:
    """How often a difference went with the same plan, and how often with another."""

    same: dict[str, float] = field(default_factory=dict)
    other: dict[str, float] = field(default_factory=dict)

    def add(self, key: str, *, same: bool, weight: float = 1.0) -> None:
        """Count `key` once, with `weight`."""
        side = self.same if same else self.other
        side[key] = side.get(key, 0.0) + weight

    def of(self, key: str) -> tuple[float, float]:
        """Return the counts of `key`: with the same plan, with another."""
        return self.same.get(key, 0.0), self.other.get(key, 0.0)

    def merge(self, more: "Tally") -> None:
        """Add the counts of `more`."""
        for mine, its in ((self.same, more.same), (self.other, more.other)):
            for key, count in its.items():
                mine[key] = mine.get(key, 0.0) + count

    def trim(self, keep: int) -> None:
        """Keep the most frequent `keep` keys."""
        if len(self.same) + len(self.other) <= keep:
            return
        total = Counter(self.same)
        total.update(self.other)
        if len(total) > keep:
            kept = {key for key, _ in total.most_common(keep * 3 // 4)}
            self.same = {k: n for k, n in self.same.items() if k in kept}
            self.other = {k: n for k, n in self.other.items() if k in kept}

    def to_json(self) -> JsonObject:
        """Return the counts as JSON."""
        return {"same": _rounded(self.same), "other": _rounded(self.other)}


def _rounded(counts: Mapping[str, float]) -> JsonObject:
    return {key: round(count, 3) for key, count in counts.items()}


class Shift(NamedTuple):
    """What labels add to what is known of weights: precision, and precision times weight."""

    precision: Weights
    pull: Weights
    """One a weight of the risk model."""
    leanings: Mapping[str, tuple[float, float]]
    """The same of single words, pairs and groups, by their keys."""


@dataclass(slots=True)
class Leanings:
    """What labels said of the weights of single words, pairs and groups; sums only."""

    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Key → precision that labels added, and precision times weight."""

    def weight(self, key: str, variance: float) -> float:
        """Return the weight of `key`, in log odds; `variance`: how far it may be from 0."""
        precision, pull = self.sums.get(key, _NOTHING)
        return pull / (1 / variance + precision)

    def precision(self, key: str) -> float:
        """Return how firmly labels speak of `key`."""
        return self.sums.get(key, _NOTHING)[0]

    def merge(self, more: Mapping[str, tuple[float, float]]) -> None:
        """Add the sums of `more`."""
        for key, (precision, pull) in more.items():
            mine, drawn = self.sums.get(key, _NOTHING)
            self.sums[key] = mine + precision, drawn + pull

    def trim(self, keep: int) -> None:
        """Keep the `keep` keys that labels said most of."""
        if len(self.sums) > keep:
            firmest = sorted(self.sums, key=lambda key: -self.sums[key][0])[: keep * 3 // 4]
            self.sums = {key: self.sums[key] for key in firmest}


_NOTHING = (0.0, 0.0)


@dataclass(slots=True)
class Evidence:
    """What one tenant's labels said; sums only. Not thread-safe by itself."""

    words: Tally = field(default_factory=Tally)
    """Words of one side only; a difference of n words blames each of them 1/n."""
    kinds: Tally = field(default_factory=Tally)
    """The same by the class of the word: what a tenant's prepositions have come to, say."""
    pairs: Tally = field(default_factory=Tally)
    """Pairs of words that were exchanged for one another, and nothing else."""
    families: Tally = field(default_factory=Tally)
    """Groups offered where no word differed."""
    supposed: Tally = field(default_factory=Tally)
    """Values that were supposed, by `supposition_keys`: `same` were right, `other` wrong."""
    doubted: Tally = field(default_factory=Tally)
    """What had to be proven where the risk was low, by its kind: `same` was harmless."""
    values: Tally = field(default_factory=Tally)
    """Plans for words that an entry says with other values, by what they change (`value_risk`)."""
    chosen: Tally = field(default_factory=Tally)
    """Plans that a model chose twice and that were too doubtful all the same (`DOUBTFUL`): `same`
    were the prompt's."""
    record: Tally = field(default_factory=Tally)
    """Hits that somebody judged, by score: `same` were right, `other` wrong."""
    samples: Samples = field(default_factory=Samples)
    """Prompts as they came, whose best candidate was right or wrong."""
    labels: int = 0
    """Prompts that were labeled."""
    same: int = 0
    """Prompts whose nearest neighbor had the same plan."""
    precision: Weights | None = None
    """What the labels add to the precision of each weight of the risk model."""
    pull: Weights | None = None
    """What they add to precision times weight."""
    leanings: Leanings = field(default_factory=Leanings)
    """The same of single words, pairs and groups."""

    @property
    def is_news(self) -> bool:
        """Whether any label said anything of prompts, of values or of choices."""
        told = (self.values, self.chosen)
        return bool(self.labels or self.samples.kept or any(t.same or t.other for t in told))

    def learn(self, difference: Difference, group: str, *, same: bool) -> None:
        """Take in that a neighbor with this difference had the same plan, or another."""
        words = {*difference.words, *difference.formed}
        if difference.moved:
            words.add(order(difference))
        for word in words:
            weight = 1.0 if same else 1.0 / len(words)
            self.words.add(word, same=same, weight=weight)
            self.kinds.add(kind(word), same=same, weight=weight)
        if not words:
            self.families.add(group, same=same)
        if len(difference.extra) == len(difference.missing) == 1:
            self.pairs.add(swap(*difference.extra, *difference.missing), same=same)

    def read_right(
        self, supposed: Sequence[Supposed], spans: Collection[tuple[int, int, str]]
    ) -> bool:
        """Take in which of the values supposed are at `spans` (start, end, type); whether all."""
        right = [
            (one.mention.start, one.mention.end, one.mention.kind) in spans for one in supposed
        ]
        for one, is_right in zip(supposed, right, strict=True):
            for key in supposition_keys(one):
                self.supposed.add(key, same=is_right)
        return all(right)

    def share_misread(self, supposed: Supposed) -> float:
        """Return how often suppositions like this one were wrong, in (0, 1).

        Of all of them, of those of its type, and of those behind its word; each stands in for the
        next until that has counts of its own.
        """
        share = _MISREAD
        for key in supposition_keys(supposed):
            right, wrong = self.supposed.of(key)
            share = (wrong + _STANDS_FOR * share) / (right + wrong + _STANDS_FOR)
        return share

    def count(self, *, same: bool) -> None:
        """Take in whether the nearest neighbor of a prompt had the same plan."""
        self.labels += 1
        self.same += same

    def shift(self, by: Shift) -> None:
        """Add to what is known of the weights."""
        self.precision = by.precision if self.precision is None else self.precision + by.precision
        self.pull = by.pull if self.pull is None else self.pull + by.pull
        self.leanings.merge(by.leanings)

    def merge(self, more: "Evidence") -> None:
        """Add what `more` says."""
        for mine, its in (
            (self.words, more.words),
            (self.kinds, more.kinds),
            (self.pairs, more.pairs),
            (self.families, more.families),
            (self.supposed, more.supposed),
            (self.doubted, more.doubted),
            (self.values, more.values),
            (self.chosen, more.chosen),
            (self.record, more.record),
        ):
            mine.merge(its)
        self.samples.merge(more.samples)
        self.labels += more.labels
        self.same += more.same
        if more.precision is not None and more.pull is not None:
            self.shift(Shift(more.precision, more.pull, more.leanings.sums))

    def trim(self) -> None:
        """Forget what is rare, so that the size stays bounded."""
        self.words.trim(MAX_WORDS)
        self.kinds.trim(MAX_WORDS)
        self.values.trim(MAX_WORDS)
        self.pairs.trim(MAX_WORDS)
        self.families.trim(MAX_FAMILIES)
        self.leanings.trim(MAX_LEANINGS)
        self.supposed.trim(MAX_WORDS)
        self.doubted.trim(MAX_WORDS)
        self.samples.trim()

    def to_json(self) -> JsonObject:
        """Return the evidence as JSON."""
        return {
            "format": FORMAT,
            "words": self.words.to_json(),
            "kinds": self.kinds.to_json(),
            "pairs": self.pairs.to_json(),
            "families": self.families.to_json(),
            "supposed": self.supposed.to_json(),
            "doubted": self.doubted.to_json(),
            "values": self.values.to_json(),
            "chosen": self.chosen.to_json(),
            "record": self.record.to_json(),
            "samples": self.samples.to_json(),
            "labels": self.labels,
            "same": self.same,
            "precision": _listed(self.precision),
            "pull": _listed(self.pull),
            "leanings": {
                key: [float(f"{part:.4g}") for part in sums]
                for key, sums in self.leanings.sums.items()
            },
        }

    @classmethod
    def from_json(cls, body: Json, *, weights: int) -> "Evidence":
        """Return what `to_json` wrote.

        Raises:
            InvalidJson: it is of another version or malformed, or has other than `weights` weights.
        """
        # Beside its user: pydantic takes longer to load than all of semcache.
        ensure_imported("semcache.matching.evidence_schema")
        from semcache.matching.evidence_schema import read_evidence  # noqa: PLC0415

        return read_evidence(body, weights=weights)


def order(difference: Difference) -> str:
    """Return what stands among the words for the order of a difference in which words moved."""
    return TURNED if difference.turned else MOVED


@memoized(20_000)
def kind(word: str) -> str:
    """Return the class of a word under which evidence of all its words is kept.

    Of the words that steer a plan, those of scope ("any", "all", "also") are a class of their own.
    """
    if word in {MOVED, TURNED}:
        return word
    return "scope" if word in _SCOPE else word_class(word)


def supposition_keys(supposed: Supposed) -> tuple[str, ...]:
    """Return the keys under which a supposition is counted, from the widest to its own."""
    sure = sum(supposed.odds >= odds for odds in _SURE)
    kind = supposed.mention.kind
    return f"{sure}", f"{sure} {kind}", f"{sure} {kind} {supposed.before}"


def swap(left: str, right: str) -> str:
    """Return the key of two words that stand for one another."""
    return " ".join(sorted((left, right)))


def leanings(difference: Difference, group: str) -> tuple[str, ...]:
    """Return the keys of what a difference from `family` consists of, each once."""
    keys = ["+" + word for word in difference.extra]
    keys += ["-" + word for word in difference.missing]
    if difference.moved:
        keys.append(order(difference))
    if len(difference.extra) == len(difference.missing) == 1:
        keys.append(swap(*difference.extra, *difference.missing))
    # A group that is wrong though nothing differs is another thing than one that is only near.
    keys.append(("~" if keys else "=") + group)
    return tuple(dict.fromkeys(keys))


def _listed(weights: Weights | None) -> Json:
    return None if weights is None else [float(f"{weight:.6g}") for weight in weights]
