"""The report of a replay: how much was served, how much of it rightly, and where it went wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from semcache.cache.found import Candidate, Found, Hit, Miss
from semcache.canonical import Json, JsonObject, leaves, pointer_text
from semcache.errors import InvalidInput
from semcache.explore.markup import report_html
from semcache.explore.scoring import Share, plan_text
from semcache.explore.streams import Row

if TYPE_CHECKING:
    from semcache.cache.plan_cache import PlanCache

BOUNDS = (0.005, 0.01, 0.02, 0.05)
"""Shares of wrong hits that a report gives the coverage for."""

Outcome = Literal["right", "wrong", "missed"]
Fault = Literal["", "plan", "values", "must miss"]
"""What is wrong with a hit: another plan; the right plan with wrong values; any plan at all."""


@dataclass(frozen=True, slots=True)
class Looked:
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


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong hit, and what to make of it."""

    row: Row
    hit: Hit
    fault: Fault
    differs: tuple[str, ...]
    """Where the served plan differs from the right one, at most `SHOWN` places."""

    def to_dict(self) -> JsonObject:
        """Return the mistake as JSON."""
        return {
            "id": self.row.id,
            "tenant": self.row.scope,
            "text": self.row.text,
            "template": self.hit.trace.template,
            "fault": self.fault,
            "tier": self.hit.tier,
            "score": round(self.hit.score, 4),
            "served_key": self.hit.key,
            "differs": list(self.differs),
            "served": self.hit.plan.to_dict(),
            "wanted": self.row.plan,
        }


