"""One lookup of a replay and how it came out, and the figures that all of them come to."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from semcache.cache.result import Candidate, Found, Hit, Miss
from semcache.canonical import Json, JsonObject, leaves, pointer_text
from semcache.explore.score import Share, plan_text
from semcache.explore.streams import Row

SHOWN = 4
"""Differences between two plans that are told."""

Outcome = Literal["right", "wrong", "missed"]
Fault = Literal["", "plan", "values", "must miss"]
"""What is wrong with a hit: another plan; the right plan with wrong values; any plan at all."""


@dataclass(frozen=True, slots=True)
class ReplayedLookup:
    """One lookup of a replay and what it should have been."""

    row: Row
    found: Found | None
    """What the cache said; None if it refused the prompt itself."""
    shape: str | None
    """What the right plan shares with plans for other values; None: no plan may be served."""
    servable: bool
    """Whether a plan of that shape was stored before, so that a perfect matcher could serve it."""
    outcome: Outcome
    fault: Fault = ""
    same: tuple[bool | None, ...] = ()
    """For each candidate of the trace, whether its plan has the right shape; None: not known."""
    refused: str = ""
    """Why the cache refused the prompt; empty if it did not."""

    @property
    def hit(self) -> Hit | None:
        """The hit, if there was one."""
        return self.found if isinstance(self.found, Hit) else None

    @property
    def risk(self) -> float | None:
        """The cache's own chance that serving was wrong, in [0, 1]; None if it says nothing."""
        return None if self.hit is None else self.hit.risk

    @property
    def reason(self) -> str:
        """Why it missed; empty for a hit."""
        return self.found.reason if isinstance(self.found, Miss) else self.refused

    @property
    def considered(self) -> tuple[tuple[Candidate, bool | None], ...]:
        """Each candidate of the trace, and whether its plan has the right shape."""
        if self.found is None:
            return ()
        return tuple(zip(self.found.trace.candidates, self.same, strict=True))

    @property
    def doubt(self) -> float:
        """What hits are ordered by, surest first: the risk, else how far the score is from 1."""
        hit = self.hit
        if hit is None:
            return float("inf")
        return 1 - hit.score if self.risk is None else self.risk


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong hit, and what to make of it."""

    row: Row
    hit: Hit
    fault: Fault
    differs: tuple[str, ...]
    """Where the served plan differs from the right one, at most `SHOWN` places."""

    @property
    def sure(self) -> str:
        """How the hit came about and how sure the cache was of it, in a few words."""
        risk = f", risk {self.hit.risk:.2%}"
        return f"{self.hit.tier} {self.hit.score:.3f}{risk}"

    @property
    def reason(self) -> str:
        """Why it was served all the same, in a sentence."""
        template = self.hit.trace.template
        candidate = next((c for c in self.hit.trace.candidates if c.served), None)
        if self.fault == "must miss":
            return "what may not be served is never planned, so that nothing contradicts the plan"
        if self.fault == "values":
            return "the plan is right, and a value of the prompt was read otherwise or not at all"
        if self.hit.tier == "schema":
            return f"the plan was made for a prompt with the same schema, {self.hit.key}"
        if candidate is None or candidate.template == template:
            return "the plan was made for the same words but for values: two plans for one question"
        return f"{template!r} was taken for {candidate.template!r}"

    def to_dict(self) -> JsonObject:
        """Return the mistake as JSON."""
        return {
            "id": self.row.id,
            "tenant": self.row.scope,
            "text": self.row.text,
            "template": self.hit.trace.template,
            "fault": self.fault,
            "reason": self.reason,
            "tier": self.hit.tier,
            "score": round(self.hit.score, 4),
            "risk": self.hit.risk,
            "served_key": self.hit.key,
            "differs": list(self.differs),
            "served": self.hit.plan.to_dict(),
            "wanted": self.row.plan,
        }


def mistake(looked: ReplayedLookup) -> Mistake:
    """Return what to make of a wrong hit."""
    assert looked.hit is not None  # noqa: S101 - only hits are wrong
    served, wanted = looked.hit.plan.to_dict(), looked.row.plan
    differs = () if wanted is None else tuple(_differences(served, wanted))[:SHOWN]
    return Mistake(looked.row, looked.hit, looked.fault, differs)


def _differences(served: JsonObject, wanted: JsonObject) -> Iterator[str]:
    mine = {pointer_text(at): value for at, value in leaves(served)}
    right = {pointer_text(at): value for at, value in leaves(wanted)}
    for at in dict.fromkeys([*right, *mine]):
        said, meant = _told(mine, at), _told(right, at)
        if said != meant:
            yield f"{at}: {said} instead of {meant}"


def _told(values: Mapping[str, Json], at: str) -> str:
    return plan_text(values[at]) if at in values else "nothing"


# Figures, by how sure the cache was and by tenant.


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
