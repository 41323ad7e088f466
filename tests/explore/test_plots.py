from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from semcache.errors import InvalidInput
from semcache.explore import plots
from semcache.explore.replayed_lookup import Bin
from semcache.explore.report import Report
from semcache.explore.score import Share
from semcache.explore.streams import Row
from semcache.matching.evidence import Evidence

Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


def said(figure: Any) -> str:
    """Return every text of a figure."""
    return str(figure.to_json())


def test_score_distributions_show_every_labeled_candidate_of_the_semantic_tier(
    sampled: Report,
) -> None:
    same, other = plots.score_distributions(sampled).data
    labeled = [
        label
        for looked in sampled.lookups
        for candidate, label in looked.considered
        if candidate.tier == "semantic"
    ]
    assert (len(same.x), len(other.x)) == (labeled.count(True), labeled.count(False))
    assert max(same.x) <= 1


def test_precision_curves_have_one_line_a_report(sampled: Report) -> None:
    figure = plots.precision_curves(sampled, replace(sampled, name="again"))
    assert [line.name for line in figure.data] == ["rows, text only", "again, text only"]
    assert figure.data[0].x[-1] == sampled.hit_share.value
    assert figure.data[0].y[-1] == 1 - sampled.wrong_share.value


def test_reliability_needs_a_risk_and_shows_its_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("made", given=False, setup={}, lookups=())
    assert "tell no risk" in said(plots.reliability(report))
    bins = (Bin(100, 0.01, Share(2, 100)), Bin(100, 0.05, Share(5, 100)))
    monkeypatch.setattr(Report, "reliability", lambda *_: bins)
    line, points = plots.reliability(report).data
    assert list(points.x) == [0.01, 0.05]
    assert line.x[-1] > 0.05
    above, below = points.error_y.array, points.error_y.arrayminus
    assert above[1] == pytest.approx(Share(5, 100).high - 0.05)
    assert below[1] == pytest.approx(0.05 - Share(5, 100).low)


def test_the_gate_funnel_leaves_out_gates_that_refused_nothing(sampled: Report) -> None:
    figure = plots.gate_funnel(sampled)
    shown = {gate for bar in figure.data for gate in bar.y}
    assert "slots" in shown
    assert "catalog" not in shown


def test_the_map_shows_every_template_once_with_its_slots_escaped(sampled: Report) -> None:
    assert sampled.cache is not None
    figure = plots.template_map(sampled.cache, tenant="tickets")
    texts = [text for group in figure.data for text in group.text]
    assert len(texts) == len(sampled.cache.entries(tenant="tickets"))
    assert any("&lt;code&gt;" in text for text in texts)
    assert not any("<code>" in text for text in texts)


def test_templates_with_one_plan_have_one_color_on_the_map(quick: Evaluate, sale: MakeRow) -> None:
    rows = [
        sale("sales in 2001", "2001"),
        sale("what did we sell in 2002", "2002"),
        sale("refunds in 2003", "2003", operation="refunds"),
    ]
    report = quick(rows)
    assert report.cache is not None
    same, other = plots.template_map(report.cache, tenant="acme").data
    assert {*same.customdata} == {"sales in 2001", "what did we sell in 2002"}
    assert [*other.customdata] == ["refunds in 2003"]
    assert same.marker.color != other.marker.color


def test_names_from_outside_are_shown_as_they_are_spelled(quick: Evaluate, sale: MakeRow) -> None:
    hostile = "<a href='javascript:x'>acme</a>"
    asked = (("sales", "2001"), ("refunds", "2002"), ("orders", "2003"))
    rows = [sale(f"{op} in {year}", year, tenant=hostile, operation=op) for op, year in asked]
    report = quick(rows, name="<b>rows</b>")
    assert report.cache is not None
    for figure in (
        plots.template_map(report.cache, tenant=hostile),
        plots.precision_curves(report),
    ):
        assert "<a href" not in said(figure)
        assert "<b>rows" not in said(figure)


def test_a_map_of_two_templates_is_refused(quick: Evaluate, sale: MakeRow) -> None:
    report = quick([sale("a", "1"), sale("b", "2")])
    assert report.cache is not None
    with pytest.raises(InvalidInput, match="a map needs three"):
        plots.template_map(report.cache, tenant="acme")


def test_the_threshold_explorer_shows_less_the_higher_the_threshold(sampled: Report) -> None:
    figure = plots.threshold_explorer(sampled)
    (slider,) = figure.layout.sliders
    served = [sum(sum(bars) for bars in step.args[0]["x"]) for step in slider.steps]
    assert served == sorted(served, reverse=True)
    start = slider.steps[slider.active].args[0]["x"]
    assert [list(bar.x) for bar in figure.data] == start


def test_the_threshold_explorer_keeps_hits_by_meaning_from_under_the_threshold(
    sampled: Report,
) -> None:
    near = next(one for one in sampled.hits if one.hit and one.hit.tier == "semantic")
    assert near.hit is not None
    lower = replace(near, found=replace(near.hit, score=0.7))
    exact = next(one for one in sampled.hits if one.hit and one.hit.tier == "template")
    (slider,) = plots.threshold_explorer(replace(sampled, lookups=(lower, exact))).layout.sliders
    gated = {step.label: sum(bars[1] for bars in step.args[0]["x"]) for step in slider.steps}
    assert (gated["0.69"], gated["0.7"], gated["0.95"]) == (2, 1, 1)


def test_neighbors_show_the_verdict_of_each_and_nothing_where_there_are_none(
    sampled: Report,
) -> None:
    assert sampled.cache is not None
    found = sampled.cache.lookup("Cancel everything in Birch", tenant="rooms")
    (bars,) = plots.neighbors(found).data
    assert len(bars.y) == len(found.trace.candidates)
    nothing = plots.neighbors(sampled.cache.lookup("Hello", tenant="nobody"))
    assert "Nothing was considered" in said(nothing)


def test_learned_words_are_shown_most_seen_first() -> None:
    evidence = Evidence()
    assert "Nothing was learned" in said(plots.learned_words(evidence))
    evidence.words.add("rare", same=True)
    evidence.words.add("often", same=False, weight=5)
    evidence.words.add("<moved>", same=False, weight=2)
    same, _ = plots.learned_words(evidence).data
    assert list(same.y) == ["often", "&lt;moved&gt;", "rare"]


def test_as_many_words_are_shown_as_wanted_and_one_at_least() -> None:
    evidence = Evidence()
    evidence.words.add("rare", same=True)
    evidence.words.add("often", same=False, weight=5)
    assert list(plots.learned_words(evidence, count=1).data[0].y) == ["often"]
    with pytest.raises(InvalidInput, match="count is -1; expected a whole number of 1 or more"):
        plots.learned_words(evidence, count=-1)


def test_learned_pairs_are_a_plot_of_their_own_and_name_both_words() -> None:
    evidence = Evidence()
    evidence.words.add("big", same=True)
    assert "no exchange of two words" in said(plots.learned_pairs(evidence))
    evidence.pairs.add("big large", same=True, weight=3)
    evidence.pairs.add("over under", same=False)
    same, other = plots.learned_pairs(evidence).data
    assert list(same.y) == ["big ↔ large", "over ↔ under"]
    assert (list(same.x), list(other.x)) == ([3, 0], [0, 1])
    assert "big" not in list(plots.learned_pairs(evidence, count=1).data[0].y)
