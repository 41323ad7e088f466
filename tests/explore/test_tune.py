import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from semcache import PlanCache
from semcache.canonical import dumps
from semcache.errors import InvalidInput, InvalidSettings
from semcache.explore.sample import sample_rows
from semcache.explore.tune import Recommendation, hits_needed, recommend
from semcache.testing import HashEmbedder

Recommend = Callable[..., Recommendation]


@pytest.fixture(scope="module")
def tuned() -> Recommend:
    return partial(recommend, embedder=HashEmbedder(), values=(0.98, 0.9))


def test_a_setting_is_recommended_if_its_bound_is_under_the_target(tuned: Recommend) -> None:
    found = tuned(sample_rows(400, noise=0), target=0.02)
    assert found.chosen is not None
    assert found.chosen.report.wrong == 0
    assert found.chosen.bound <= 0.02
    assert "with 95% confidence" in found.reason
    *_, recommended, where = str(found).splitlines()
    assert recommended == f"recommended: {found.reason}"
    assert f"SEMCACHE_THRESHOLD={found.chosen.value:g}" in where


def test_of_several_that_pass_the_one_with_most_right_hits_is_chosen(tuned: Recommend) -> None:
    found = tuned(sample_rows(400, noise=0), target=0.05)
    assert found.chosen is not None
    assert found.chosen.report.right == max(t.report.right for t in found.trials if t.passed)


def test_each_setting_more_on_the_same_rows_makes_the_bounds_wider(tuned: Recommend) -> None:
    rows = sample_rows(100, noise=0)
    (alone,), (first, _) = tuned(rows, values=(0.98,)).trials, tuned(rows).trials
    assert alone.report.hit_share == first.report.hit_share
    assert alone.bound < first.bound


def test_too_few_hits_recommend_nothing_and_say_how_many_it_takes(tuned: Recommend) -> None:
    found = tuned(sample_rows(60, noise=0), target=0.01)
    assert found.chosen is None
    assert found.needed == 368  # ln(0.025) / ln(0.99): two settings share the 5 %
    assert "it takes 368 without a wrong one" in found.reason


def test_a_planner_that_contradicts_itself_leaves_nothing_to_recommend(tuned: Recommend) -> None:
    found = tuned(sample_rows(600, noise=0.1), target=0.01)
    assert found.chosen is None
    assert found.reason.startswith("none: ")


def test_max_wrong_is_tuned_as_well(tuned: Recommend) -> None:
    found = tuned(sample_rows(200, noise=0), target=0.05, knob="max_wrong", values=(0.01,))
    assert found.knob == "max_wrong"
    assert found.trials[0].report.setup["max_wrong"] == 0.01
    doc = json.loads(dumps(found.to_dict()))
    assert doc["trials"][0]["wrong"] == found.trials[0].report.wrong


@pytest.mark.parametrize(
    "options",
    [
        {"target": 0},
        {"target": "1 %"},
        {"target": None},
        {"target": float("nan")},
        {"confidence": 1},
        {"confidence": True},
        {"knob": "luck"},
        {"knob": ["threshold"]},
        {"values": ()},
        {"values": 0.9},
        {"values": "0.9"},
        {"values": (None,)},
        {"values": ("0.9",)},
        {"knob": "max_wrong", "values": (0,)},
    ],
)
def test_settings_out_of_range_are_refused(tuned: Recommend, options: Any) -> None:
    with pytest.raises(InvalidSettings):
        tuned(sample_rows(5), **options)


def test_a_setting_out_of_range_is_told_before_the_first_replay(tuned: Recommend) -> None:
    def opened(**_: Any) -> PlanCache:
        raise AssertionError("nothing may be replayed")

    with pytest.raises(InvalidSettings, match="threshold is 2; expected -1 to 1"):
        tuned(sample_rows(5), values=(0.9, 2), open_cache=opened)


def test_a_setting_named_twice_is_tried_once(tuned: Recommend) -> None:
    found = tuned(sample_rows(20), values=(0.9, 0.9))
    assert len(found.trials) == 1
    assert found.needed == hits_needed(0.01)


def test_hits_needed_asks_for_shares_and_a_count() -> None:
    assert hits_needed(0.01) == 299
    for target, confidence in ((0, 0.95), (1, 0.95), (float("nan"), 0.95), (0.01, 1)):
        with pytest.raises(InvalidSettings, match="expected a share between 0 and 1"):
            hits_needed(target, confidence=confidence)
    with pytest.raises(InvalidInput, match="settings is 0"):
        hits_needed(0.01, settings=0)
