"""Tune: the loosest setting that keeps the share of wrong hits under a bound, with its confidence.

Each setting is replayed against its own cold cache, since what is served decides what is planned
and stored. A setting passes if the exact upper bound on its share of wrong hits is under the one
asked for. Several are tried on the same rows, so each is held to a stricter confidence
(Bonferroni): that all bounds hold at once then has the confidence asked for. This is Learn then
Test (Angelopoulos, Bates, Candès, Jordan and Lei, 2021) with the binomial test.

The confidence is about prompts like those replayed: another tenant, or next year's prompts, need a
log of their own.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from semcache.cache.plan_cache import PlanCache
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidSettings
from semcache.explore.evaluate import OpenCache, Progress, evaluate, rows_of
from semcache.explore.report import Report
from semcache.explore.score import exact_upper
from semcache.explore.streams import Row, check_count
from semcache.ports import Embedder
from semcache.settings import PREFIX, Settings

Knob: TypeAlias = Literal["threshold", "max_wrong"]
"""What is turned: the cosine that a semantic candidate must exceed, or the bound on the risk."""

TRIED: dict[Knob, tuple[float, ...]] = {
    "threshold": (0.98, 0.95, 0.9, 0.85, 0.8),
    "max_wrong": (0.002, 0.005, 0.01, 0.02, 0.05),
}
"""Settings that are tried unless others are named, strictest first."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting and how its replay went."""

    value: float
    report: Report
    bound: float
    """The share of wrong hits is below this, with the confidence that each trial is held to."""
    passed: bool

    def to_dict(self) -> JsonObject:
        """Return the trial as JSON, without its lookups."""
        return {
            "value": self.value,
            "hits": self.report.hit_share.count,
            "right": self.report.right,
            "wrong": self.report.wrong,
            "right_of_ceiling": round(self.report.right_share.value, 6),
            "bound": round(self.bound, 6),
            "passed": self.passed,
        }


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The setting to use, or why there is none."""

    knob: Knob
    target: float
    """Highest share of hits that may be wrong."""
    confidence: float
    """Chance that the bound holds, for prompts like those replayed."""
    trials: tuple[Trial, ...]
    """In the order tried."""

    @property
    def chosen(self) -> Trial | None:
        """Of the settings that passed, the one with most right hits; None if none passed."""
        passed = [trial for trial in self.trials if trial.passed]
        return max(passed, key=lambda trial: trial.report.right, default=None)

    @property
    def needed(self) -> int:
        """Hits without a wrong one that it takes to show the target with this confidence."""
        return hits_needed(self.target, confidence=self.confidence, settings=len(self.trials))

    @property
    def reason(self) -> str:
        """What the recommendation rests on, in a sentence."""
        if self.chosen is None:
            return self._too_little()
        report = self.chosen.report
        return (
            f"{self.knob} {self.chosen.value:g}: {report.wrong} of {report.hit_share.count} hits "
            f"wrong, at most {self.chosen.bound:.2%} with {self.confidence:.0%} confidence; "
            f"rightly serves {report.right_share.value:.1%} of what could be"
        )

    def _too_little(self) -> str:
        hits = max(trial.report.hit_share.count for trial in self.trials)
        if hits < self.needed:
            return (
                f"none: {hits} hits cannot show that at most {self.target:.2%} are wrong; it takes "
                f"{self.needed} without a wrong one, so replay a longer stream"
            )
        best = min(self.trials, key=lambda trial: trial.bound)
        return (
            f"none keeps wrong hits under {self.target:.2%} with {self.confidence:.0%} confidence; "
            f"the nearest is {self.knob} {best.value:g}, at most {best.bound:.2%}"
        )

    def to_dict(self) -> JsonObject:
        """Return the recommendation as JSON."""
        trials: list[Json] = [trial.to_dict() for trial in self.trials]
        return {
            "knob": self.knob,
            "value": self.chosen.value if self.chosen else None,
            "target": self.target,
            "confidence": self.confidence,
            "reason": self.reason,
            "trials": trials,
        }

    def lines(self) -> list[str]:
        """Return the recommendation as lines for a person."""
        head = f"{self.knob:>10}   hits  right  wrong  of ceiling  wrong at most"
        rows = [
            f"{t.value:>10g} {t.report.hit_share.count:>6} {t.report.right:>6} "
            f"{t.report.wrong:>6} {t.report.right_share.value:>11.1%} {t.bound:>14.2%}"
            f"{'  passes' if t.passed else ''}"
            for t in self.trials
        ]
        return [head, *rows, f"recommended: {self.reason}", *self._where()]

    def _where(self) -> list[str]:
        """Return where the number that is recommended goes."""
        if self.chosen is None:
            return []
        value = f"{self.chosen.value:g}"
        place = f"PlanCache.open({self.knob}={value})"
        variable = f"{PREFIX}{self.knob.upper()}={value}"
        return [f"set it by {place}, or for the command `semcache` by {variable}"]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def hits_needed(target: float, *, confidence: float = 0.95, settings: int = 1) -> int:
    """Return how many hits, none of them wrong, show a share of at most `target` wrong.

    `target` and `confidence` lie in (0, 1). `settings`: how many are tried on the same rows.

    Raises:
        InvalidSettings: `target` or `confidence` is out of range.
        InvalidInput: `settings` is under 1.
    """
    check_share("target", target)
    check_share("confidence", confidence)
    check_count("settings", settings, optional=False)
    return math.ceil(math.log((1 - confidence) / settings) / math.log1p(-target))


def recommend(
    rows: str | Path | Iterable[Row],
    *,
    target: float = 0.01,
    confidence: float = 0.95,
    knob: Knob = "threshold",
    values: Sequence[float] | None = None,
    given: bool = False,
    log: bool = False,
    embedder: Embedder | None = None,
    open_cache: OpenCache = PlanCache.open,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Return the setting of `knob` that serves most with at most `target` of its hits wrong.

    `target` and `confidence` lie in (0, 1). `values`: settings to try, `TRIED` if None; each more
    makes every bound a little wider, and one named twice is tried once. The others are as for
    `evaluate`. Cost: one replay a setting.

    Raises:
        InvalidStream, InvalidInput: as `evaluate` does.
        InvalidSettings: `target`, `confidence`, `knob` or a value is out of range.
    """
    check_share("target", target)
    check_share("confidence", confidence)
    if knob not in tuple(TRIED):
        raise InvalidSettings(f"knob is {knob!r}; expected one of {', '.join(map(repr, TRIED))}")
    tried = settings_in(knob, TRIED[knob] if values is None else values)
    read, name = rows_of(rows, log=log, limit=limit)
    each = 1 - (1 - confidence) / len(tried)
    trials: list[Trial] = []
    for value in tried:
        report = evaluate(
            read,
            given=given,
            threshold=value if knob == "threshold" else 0.95,
            max_wrong=value if knob == "max_wrong" else None,
            embedder=embedder,
            open_cache=open_cache,
            name=f"{name}, {knob} {value:g}",
            progress=progress,
        )
        # The first cache's embedder serves the rest: it remembers what it has embedded.
        embedder = embedder or _embedder(report)
        trials.append(_trial(value, replace(report, cache=None), target, each))
    return Recommendation(knob, target, confidence, tuple(trials))


def _embedder(report: Report) -> Embedder | None:
    return None if report.cache is None else report.cache.embedder


def _trial(value: float, report: Report, target: float, confidence: float) -> Trial:
    bound = exact_upper(report.wrong, report.hit_share.count, confidence)
    return Trial(value, report, bound, passed=bound <= target)


def check_share(name: str, value: object) -> None:
    """Raise `InvalidSettings` unless `value` is a number over 0 and under 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidSettings(f"{name} is {value!r}; expected a share between 0 and 1")


def settings_in(knob: str, values: object) -> tuple[float, ...]:
    """Return each of `values` once, in order.

    Raises:
        InvalidSettings: there are none, or one is out of the range of the setting `knob`.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidSettings(f"values is {values!r}; expected numbers to try, such as (0.9, 0.95)")
    tried = tuple(values)
    if not tried:
        raise InvalidSettings("there are no values to try; expected one or more")
    for value in tried:
        if value is None:
            raise InvalidSettings(f"a value to try for {knob} is None; expected a number")
        # Before the first replay: the others may take minutes.
        Settings(threshold=value) if knob == "threshold" else Settings(max_wrong=value)
    return tuple(dict.fromkeys(tried))
