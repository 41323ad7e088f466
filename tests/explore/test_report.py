import json
from collections.abc import Callable

from semcache.canonical import dumps
from semcache.explore.report import Report
from semcache.explore.streams import Row

Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


def test_a_mistake_says_where_the_served_plan_differs(sampled: Report) -> None:
    mistake = sampled.mistakes(1)[0]
    assert mistake.fault == "plan"
    assert any("dry_run" in place and "instead of" in place for place in mistake.differs)
    assert len(sampled.mistakes()) == sampled.wrong


def test_figures_add_up(sampled: Report) -> None:
    outcomes = [one.outcome for one in sampled.lookups]
    assert sampled.right + sampled.wrong == len(sampled.hits)
    assert outcomes.count("missed") == sampled.rows - len(sampled.hits)
    assert sum(sampled.faults().values()) == sampled.wrong > 0
    assert sum(sampled.tiers().values()) == len(sampled.hits)
    scores = sampled.tenants()
    assert sum(score.rows for score in scores) == sampled.rows
    assert sum(score.wrong for score in scores) == sampled.wrong
    last = sampled.curve()[-1]
    assert last.precision == 1 - sampled.wrong / len(sampled.hits)
    assert last.hit_ratio == sampled.hit_share.value


def test_tenants_are_told_one_by_one_the_one_with_most_rows_first(sampled: Report) -> None:
    first, second = sampled.tenants()
    assert first.rows > second.rows
    for score in (first, second):
        mine = [one for one in sampled.lookups if one.row.scope == score.tenant]
        outcomes = [one.outcome for one in mine]
        assert (score.rows, score.right, score.wrong) == (
            len(mine),
            outcomes.count("right"),
            outcomes.count("wrong"),
        )
        assert score.hits == score.right + score.wrong
        assert score.ceiling == sum(one.servable for one in mine)


def test_coverage_is_told_for_half_one_two_and_five_percent_wrong(sampled: Report) -> None:
    assert [one.bound for one in sampled.coverage()] == [0.005, 0.01, 0.02, 0.05]
    assert all(f"at {bound}" in str(sampled) for bound in ("0.5%", "1.0%", "2.0%", "5.0%"))


def test_what_could_have_been_served_and_was_missed_is_lost_by_reason(sampled: Report) -> None:
    missed = [one for one in sampled.lookups if one.outcome == "missed"]
    lost = sampled.lost()
    assert 0 < sum(lost.values()) == sum(one.servable for one in missed) < len(missed)
    assert all(f"{reason} {count}" in str(sampled) for reason, count in lost.items())


def test_the_text_tells_a_wrong_plan_from_wrong_values(sampled: Report) -> None:
    assert f"{sampled.faults()['plan']} wrong plan" in str(sampled)


def test_the_report_is_json_and_text(sampled: Report) -> None:
    doc = json.loads(dumps(sampled.to_dict(mistakes=3)))
    assert doc["wrong"]["count"] == sampled.wrong
    assert len(doc["mistakes"]) == 3
    assert len(doc["coverage"]) == 4
    assert doc["curve"][-1][1:] == [len(sampled.hits), sampled.wrong]
    assert sum(hits for hits, _, _ in doc["reliability"]) <= len(sampled.hits)
    assert doc["reliability"]
    assert [one["tenant"] for one in doc["tenants"]] == [s.tenant for s in sampled.tenants()]
    assert f"{sampled.rows} rows" in str(sampled)
    first = sampled.tenants()[0]
    assert f"{first.tenant}: {first.right} of {first.ceiling} right" in str(sampled)
    last = sampled.curve()[-1]
    assert f"{last.precision:.1%} of {last.hit_ratio:.1%}" in str(sampled)
    assert f"{sampled.wrong_share.low:.1%} to {sampled.wrong_share.high:.1%}" in str(sampled)


def test_nothing_from_outside_reaches_the_html_unescaped(quick: Evaluate, sale: MakeRow) -> None:
    text = "<script>alert(1)</script> in 2023"
    rows = [sale(text, "2023"), sale(text, "2023", operation="<b>returns</b>")]
    made = quick(rows, name="<i>name</i>")
    html = made._repr_html_()
    assert (made.wrong, "&lt;script&gt;alert" in html) == (1, True)
    for tag in ("<script", "<i>", "<b>returns"):
        assert tag not in html
