"""Risk: how probable it is that serving is wrong, and where to stop serving.

The score of a candidate is a logistic model's: log odds that its plan is the prompt's. A prior for
the weights ships as data (`prior.json`, made by `benchmarks/train_prior.py`); a tenant's labels
move them by online Laplace steps with a diagonal covariance (Spiegelhalter & Lauritzen 1990,
"Sequential updating of conditional probabilities on directed graphical structures"), each to the
mode of what prior and label say together.

Where to stop is decided by testing, not by believing the probabilities: the prior carries what
replays of streams that it was not trained on came to at each score: hits found by meaning, where
the stream does not contradict itself (two plans for the same words; no matcher can know which).
The streams stand for a tenant's prompts; how different those may be is not in the confidence.
Cutoffs are tested from the highest down, each for "the wrong share is over the bound" by its exact
binomial tail, until one is not rejected ("Learn then Test", Angelopoulos et al. 2021, fixed
sequence testing).
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

import numpy as np

from semcache.canonical import digest
from semcache.matching.evidence import Evidence, Shift, Tally, Weights
from semcache.matching.model.features import NAMES

CONFIDENCE = 0.95
"""Confidence that the wrong share is under `max_wrong`, on prompts like those replayed."""
USUAL_WRONG = 0.0125
"""Share of wrong hits that is tested for where the caller bounds none. Prompts that contradict one
another are no part of that test: with them under 2 % of all hits of six public streams are wrong,
whatever the order of their rows."""
LEANING = 0.6
"""Variance of the weight of one word, pair or group before anything was labeled."""
_CLIPPED = 5.0
"""Standard deviations at which a feature is cut off, so that a strange prompt stays on the map."""


class Step(NamedTuple):
    """What replays came to if everything at `score` or over was served."""

    score: float
    hits: int
    """Hits found by meaning."""
    wrong: int


@dataclass(frozen=True, slots=True)
class Prior:
    """The model before a tenant said anything."""

    center: Weights
    spread: Weights
    """Mean and standard deviation of each feature."""
    weights: Weights
    """One a feature, and the intercept last."""
    precision: Weights
    """How firmly each weight is believed: 1 / variance between streams."""
    steps: tuple[Step, ...]
    """What replays came to, prompts alone and with values given; highest score first."""

    def to_json(self) -> dict[str, Any]:
        """Return the prior as JSON."""
        return {
            "names": list(NAMES),
            "center": _listed(self.center),
            "spread": _listed(self.spread),
            "weights": _listed(self.weights),
            "precision": _listed(self.precision),
            "steps": [[*step] for step in self.steps],
        }

    def fingerprint(self) -> str:
        """Return a hash of the prior: scores of another mean something else."""
        return digest(self.to_json())[:16]

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> "Prior":
        """Return what `to_json` wrote.

        Raises:
            ValueError: it was made for other features.
        """
        if tuple(doc["names"]) != NAMES:
            raise ValueError("the prior was made for other features; train it again")
        return cls(
            center=np.array(doc["center"]),
            spread=np.array(doc["spread"]),
            weights=np.array(doc["weights"]),
            precision=np.array(doc["precision"]),
            steps=tuple(Step(*step) for step in doc["steps"]),
        )

    def standard(self, values: Sequence[float]) -> Weights:
        """Return features as the model takes them: standardized, cut off, and a 1 at the end."""
        row: Weights = self.standards([values])[0]
        return row

    def standards(self, rows: Sequence[Sequence[float]]) -> Weights:
        """Return the same of several candidates, one a row."""
        count = len(self.center)
        out = np.empty((len(rows), count + 1))
        out[:, count] = 1.0
        scaled = out[:, :count]
        scaled[:] = rows
        scaled -= self.center
        scaled /= self.spread
        np.minimum(scaled, _CLIPPED, out=scaled)
        np.maximum(scaled, -_CLIPPED, out=scaled)
        return out


def _listed(values: Weights) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


@cache
def shipped() -> Prior:
    """Return the prior that comes with the package."""
    text = files("semcache.matching.model").joinpath("prior.json").read_text(encoding="utf-8")
    return Prior.from_json(cast("dict[str, Any]", json.loads(text)))


class RiskModel:
    """The prior as a tenant's evidence moved it. Immutable.

    Beside the weights of the features, single words, pairs and groups have weights of their own,
    0 before anything was labeled: so a label blames those of the differing words that earlier
    labels do not speak for.
    """

    def __init__(self, prior: Prior, evidence: Evidence) -> None:
        self._prior = prior
        self._leanings = evidence.leanings
        self._weights, self._precision = prior.weights, prior.precision
        if evidence.precision is not None and evidence.pull is not None:
            pull = prior.precision * prior.weights + evidence.pull
            self._precision = prior.precision + evidence.precision
            self._weights = pull / self._precision

    def score(self, values: Sequence[float], keys: Sequence[str] = ()) -> float:
        """Return the log odds that a candidate with these features has the prompt's plan.

        `keys`: what of words, pairs and groups its difference consists of (`leanings`).
        """
        return self.scores([values], [keys])[0]

    def scores(self, rows: Sequence[Sequence[float]], keys: Sequence[Sequence[str]]) -> list[float]:
        """Return the same of several candidates."""
        # Row by row: a product of matrices may round a row by where it stands.
        return [
            float(row @ self._weights) + self._leaning(own)
            for row, own in zip(self._prior.standards(rows), keys, strict=True)
        ]

    def _leaning(self, keys: Sequence[str]) -> float:
        return sum([self._leanings.weight(key, LEANING) for key in keys])

    def step(
        self,
        values: Sequence[float],
        keys: Sequence[str] = (),
        *,
        same: bool,
        weight: float = 1.0,
    ) -> Shift:
        """Return what a label adds to the evidence's precisions and pulls.

        The weights move to what is likeliest given this label and all before it, as one: each on
        its own would explain the whole surprise, and together they would explain it forty times.
        """
        x = self._prior.standard(values)
        spread = x / self._precision
        firm = {key: 1 / LEANING + self._leanings.precision(key) for key in keys}
        z = float(x @ self._weights) + self._leaning(keys)
        variance = float(x @ spread) + sum(1 / each for each in firm.values())
        surprise = _surprise(z, variance * weight, same=same)
        p = float(same) - surprise
        curvature = max(p * (1 - p), 1e-3) * weight
        precision = curvature * x * x
        moved = self._weights + weight * surprise * spread
        pull = (self._precision + precision) * moved - self._precision * self._weights
        drawn = {}
        for key, each in firm.items():
            known = self._leanings.weight(key, LEANING)
            after = known + weight * surprise / each
            drawn[key] = curvature, (each + curvature) * after - each * known
        return Shift(precision, pull, drawn)


def _surprise(z: float, variance: float, *, same: bool) -> float:
    """Return label minus probability once the log odds `z` moved by `variance` times just that."""
    low, high = (0.0, 1.0) if same else (-1.0, 0.0)
    for _ in range(30):  # halving: the difference below falls as the surprise rises
        middle = (low + high) / 2
        odds = max(-30.0, min(30.0, z + variance * middle))
        if float(same) - 1 / (1 + math.exp(-odds)) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def cutoff(steps: Sequence[Step], max_wrong: float, record: Tally) -> float:
    """Return the lowest score that may be served; infinite if none may.

    `steps`: what replays came to, highest score first. `record` holds the tenant's own judged hits
    by `score_key`. It can only raise the cutoff.
    """
    return raised(lowest_cutoff(steps, max_wrong), max_wrong, record)


def lowest_cutoff(steps: Sequence[Step], max_wrong: float) -> float:
    """Return the lowest score that `steps` let be served; infinite if none may."""
    lowest = math.inf
    for step in steps:
        # The first steps have too few hits to tell; testing begins where it could succeed.
        if _chance_of_none(step.hits, max_wrong) > 1 - CONFIDENCE:
            continue
        if _tail(step.wrong, step.hits, max_wrong) > 1 - CONFIDENCE:
            break
        lowest = step.score
    return lowest


def _chance_of_none(hits: int, share: float) -> float:
    return (1 - share) ** hits


def _tail(wrong: int, hits: int, share: float) -> float:
    """Return the probability of at most `wrong` of `hits` if each is wrong with `share`."""
    log_p, log_q = math.log(share), math.log1p(-share)
    # Ten deviations from the mean all terms are 0 to the last bit: evidence may be of millions.
    mean, far = hits * share, 10 * math.sqrt(hits * share) + 50
    counts = range(max(0, int(min(wrong, mean) - far)), min(wrong, int(mean + far)) + 1)
    terms = (
        math.exp(
            math.lgamma(hits + 1)
            - math.lgamma(k + 1)
            - math.lgamma(hits - k + 1)
            + k * log_p
            + (hits - k) * log_q
        )
        for k in counts
    )
    return min(1.0, math.fsum(terms))


def score_key(score: float) -> str:
    """Return the key of a judged hit's score in a tenant's record."""
    return f"{math.floor(max(-20.0, min(20.0, score)) * 4) / 4:g}"


def raised(lowest: float, max_wrong: float, record: Tally) -> float:
    """Return the lowest score that may be served where the judged hits of `record` are known.

    Scores are refused while the hits at or over them were wrong significantly more often than
    `max_wrong`, and more than once: who judges a single hit does it because it was wrong.
    """
    scores = sorted({float(k) for k in (*record.same, *record.other)})
    for score in scores:
        over = [s for s in scores if s >= max(score, lowest)]
        wrong = round(sum(record.other.get(f"{s:g}", 0.0) for s in over))
        hits = wrong + round(sum(record.same.get(f"{s:g}", 0.0) for s in over))
        if wrong > 1 and 1 - _tail(wrong - 1, hits, max_wrong) <= 1 - CONFIDENCE:
            lowest = max(lowest, score + 0.25)
    return lowest


def probability_wrong(score: float) -> float:
    """Return the model's own probability that serving at `score` is wrong."""
    return 1 / (1 + math.exp(max(-30.0, min(30.0, score))))
