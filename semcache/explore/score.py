"""Whether a served plan is right, what could be served, and how sure a share is."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from semcache.canonical import Json, JsonObject, loads
from semcache.errors import InvalidJson
from semcache.plans.document import enclosed
from semcache.prompts.parameter import Parameter

if TYPE_CHECKING:
    from semcache.explore.streams import Row

T = TypeVar("T")

ONE_SIDED_95 = 1.6448536269514722
"""Standard deviations that leave 5 % above."""


# Plans ---------------------------------------------------------------------------------------


def plan_text(value: Json) -> str:
    """Return text that is equal for equal plans: numbers by value, text without case."""
    match value:
        case dict():
            inner = (f"{json.dumps(k)}:{plan_text(v)}" for k, v in sorted(value.items()))
            return "{" + ",".join(inner) + "}"
        case list():
            return "[" + ",".join(map(plan_text, value)) + "]"
        case str():
            return json.dumps(value.strip().lower())
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return json.dumps(value)


def is_right(served: JsonObject, wanted: JsonObject | None) -> bool:
    """Return whether `served` is the plan `wanted`; where no plan may be served, none is right."""
    return wanted is not None and plan_text(enclosed(served)) == plan_text(enclosed(wanted))


def plan_shape(plan: Json, params: Sequence[Parameter]) -> Json:
    """Return `plan` with each leaf that is a parameter's value replaced by the parameter's name.

    Of parameters with one value, the one that is named as the leaf's key is meant, else the first.
    """
    texts = [(parameter.name, plan_text(parameter.value)) for parameter in params]
    first = {text: name for name, text in reversed(texts)}
    return _walk(plan, "", first, frozenset(texts))


def _walk(value: Json, key: str, first: dict[str, str], texts: frozenset[tuple[str, str]]) -> Json:
    if isinstance(value, dict):
        return {k: _walk(v, k, first, texts) for k, v in value.items()}
    if isinstance(value, list):
        return [_walk(item, key, first, texts) for item in value]
    text = plan_text(value)
    if text not in first:
        inside = _inside(value)
        return value if inside is None else {"text": _walk(inside, key, first, texts)}
    return {"param": key if (key, text) in texts else first[text]}


def _inside(value: Json) -> Json:
    """Return what a text spells if that is an object or a list, as arguments of tool calls are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return None
    try:
        found = loads(value)
    except InvalidJson:
        return None
    return found if isinstance(found, dict | list) else None


# Replaying -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayedRow(Generic[T]):
    """One row of a replay."""

    row: "Row"
    shape: str | None
    """`row.shape`, which costs something to compute."""
    answer: T
    """What the lookup returned."""
    servable: bool
    """Whether a plan of that shape was stored before: a perfect matcher could serve it."""


def replayed(
    rows: Iterable["Row"],
    *,
    lookup: Callable[["Row"], T],
    served: Callable[[T], JsonObject | None],
    store: Callable[["Row"], object],
) -> Iterator[ReplayedRow[T]]:
    """Look each row up in order and store its plan after a miss, as a planner would have made it.

    A row is stored when the next one is asked for, so that what is done with a step sees the cache
    as the lookup saw it.
    """
    stored: set[str] = set()
    for row in rows:
        shape = row.shape
        answer = lookup(row)
        yield ReplayedRow(row, shape, answer, shape is not None and shape in stored)
        if shape is not None and served(answer) is None:
            store(row)
            stored.add(shape)


# Shares --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with what that says of the share behind it."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share, in [0, 1]; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    @property
    def low(self) -> float:
        """What the share is above, with 95 % confidence (Wilson 1927); 0 of nothing."""
        # At most the share itself: at the ends of the range the difference is a rounding error.
        return min(self.value, 1 - wilson_upper(self.of - self.count, self.of)) if self.of else 0.0

    @property
    def high(self) -> float:
        """What the share is below, with 95 % confidence (Wilson 1927); 1 of nothing."""
        return max(self.value, wilson_upper(self.count, self.of)) if self.of else 1.0

    def to_dict(self) -> JsonObject:
        """Return count, share and bounds."""
        return {
            "count": self.count,
            "of": self.of,
            "share": round(self.value, 6),
            "low95": round(self.low, 6),
            "high95": round(self.high, 6),
        }

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.count} of {self.of}; {self.low:.1%} to {self.high:.1%})"


def wilson_upper(count: int, of: int) -> float:
    """Return the upper end of the one-sided Wilson interval of `count` of `of`; 0 of nothing.

    Its confidence is 95 %. E. B. Wilson, Probable inference, the law of succession, and statistical
    inference, JASA 22 (1927).
    """
    if not of:
        return 0.0
    z = ONE_SIDED_95
    p, d = count / of, 1 + z * z / of
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return min(1.0, (p + z * z / (2 * of) + half) / d)


def exact_upper(count: int, of: int, confidence: float) -> float:
    """Return what the share behind `count` of `of` is below with `confidence`; 1 of nothing.

    Never less sure than it says, whatever the sample size. C. J. Clopper and E. S. Pearson, The use
    of confidence or fiducial limits illustrated in the case of the binomial, Biometrika 26 (1934).
    """
    if count >= of:
        return 1.0
    # Of `count` or fewer among `of`, by share p: the sum of exp(ways + k log p/(1-p) + of log 1-p).
    k = np.arange(count + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((of - k[:-1]) / (k[:-1] + 1)))])
    low, high = count / of, 1.0
    while (share := (low + high) / 2) not in {low, high}:
        logs = ways + k * math.log(share / (1 - share)) + of * math.log1p(-share)
        low, high = (share, high) if np.exp(logs).sum() > 1 - confidence else (low, share)
    return high
