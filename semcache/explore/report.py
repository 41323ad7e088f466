"""The report of a replay: how much was served, how much of it rightly, and where it went wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING

from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidInput
from semcache.explore.replayed_lookup import (
    Bin,
    Coverage,
    Fault,
    Mistake,
    Outcome,
    Point,
    ReplayedLookup,
    TenantScore,
    covered,
    curve,
    mistake,
    reliability,
    tenant_scores,
)
from semcache.explore.score import Share, plan_text
from semcache.explore.streams import Row, check_count
from semcache.matching.model.bound import Certificate

if TYPE_CHECKING:
    from semcache.cache.plan_cache import PlanCache

BOUNDS = (0.005, 0.01, 0.02, 0.05)
"""Shares of wrong hits that a report gives the coverage for."""
_TENANTS = 6
"""Tenants that are told one by one, those with most rows first."""
_HTML_MISTAKES = 8
_FAULTS: dict[Fault, str] = {
    "plan": "wrong plan",
    "values": "right plan, wrong values",
    "must miss": "no plan may be served",
    "": "",
}


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What making plans costs, or would have cost."""

    tokens: float = 0.0
    """Prompt and completion together."""
    seconds: float = 0.0
    money: float = 0.0
    """In any currency."""

    def times(self, count: int) -> "PlanCost":
        """Return what `count` such plans cost."""
        return PlanCost(self.tokens * count, self.seconds * count, self.money * count)

    def __str__(self) -> str:
        parts = (f"{self.tokens:,.0f} tokens", f"{self.seconds:,.1f} s", f"{self.money:,.2f} money")
        amounts = (self.tokens, self.seconds, self.money)
        told = [part for part, amount in zip(parts, amounts, strict=True) if amount]
        return ", ".join(told) or "nothing"


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay came to. Figures are computed when asked for."""

    name: str
    given: bool
    """Whether lookups were given the parameters' values, or the text alone."""
    setup: Mapping[str, Json]
    """Threshold, `max_wrong`, and the fingerprint of the embedder."""
    lookups: tuple[ReplayedLookup, ...] = field(repr=False)
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
    def repeated(self) -> int:
        """Rows that ask what an earlier one of their tenant asked, by words and by values.

        A cache of whole prompts would serve them too.
        """
        asked = {(o.row.scope, o.row.text, plan_text(o.row.values)) for o in self.lookups}
        return self.rows - len(asked)

    @property
    def hits(self) -> tuple[ReplayedLookup, ...]:
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

    def saved(self, cost: PlanCost) -> PlanCost:
        """Return what the right hits saved, if making one plan takes `cost`; wrong ones save none.

        What each lookup costs is not taken off: milliseconds, and no tokens.
        """
        return cost.times(self.right)

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
        return curve(self.hits, self.rows)

    def coverage(self, bounds: Sequence[float] = BOUNDS) -> tuple[Coverage, ...]:
        """Return, for each bound, the most hits with at most that share of them wrong.

        Chosen afterwards with the outcomes in hand, so a cut taken from here promises less than it
        shows; `tune.recommend` gives one with its confidence.
        """
        points = self.curve()
        return tuple(covered(bound, points, self.ceiling) for bound in bounds)

    def reliability(self, bins: int | None = None) -> tuple[Bin, ...]:
        """Return the hits in `bins` groups of equal size by risk, lowest first.

        None: at most ten, of twenty hits or more each; of fewer, bounds would tell nothing. Empty
        if the cache told no risk.

        Raises:
            InvalidInput: `bins` is under 1.
        """
        check_count("bins", bins)
        return reliability(self.hits, bins)

    def tenants(self) -> tuple[TenantScore, ...]:
        """Return one score a tenant, the one with most rows first."""
        return tenant_scores(self.lookups)

    def certificates(self) -> dict[str, Certificate]:
        """Return tenant → what its bound holds by now, as the replay left it; empty if pooled."""
        if self.cache is None:
            return {}
        told = {one.tenant: self.cache.stats(tenant=one.tenant) for one in self.tenants()}
        return {name: said.certificate for name, said in told.items() if said.certificate}

    def mistakes(self, count: int | None = None) -> tuple[Mistake, ...]:
        """Return wrong hits, the surest first: those are the worst; at most `count`.

        Raises:
            InvalidInput: `count` is under 0.
        """
        check_count("count", count, least=0)
        wrong = [one for one in self.hits if one.outcome == "wrong"]
        return tuple(map(mistake, wrong[:count]))

    def to_dict(self, *, mistakes: int = 20) -> JsonObject:
        """Return every figure as JSON, with at most so many mistakes."""
        return {
            "name": self.name,
            "given": self.given,
            "setup": dict(self.setup),
            "rows": self.rows,
            "ceiling": Share(self.ceiling, self.rows).to_dict(),
            "repeated": Share(self.repeated, self.rows).to_dict(),
            "hit": self.hit_share.to_dict(),
            "right_of_ceiling": self.right_share.to_dict(),
            "wrong": self.wrong_share.to_dict(),
            "faults": {str(fault): count for fault, count in self.faults().items()},
            "tiers": {f"{tier} {outcome}": n for (tier, outcome), n in self.tiers().items()},
            "lost": dict[str, Json](self.lost()),
            "unstored": [list(one) for one in self.unstored],
            "coverage": [asdict(one) for one in self.coverage()],
            "curve": [[p.doubt, p.hits, p.wrong] for p in self.curve()],
            "reliability": [[b.hits, b.foretold, b.wrong.to_dict()] for b in self.reliability()],
            "tenants": [asdict(score) for score in self.tenants()],
            "certificates": {name: asdict(said) for name, said in self.certificates().items()},
            "mistakes": [one.to_dict() for one in self.mistakes(mistakes)],
        }

    def lines(self, *, mistakes: int = 5) -> list[str]:
        """Return the report as lines for a person, with at most so many mistakes."""
        return _lines(self, mistakes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        lines = "\n".join(self.lines(mistakes=_HTML_MISTAKES))
        return f"<pre style='white-space:pre-wrap'>{escape(lines)}</pre>"


def pooled(reports: Sequence[Report], *, name: str = "all") -> Report:
    """Return the lookups of several reports as one; tenants of one name are taken for one.

    Raises:
        InvalidInput: there are none, two are of the same rows, or they were made with different
            embedders or parameters given and not: figures of both kinds at once say nothing of
            either.
    """
    if not reports:
        raise InvalidInput("there are no reports to pool")
    first = reports[0]
    for report in reports[1:]:
        _check_alike(first, report)
    check_once([(report.name, [one.row for one in report.lookups]) for report in reports])
    alike = [k for k, v in first.setup.items() if all(r.setup.get(k) == v for r in reports)]
    return Report(
        name=name,
        given=first.given,
        setup={key: first.setup[key] for key in alike},
        lookups=tuple(looked for report in reports for looked in report.lookups),
        unstored=tuple(one for report in reports for one in report.unstored),
    )


def check_once(streams: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """Raise `InvalidInput` if two of `streams`, each by its name, have the same rows.

    Each row would count twice, and the bounds would be narrower than what was seen allows.
    """
    for (one, rows), (other, others) in combinations(streams, 2):
        if list(rows) == list(others):
            raise InvalidInput(
                f"{one!r} and {other!r} have the same rows, so that each would count twice in the "
                "figures of all; name each stream once"
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


# As lines for a person.


def _lines(report: Report, mistakes: int) -> list[str]:
    curves = (*_coverage_lines(report), *_curve_lines(report), *_reliability_lines(report))
    tables = (*curves, *_bound_lines(report), *_tenant_lines(report))
    return [*_head(report), *tables, *_mistake_lines(report, mistakes)]


def _head(report: Report) -> list[str]:
    faults = report.faults()
    told = ", ".join(f"{n} {_FAULTS[fault]}" for fault, n in faults.most_common())
    lost = ", ".join(f"{reason} {n}" for reason, n in report.lost().most_common(6))
    mode = "parameters given" if report.given else "text only"
    head = [
        f"{report.name}: {report.rows} rows, {mode}",
        f"  could be served    {Share(report.ceiling, report.rows)}",
        *(
            [f"  asked before       {Share(report.repeated, report.rows)}"]
            if report.repeated
            else []
        ),
        f"  hits               {report.hit_share}",
        f"  right, of those    {report.right_share}",
        f"  wrong, of hits     {report.wrong_share}",
    ]
    if told:
        head.append(f"    {told}")
    if lost:
        head.append(f"  lost: {lost}")
    if report.unstored:
        plans = "1 plan" if len(report.unstored) == 1 else f"{len(report.unstored)} plans"
        head.append(f"  {plans} not kept, the first: {report.unstored[0][1]}")
    return head


def _coverage_lines(report: Report) -> list[str]:
    best = (f"{c.of_ceiling:.1%} at {c.bound:.1%}" for c in report.coverage())
    return [f"  right, if at most so much is wrong: {', '.join(best)}"]


def _curve_lines(report: Report) -> list[str]:
    points = report.curve()
    if not points:
        return []
    wanted = [points[-1].hits * quarter / 4 for quarter in (1, 2, 3, 4)]
    shown = dict.fromkeys(next(p for p in points if p.hits >= hits) for hits in wanted)
    told = ", ".join(f"{p.precision:.1%} of {p.hit_ratio:.1%}" for p in shown)
    return [f"  right, of the surest rows served: {told}"]


def _reliability_lines(report: Report) -> list[str]:
    told = report.reliability()
    if not told:
        return []
    bins = ", ".join(f"{b.foretold:.2%} told {b.wrong.value:.2%} of {b.hits}" for b in told)
    return [f"  risk told and hits that were wrong: {bins}"]


def _bound_lines(report: Report) -> list[str]:
    told = [*report.certificates().items()]
    if len(told) == 1:
        return [f"  bound: {told[0][1]}"]
    return [f"  bound of {tenant}: {said}" for tenant, said in told[:_TENANTS]]


def _tenant_lines(report: Report) -> list[str]:
    scores = report.tenants()
    if len(scores) < 2:
        return []
    told = [f"    {s.tenant}: {s.right} of {s.ceiling} right, {s.wrong} of {s.hits} hits wrong"
            for s in scores[:_TENANTS]]  # fmt: skip
    more = len(scores) - len(told)
    return ["  by tenant:", *told, *([f"    and {more} tenants more"] if more else [])]


def _mistake_lines(report: Report, count: int) -> list[str]:
    lines: list[str] = []
    for one in report.mistakes(count):
        lines.append(f"  {_FAULTS[one.fault]} ({one.sure})")
        lines.append(f"    asked   {one.row.text}")
        lines.append(f"    served  {one.hit.key}")
        lines.append(f"    since   {one.reason}")
        lines += [f"    {place}" for place in one.differs]
    return lines
