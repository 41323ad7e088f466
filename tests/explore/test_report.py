import json
from collections.abc import Callable
from typing import Any

from semcache.canonical import dumps
from semcache.explore.report import Looked, Report
from semcache.explore.streams import Row

Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


class Told:
    """A hit that tells its risk."""

    def __init__(self, score: float, risk: float | None = None) -> None:
        self.score, self.risk, self.tier = score, risk, "semantic"


class Fake(Looked):
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


def test_without_risk_there_is_no_reliability(sampled: Report) -> None:
    assert report(looked("right")).reliability() == ()


def test_figures_add_up(sampled: Report) -> None:
    outcomes = [one.outcome for one in sampled.lookups]
    assert sampled.right + sampled.wrong == len(sampled.hits)
    assert outcomes.count("missed") == sampled.rows - len(sampled.hits)
    assert sum(sampled.faults().values()) == sampled.wrong > 0
    assert sum(sampled.tiers().values()) == len(sampled.hits)
    scores = sampled.tenants()
    assert sum(score.rows for score in scores) == sampled.rows
    assert sum(score.wrong for score in scores) == sampled.wrong


def test_a_mistake_says_where_the_served_plan_differs(sampled: Report) -> None:
    mistake = sampled.mistakes(1)[0]
    assert mistake.fault == "plan"
    assert any("dry_run" in place and "instead of" in place for place in mistake.differs)
    assert len(sampled.mistakes()) == sampled.wrong


def test_the_report_is_json_text_and_html(sampled: Report) -> None:
    doc = json.loads(dumps(sampled.to_dict(mistakes=3)))
    assert doc["wrong"]["count"] == sampled.wrong
    assert len(doc["mistakes"]) == 3
    assert f"{sampled.rows} rows" in str(sampled)
    first = sampled.tenants()[0]
    assert f"{first.tenant}: {first.right} of {first.ceiling} right" in str(sampled)
    html = sampled._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 4


def test_nothing_from_outside_reaches_the_html_unescaped(quick: Evaluate, sale: MakeRow) -> None:
    text = "<script>alert(1)</script> in 2023"
    rows = [sale(text, "2023"), sale(text, "2023", operation="<b>returns</b>")]
    made = quick(rows, name="<i>name</i>")
    assert made.wrong == 1
    html = made._repr_html_()
    for tag in ("<script", "<i>", "<b>returns"):
        assert tag not in html


def test_a_report_without_wrong_hits_says_so(quick: Evaluate, sale: MakeRow) -> None:
    assert "No hit was wrong" in quick([sale("a", "1")])._repr_html_()
