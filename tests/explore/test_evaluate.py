import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from semcache import Hit, PlanCache
from semcache.errors import InvalidInput, InvalidSettings, InvalidStream
from semcache.explore.evaluate import evaluate
from semcache.explore.report import Report, pooled
from semcache.explore.score import Share
from semcache.explore.streams import Row, rows_from
from semcache.testing import HashEmbedder

SMALL = Path(__file__).parents[1] / "data" / "small.jsonl"
Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


def test_what_was_stored_before_can_be_served_and_is_counted(
    quick: Evaluate, sale: MakeRow
) -> None:
    report = quick([sale("sales in 2023", "2023"), sale("sales in 2024", "2024")])
    assert (report.rows, report.ceiling, report.right, report.wrong) == (2, 1, 1, 0)
    assert [looked.outcome for looked in report.lookups] == ["missed", "right"]
    assert (report.hit_share.value, report.right_share.value) == (0.5, 1.0)


def test_another_plan_wrong_values_and_a_row_that_must_miss_are_told_apart_with_their_reasons(
    quick: Evaluate, sale: MakeRow
) -> None:
    year = sale("sales in 2024", "2024")
    rows = [
        sale("sales in 2023", "2023"),
        sale("sales in 2024", "2024", operation="returns"),
        Row("3", "acme", "sales in 2022", year.params, None),
        # The prompt says 2021 and its plan 1921: bound as said, the plan is right, its value not.
        Row("4", "acme", "sales in 2021", sale("", "1921").params, sale("", "1921").plan),
    ]
    report = quick(rows)
    assert [looked.fault for looked in report.lookups] == ["", "plan", "must miss", "values"]
    assert report.faults() == {"plan": 1, "must miss": 1, "values": 1}
    plan, missing, values = report.mistakes()
    assert plan.reason.endswith("two plans for one question")
    assert "nothing contradicts the plan" in missing.reason
    assert "a value of the prompt was read otherwise" in values.reason
    assert re.fullmatch(r"template 1\.000, risk \d+\.\d\d%", plan.sure)
    assert (plan.to_dict()["reason"], plan.to_dict()["risk"]) == (plan.reason, plan.hit.risk)
    assert f"    since   {plan.reason}" in str(report)


