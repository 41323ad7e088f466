"""Figures: what a replay's lookups come to, by how sure the cache was and by tenant."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from semcache.explore.replayed_lookup import Outcome, ReplayedLookup
from semcache.explore.score import Share


@dataclass(frozen=True, slots=True)
class Point:
    """What would be served if only the surest hits were."""

    doubt: float
    """The least sure of them: its risk, or 1 - score."""
    hits: int
    wrong: int
    rows: int

    @property
    def hit_ratio(self) -> float:
        """Share of the rows that would be served, in [0, 1]."""
        return self.hits / self.rows if self.rows else 0.0

    @property
    def precision(self) -> float:
        """Share of the served that is right, in [0, 1]; 1 of nothing."""
        return 1 - self.wrong / self.hits if self.hits else 1.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The most that could be served with at most some share of it wrong, seen afterwards."""

    bound: float
    """Highest share of wrong hits."""
    hits: int
    right: int
    of_ceiling: float
    """`right` as a share of the ceiling."""
    doubt: float | None
    """Hits up to this risk (or 1 - score) are served; None: none are."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of about the same risk: what was foretold and what came."""

    hits: int
    foretold: float
    """Mean risk."""
    wrong: Share


@dataclass(frozen=True, slots=True)
class TenantScore:
    """How one tenant fared."""

    tenant: str
    rows: int
    ceiling: int
    hits: int
    right: int
    wrong: int


def curve(hits: Sequence[ReplayedLookup], rows: int) -> tuple[Point, ...]:
    """Return what would be served of `rows` at each degree of doubt; `hits` are surest first."""
    points: list[Point] = []
    served = wrong = 0
    for doubt, group in groupby(hits, key=lambda one: one.doubt):
        outcomes = [looked.outcome for looked in group]
        served, wrong = served + len(outcomes), wrong + outcomes.count("wrong")
        points.append(Point(doubt, served, wrong, rows))
    return tuple(points)


def covered(bound: float, points: Sequence[Point], ceiling: int) -> Coverage:
    """Return the most hits on a curve with at most the share `bound` of them wrong."""
    best = next((p for p in reversed(points) if p.wrong <= bound * p.hits), None)
    if best is None:
        return Coverage(bound, 0, 0, 0.0, None)
    right = best.hits - best.wrong
    return Coverage(bound, best.hits, right, Share(right, ceiling).value, best.doubt)


BINS, LEAST = 10, 20
"""Groups of hits that are compared with their risk, at most, and hits in each, at least."""


def reliability(hits: Sequence[ReplayedLookup], bins: int | None) -> tuple[Bin, ...]:
    """Return hits, surest first, in groups of equal size by risk; empty if no risk was told."""
    told = [(one.risk, one.outcome) for one in hits if one.risk is not None]
    bins = max(1, min(BINS, len(told) // LEAST)) if bins is None else bins
    size = max(1, -(-len(told) // bins))
    groups = [told[i : i + size] for i in range(0, len(told), size)]
    return tuple(_bin(group) for group in groups)


def tenant_scores(lookups: Iterable[ReplayedLookup]) -> tuple[TenantScore, ...]:
    """Return one score a tenant, the one with most rows first."""
    by_tenant: dict[str, list[ReplayedLookup]] = {}
    for looked in lookups:
        by_tenant.setdefault(looked.row.scope, []).append(looked)
    scores = [_tenant_score(tenant, group) for tenant, group in by_tenant.items()]
    return tuple(sorted(scores, key=lambda score: (-score.rows, score.tenant)))


def _bin(group: Sequence[tuple[float, Outcome]]) -> Bin:
    wrong = sum(outcome == "wrong" for _, outcome in group)
    foretold = sum(risk for risk, _ in group) / len(group)
    return Bin(len(group), foretold, Share(wrong, len(group)))


def _tenant_score(tenant: str, group: Sequence[ReplayedLookup]) -> TenantScore:
    outcomes = Counter(looked.outcome for looked in group)
    return TenantScore(
        tenant=tenant,
        rows=len(group),
        ceiling=sum(looked.servable for looked in group),
        hits=outcomes["right"] + outcomes["wrong"],
        right=outcomes["right"],
        wrong=outcomes["wrong"],
    )
