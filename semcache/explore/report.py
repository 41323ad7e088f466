"""The report of a replay: how much was served, how much of it rightly, and where it went wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidInput
from semcache.explore.checks import check_count
from semcache.explore.figures import (
    Bin,
    Coverage,
    Point,
    TenantScore,
    covered,
    curve,
    plain,
    reliability,
    tenant_scores,
)
from semcache.explore.replayed_lookup import Fault, Mistake, Outcome, ReplayedLookup, mistake
from semcache.explore.report_view import report_html, report_lines
from semcache.explore.score import Share, plan_text
from semcache.explore.streams import Row
from semcache.matching.model.bound import Certificate

if TYPE_CHECKING:
    from semcache.cache.plan_cache import PlanCache

BOUNDS = (0.005, 0.01, 0.02, 0.05)
"""Shares of wrong hits that a report gives the coverage for."""


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
            "coverage": [plain(one) for one in self.coverage()],
            "curve": [[p.doubt, p.hits, p.wrong] for p in self.curve()],
            "reliability": [[b.hits, b.foretold, b.wrong.to_dict()] for b in self.reliability()],
            "tenants": [plain(score) for score in self.tenants()],
            "certificates": {name: asdict(said) for name, said in self.certificates().items()},
            "mistakes": [one.to_dict() for one in self.mistakes(mistakes)],
        }

    def lines(self, *, mistakes: int = 5) -> list[str]:
        """Return the report as lines for a person, with at most so many mistakes."""
        return report_lines(self, mistakes=mistakes)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return report_html(self)


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