def test_the_packaged_embedder_and_a_path_are_all_it_takes(
    minilm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.wiring.models.MiniLMEmbedder", lambda *_, **__: minilm)
    text, given = evaluate(SMALL), evaluate(str(SMALL), given=True)
    assert text.name == "small"
    assert (text.wrong, given.wrong) == (0, 0)
    assert 0.8 < text.right_share.value <= given.right_share.value
    assert text.setup["embedder"] == minilm.fingerprint


def test_a_log_without_parameters_is_replayed_by_what_the_prompts_say(quick: Evaluate) -> None:
    rows = rows_from(
        {"prompt": f"sales in {year}", "plan": {"year": year}} for year in (2022, 2023, 2024)
    )
    report = quick(rows)
    assert (report.right, report.wrong, report.ceiling) == (2, 0, 2)


def test_prompts_that_no_cache_would_take_are_misses_with_a_reason(
    quick: Evaluate, sale: MakeRow
) -> None:
    report = quick([sale(" ", "2024"), sale("sales in 2024", "2024")])
    assert [looked.reason for looked in report.lookups] == ["InvalidPrompt", "empty"]
    assert [row for row, _ in report.unstored] == [" "]


def test_plans_that_cannot_be_kept_are_told_and_do_not_stop_the_replay(quick: Evaluate) -> None:
    plan = {"call": {"input": {"year": "{{params.year}}"}}}
    report = quick(rows_from([{"text": "sales", "plan": plan}, {"text": "sales", "plan": plan}]))
    assert len(report.unstored) == 2
    assert "2 plans not kept" in str(report)


def test_a_plan_that_no_format_allows_stops_the_replay_and_names_the_row(quick: Evaluate) -> None:
    bad = {"start_node": {"route": "nowhere"}, "end": {"completed": True}}
    with pytest.raises(InvalidStream, match=r"row '1' of 'default'"):
        quick(rows_from([{"text": "sales", "plan": bad}]))


def test_a_cache_that_is_not_cold_is_refused(tmp_path: Path, sale: MakeRow) -> None:
    def warm(**options: Any) -> PlanCache:
        cache = PlanCache.open(**options)
        cache.store("sales in 2023", {"x": 1}, tenant="acme")
        return cache

    with pytest.raises(InvalidInput, match="entries of 'acme'; a replay needs a cold one"):
        evaluate([sale("a", "1")], embedder=HashEmbedder(), open_cache=warm)


def test_a_cache_of_the_callers_own_making_is_replayed(tmp_path: Path, sale: MakeRow) -> None:
    opened = partial(PlanCache.open, tmp_path / "cache")
    rows = [sale("sales in 2023", "2023"), sale("sales in 2024", "2024")]
    report = evaluate(rows, embedder=HashEmbedder(), open_cache=opened)
    assert report.cache is not None
    assert isinstance(report.cache.lookup("sales in 2020", tenant="acme"), Hit)
    report.cache.close()


def test_no_rows_and_settings_out_of_range_are_refused(quick: Evaluate, sale: MakeRow) -> None:
    with pytest.raises(InvalidInput, match="no rows"):
        quick([])
    with pytest.raises(InvalidSettings, match="threshold"):
        quick([sale("a", "1")], threshold=3)
    assert quick([sale("a", "1"), sale("b", "2")], limit=1).rows == 1


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_limit_that_is_no_count_is_refused_for_rows_and_for_files(
    quick: Evaluate, sale: MakeRow, limit: Any
) -> None:
    for rows in (SMALL, [sale("a", "1"), sale("b", "2")]):
        with pytest.raises(
            InvalidInput, match=r"limit is .*; expected a whole number of 1 or more"
        ):
            quick(rows, limit=limit)


@pytest.mark.parametrize("rows", [None, 5, b"stream", {"text": "a"}, [{"text": "a"}], ["a"]])
def test_what_is_neither_a_path_nor_rows_is_refused_with_the_way_to_make_them(
    quick: Evaluate, rows: Any
) -> None:
    with pytest.raises(InvalidInput, match="`rows_from` makes rows of records"):
        quick(rows)


def test_rows_asked_before_word_for_word_are_told(quick: Evaluate, sale: MakeRow) -> None:
    rows = [sale("sales in 2023", "2023"), sale("sales in 2024", "2024")]
    once, twice = quick(rows), quick([*rows, *rows])
    assert (once.repeated, twice.repeated) == (0, 2)
    assert "asked before" not in str(once)
    assert "asked before       50.0% (2 of 4;" in str(twice)
    assert twice.to_dict()["repeated"] == Share(2, 4).to_dict()
    elsewhere = [sale("sales in 2023", "2023", tenant="initech"), sale("sales in 2023", "2022")]
    assert quick([*rows, *elsewhere]).repeated == 0


def test_a_mistake_by_meaning_names_both_templates_and_its_risk(minilm: Any) -> None:
    asked, known = "kindly list the trucks in the depot", "list the trucks in the depot"
    plans = ({"operation": "trucks"}, {"operation": "vans"})
    rows = rows_from({"text": t, "plan": p} for t, p in zip((known, asked), plans, strict=True))
    (mistake,) = evaluate(rows, embedder=minilm).mistakes()
    assert mistake.reason == f"{asked!r} was taken for {known!r}"
    assert mistake.sure.startswith("semantic ")
    assert re.search(r"risk \d+\.\d\d%", mistake.sure)


def test_only_reports_of_one_kind_and_of_other_rows_are_pooled(
    quick: Evaluate, sale: MakeRow
) -> None:
    rows, other = [sale("a", "1")], [sale("b", "2")]
    one = quick(rows, name="one")
    for reports, why in (
        ([], "no reports"),
        ([one, quick(other, given=True)], "given parameters"),
        ([one, quick(rows, name="two")], "'one' and 'two' have the same rows"),
        (
            [one, evaluate(other, embedder=HashEmbedder(32), name="two")],
            "'one' .*'hash:64' and 'two' with 'hash:32'",
        ),
    ):
        with pytest.raises(InvalidInput, match=why):
            pooled(reports)
    both = pooled([one, quick(other, threshold=0.9)])
    assert (both.rows, "threshold" in both.setup, "embedder" in both.setup) == (2, False, True)
