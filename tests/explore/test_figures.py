from typing import Any

import pytest

from semcache.errors import InvalidInput
from semcache.explore.replayed_lookup import ReplayedLookup
from semcache.explore.report import Report
from semcache.explore.streams import Row


class Told:
    """A hit that tells its risk."""

    def __init__(self, score: float, risk: float | None = None) -> None:
        self.score, self.risk, self.tier = score, risk, "semantic"


class Fake(ReplayedLookup):
    """A lookup with a hit made up."""

    @property
    def hit(self) -> Any:
        return self.found


def looked(outcome: str, *, score: float = 1.0, risk: float | None = None) -> Any:
    row = Row("1", "acme", "text", (), {})
    hit: Any = None if outcome == "missed" else Told(score, risk)
    return Fake(row, hit, "shape", True, outcome)  # type: ignore[arg-type]


def report(*lookups: Any) -> Report:
    return Report("made", given=False, setup={}, lookups=lookups)


def test_coverage_is_the_most_hits_within_the_bound_and_takes_ties_together() -> None:
    made = report(
        looked("right", score=0.99),
        looked("right", score=0.98),
        looked("wrong", score=0.97),
        looked("right", score=0.97),
        looked("missed"),
    )
    none, third = made.coverage((0.01, 0.25))
    assert (none.hits, none.right, none.of_ceiling) == (2, 2, 0.4)
    assert (third.hits, third.right) == (4, 3)
    assert [(p.hits, p.wrong) for p in made.curve()] == [(1, 0), (2, 0), (4, 1)]


def test_where_the_surest_hit_is_wrong_nothing_is_covered() -> None:
    (none,) = report(looked("wrong"), looked("right")).coverage((0.01,))
    assert (none.hits, none.doubt) == (0, None)


def test_hits_are_ordered_by_risk_where_the_cache_tells_it() -> None:
    made = report(looked("wrong", score=0.99, risk=0.2), looked("right", score=0.9, risk=0.001))
    assert [one.outcome for one in made.hits] == ["right", "wrong"]
    assert [(b.hits, b.foretold, b.wrong.count) for b in made.reliability(bins=2)] == [
        (1, 0.001, 0),
        (1, 0.2, 1),
    ]


def test_hits_are_grouped_by_twenty_unless_told_otherwise() -> None:
    def made(count: int) -> Report:
        told = [looked("right", risk=i / 10_000) for i in range(count)]
        return report(looked("wrong", risk=0.5), *told)

    assert [b.hits for b in made(30).reliability()] == [31]
    assert [b.hits for b in made(59).reliability()] == [20, 20, 20]
    assert len(made(1000).reliability()) == 10
    assert "risk told and hits that were wrong: 1.75% told 3.23% of 31" in "\n".join(
        made(30).lines(mistakes=0)
    )


def test_without_risk_there_is_no_reliability(sampled: Report) -> None:
    assert report(looked("right")).reliability() == ()


def test_bins_and_mistakes_are_counts(sampled: Report) -> None:
    for bins in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match="bins is"):
            sampled.reliability(bins)  # type: ignore[arg-type]  # half a bin is what is tried
    with pytest.raises(InvalidInput, match="count is -1; expected a whole number of 0 or more"):
        sampled.mistakes(-1)
    assert sampled.mistakes(0) == ()