SHOWN = 4
"""Differences between two plans that are told."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay came to. Figures are computed when asked for."""

    name: str
    given: bool
    """Whether lookups were given the parameters' values, or the text alone."""
    setup: Mapping[str, Json]
    """Threshold, `max_wrong`, and the fingerprint of the embedder."""
    lookups: tuple[Looked, ...] = field(repr=False)
    unstored: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Id of each row whose plan the cache would not keep, and why."""
    cache: "PlanCache | None" = field(default=None, repr=False, compare=False)
    """The cache as the replay left it, to ask further; None for pooled reports."""

    @property
    def rows(self) -> int:
        """Prompts asked."""
        return len(self.lookups)

    @property
    def ceiling(self) -> int:
        """Rows that a perfect matcher could have served."""
        return sum(looked.servable for looked in self.lookups)

    @property
    def hits(self) -> tuple[Looked, ...]:
        """Lookups that served a plan, surest first; in order of the stream where equally sure."""
        return tuple(sorted((one for one in self.lookups if one.hit), key=lambda one: one.doubt))

    @property
    def right(self) -> int:
        """Hits that were right."""
        return sum(looked.outcome == "right" for looked in self.lookups)

    @property
    def wrong(self) -> int:
        """Hits that were wrong."""
        return sum(looked.outcome == "wrong" for looked in self.lookups)

    @property
    def hit_share(self) -> Share:
        """Hits of rows."""
        return Share(self.right + self.wrong, self.rows)

    @property
    def right_share(self) -> Share:
        """Right hits of what a perfect matcher could have served, or of rightly served, if more."""
        return Share(self.right, max(self.ceiling, self.right))

    @property
    def wrong_share(self) -> Share:
        """Wrong hits of hits."""
        return Share(self.wrong, self.right + self.wrong)

    def faults(self) -> Counter[Fault]:
        """Return how many hits were wrong in which way."""
        return Counter(looked.fault for looked in self.lookups if looked.fault)

    def tiers(self) -> Counter[tuple[str, Outcome]]:
        """Return how many hits of each tier came out how."""
        return Counter((one.hit.tier, one.outcome) for one in self.lookups if one.hit)

    def lost(self) -> Counter[str]:
        """Return why rows that could have been served were missed."""
        missed = (one for one in self.lookups if one.servable and not one.hit)
        return Counter(one.reason for one in missed)

    def curve(self) -> tuple[Point, ...]:
        """Return what would be served at each degree of doubt, surest first.

        Hits that are equally sure come in together: no rule could tell them apart. The replay's own
        hits are counted, so what a looser setting would add is not in it.
        """
        points: list[Point] = []
        hits = wrong = 0
        for doubt, group in groupby(self.hits, key=lambda one: one.doubt):
            outcomes = [looked.outcome for looked in group]
            hits, wrong = hits + len(outcomes), wrong + outcomes.count("wrong")
            points.append(Point(doubt, hits, wrong, self.rows))
        return tuple(points)

    def coverage(self, bounds: Sequence[float] = BOUNDS) -> tuple[Coverage, ...]:
        """Return, for each bound, the most hits with at most that share of them wrong.

        Chosen afterwards with the outcomes in hand, so a cut taken from here promises less than it
        shows; `tune.recommend` gives one with its confidence.
        """
        curve = self.curve()
        return tuple(self._covered(bound, curve) for bound in bounds)

    def _covered(self, bound: float, curve: Sequence[Point]) -> Coverage:
        best = next((p for p in reversed(curve) if p.wrong <= bound * p.hits), None)
        if best is None:
            return Coverage(bound, 0, 0, 0.0, None)
        right = best.hits - best.wrong
        return Coverage(bound, best.hits, right, Share(right, self.ceiling).value, best.doubt)

    def reliability(self, bins: int = 10) -> tuple[Bin, ...]:
        """Return the hits in `bins` groups of equal size by risk, lowest first.

        Empty if the cache told no risk.
        """
        told = [(one.risk, one.outcome) for one in self.hits if one.risk is not None]
        size = max(1, -(-len(told) // bins))
        groups = [told[i : i + size] for i in range(0, len(told), size)]
        return tuple(_bin(group) for group in groups)

    def tenants(self) -> tuple[TenantScore, ...]:
        """Return one score a tenant, the one with most rows first."""
        by_tenant: dict[str, list[Looked]] = {}
        for looked in self.lookups:
            by_tenant.setdefault(looked.row.scope, []).append(looked)
        scores = [_tenant_score(tenant, group) for tenant, group in by_tenant.items()]
        return tuple(sorted(scores, key=lambda score: (-score.rows, score.tenant)))

    def mistakes(self, count: int | None = None) -> tuple[Mistake, ...]:
        """Return wrong hits, the surest first: those are the worst; at most `count`."""
        wrong = [one for one in self.hits if one.outcome == "wrong"]
        return tuple(map(_mistake, wrong[:count]))

    def to_dict(self, *, mistakes: int = 20) -> JsonObject:
        """Return every figure as JSON, with at most so many mistakes."""
        return {
            "name": self.name,
            "given": self.given,
            "setup": dict(self.setup),
            "rows": self.rows,
            "ceiling": Share(self.ceiling, self.rows).to_dict(),
            "hit": self.hit_share.to_dict(),
            "right_of_ceiling": self.right_share.to_dict(),
            "wrong": self.wrong_share.to_dict(),
            "faults": {str(fault): count for fault, count in self.faults().items()},
            "tiers": {f"{tier} {outcome}": n for (tier, outcome), n in self.tiers().items()},
            "lost": dict[str, Json](self.lost()),
            "unstored": [list(one) for one in self.unstored],
            "coverage": [_plain(one) for one in self.coverage()],
            "curve": [[p.doubt, p.hits, p.wrong] for p in self.curve()],
            "reliability": [[b.hits, b.foretold, b.wrong.to_dict()] for b in self.reliability()],
            "tenants": [_plain(score) for score in self.tenants()],
            "mistakes": [one.to_dict() for one in self.mistakes(mistakes)],
        }

    def lines(self, *, mistakes: int = 5) -> list[str]:
        """Return the report as lines for a person, with at most so many mistakes."""
        tables = (*self._coverage_lines(), *self._tenant_lines())
        return [*self._head(), *tables, *self._mistake_lines(mistakes)]

    def _head(self) -> list[str]:
        faults = self.faults()
        told = ", ".join(f"{n} {_FAULTS[fault]}" for fault, n in faults.most_common())
        lost = ", ".join(f"{reason} {n}" for reason, n in self.lost().most_common(6))
        mode = "parameters given" if self.given else "text only"
        head = [
            f"{self.name}: {self.rows} rows, {mode}",
            f"  could be served    {Share(self.ceiling, self.rows)}",
            f"  hits               {self.hit_share}",
            f"  right, of those    {self.right_share}",
            f"  wrong, of hits     {self.wrong_share}",
        ]
        if told:
            head.append(f"    {told}")
        if lost:
            head.append(f"  lost: {lost}")
        if self.unstored:
            head.append(f"  {len(self.unstored)} plans not kept, the first: {self.unstored[0][1]}")
        return head

    def _coverage_lines(self) -> list[str]:
        best = (f"{c.of_ceiling:.1%} at {c.bound:.1%}" for c in self.coverage())
        return [f"  right, if at most so much is wrong: {', '.join(best)}"]

    def _tenant_lines(self) -> list[str]:
        scores = self.tenants()
        if len(scores) < 2:
            return []
        told = [f"    {s.tenant}: {s.right} of {s.ceiling} right, {s.wrong} of {s.hits} hits wrong"
                for s in scores[:_TENANTS]]  # fmt: skip
        more = len(scores) - len(told)
        return ["  by tenant:", *told, *([f"    and {more} tenants more"] if more else [])]

    def _mistake_lines(self, count: int) -> list[str]:
        lines: list[str] = []
        for one in self.mistakes(count):
            lines.append(f"  {_FAULTS[one.fault]} ({one.hit.tier} {one.hit.score:.3f})")
            lines.append(f"    asked   {one.row.text}")
            lines.append(f"    served  {one.hit.key}")
            lines += [f"    {place}" for place in one.differs]
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return report_html(self)


_TENANTS = 6
"""Tenants that are told one by one, those with most rows first."""
_FAULTS: dict[Fault, str] = {
    "plan": "wrong plan",
    "values": "right plan, wrong values",
    "must miss": "no plan may be served",
    "": "",
}


def pooled(reports: Sequence[Report], *, name: str = "all") -> Report:
    """Return the lookups of several reports as one; tenants of one name are taken for one.

    Raises:
        InvalidInput: there are none, or they were made with different embedders or parameters
            given and not: figures of both kinds at once say nothing of either.
    """
    if not reports:
        raise InvalidInput("there are no reports to pool")
    first = reports[0]
    for report in reports[1:]:
        _check_alike(first, report)
    alike = [k for k, v in first.setup.items() if all(r.setup.get(k) == v for r in reports)]
    return Report(
        name=name,
        given=first.given,
        setup={key: first.setup[key] for key in alike},
        lookups=tuple(looked for report in reports for looked in report.lookups),
        unstored=tuple(one for report in reports for one in report.unstored),
    )


def _check_alike(first: Report, other: Report) -> None:
    mine, its = first.setup.get("embedder"), other.setup.get("embedder")
    if mine != its:
        raise InvalidInput(
            f"{first.name!r} was replayed with embedder {mine!r} and {other.name!r} with {its!r}; "
            "replay them with one"
        )
    if first.given != other.given:
        raise InvalidInput(
            f"only one of {first.name!r} and {other.name!r} was given parameters; "
            "pool those with and those without apart"
        )


def _bin(group: Sequence[tuple[float, Outcome]]) -> Bin:
    wrong = sum(outcome == "wrong" for _, outcome in group)
    foretold = sum(risk for risk, _ in group) / len(group)
    return Bin(len(group), foretold, Share(wrong, len(group)))


def _tenant_score(tenant: str, group: Sequence[Looked]) -> TenantScore:
    outcomes = Counter(looked.outcome for looked in group)
    return TenantScore(
        tenant=tenant,
        rows=len(group),
        ceiling=sum(looked.servable for looked in group),
        hits=outcomes["right"] + outcomes["wrong"],
        right=outcomes["right"],
        wrong=outcomes["wrong"],
    )


def _mistake(looked: Looked) -> Mistake:
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


def _plain(one: Coverage | TenantScore) -> JsonObject:
    names: Iterable[str] = one.__slots__
    return {name: getattr(one, name) for name in names}
