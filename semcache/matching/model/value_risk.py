"""Value risk: how probable it is that a plan for the same words is not the prompt's.

The words of two prompts may be equal and their plans not: "is the <name> open" asks a door and a
window in two ways, a plan may hold a year that nobody said, and a tenant's planner may contradict
itself. Numbers, dates, quoted texts and codes do not decide which plan it is; names may. What tells
is how many names the plan was made or confirmed for, how many entries share the plan, whether the
template says anything beside the name, whether words of the prompt hint at each value, and how
often the tenant's entries that say the same have another plan.

The weights are a logistic model's, fitted to replays of public streams; they ship as data
(`value_prior.json`, made by `benchmarks/train_value_risk.py`), with what was served at each risk by
models that had never seen the stream. A tenant's own planned prompts move the risk as counts move a
Beta prior.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

_STANDS_FOR = 2.0
"""Labels of a tenant that the model's risk weighs. 1, 2 and 4 explain the replays about
equally well (log loss .110, .105, .101); the fewer, the sooner a tenant's own plans count."""
_REPEATED = 5
"""Sayings of more than one entry without a contradiction that a tenant is taken to have had."""


class ValueChange(NamedTuple):
    """What of its values speaks against an entry that says the same words as a prompt."""

    names: int = 0
    """Values that are names, and that the plan was neither made nor confirmed for."""
    seen: int = 1
    """Names that the plan was made or confirmed for, in the slot that has had fewest."""
    group: int = 1
    """Entries that share the plan but for values."""
    telling: bool = True
    """Whether the template says what its slots hold (`content.is_telling`)."""
    unsaid: bool = False
    """Whether the plan depends on a value of which no word of the prompt says anything."""
    contested: int = 0
    repeated: int = 0
    """Sayings that several entries of the tenant share; those of them with more than one plan are
    `contested`."""

    @property
    def kind(self) -> str:
        """What is in doubt, as a tenant's evidence keeps it; empty for nothing."""
        if self.unsaid:
            return "unsaid"
        if self.names:
            return "name"
        return "words" if self.contested else ""


NAMES = (
    "one", "contradicted", "words", "words_group", "unsaid", "unsaid_group", "name_group", "seen",
    "untelling",
)  # fmt: skip


def features(change: ValueChange) -> tuple[float, ...]:
    """Return the features of the model of what is in doubt, in the order of `NAMES`."""
    name, unsaid, words = change.names > 0, change.unsaid, change.kind == "words"
    group = math.log(max(1, change.group))
    return (
        1.0,
        change.contested / (change.repeated + _REPEATED),
        float(words),
        words * group,
        float(unsaid),
        unsaid * group,
        name * group,
        name * math.log(max(1, change.seen)),
        float(name and not change.telling),
    )


class RiskStep(NamedTuple):
    """What replays came to where something was in doubt and all up to `risk` was served."""

    risk: float
    hits: int
    wrong: int


@dataclass(frozen=True, slots=True)
class ValuePrior:
    """The model before a tenant said anything."""

    plain: float
    """Probability that the plan is wrong where nothing is in doubt."""
    weights: tuple[float, ...]
    """One a feature, in log odds that the plan is wrong."""
    served: tuple[RiskStep, ...]
    """Lowest risk first."""

    def to_json(self) -> dict[str, Any]:
        """Return the prior as JSON."""
        weights = dict(zip(NAMES, self.weights, strict=True))
        return {
            "plain": self.plain,
            "weights": weights,
            "served": [[*step] for step in self.served],
        }

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> "ValuePrior":
        """Return what `to_json` wrote; what is malformed raises as dict access does."""
        weights = tuple(float(doc["weights"][name]) for name in NAMES)
        return cls(doc["plain"], weights, tuple(RiskStep(*step) for step in doc["served"]))

    def risk(self, change: ValueChange, labels: Sequence[float] = (0.0, 0.0)) -> float:
        """Return the probability in (0, 1) that the plan is wrong.

        `labels`: how often the tenant's plan was the same where that was in doubt, and another.
        """
        if not change.kind:
            return self.plain
        odds = sum(w * x for w, x in zip(self.weights, features(change), strict=True))
        believed = 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))
        same, other = labels
        return (believed * _STANDS_FOR + other) / (_STANDS_FOR + same + other)

    def bound(self, max_wrong: float) -> float:
        """Return the highest risk up to which replays were wrong with at most `max_wrong`.

        At most three times `max_wrong`: many safe hits are no reason to serve one that is not.
        """
        within = [step.risk for step in self.served if step.wrong <= max_wrong * step.hits]
        return min(max(within, default=0.0), 3 * max_wrong)


@cache
def shipped_values() -> ValuePrior:
    """Return the prior that comes with the package."""
    text = files("semcache.matching.model").joinpath("value_prior.json").read_text(encoding="utf-8")
    return ValuePrior.from_json(cast("dict[str, Any]", json.loads(text)))
