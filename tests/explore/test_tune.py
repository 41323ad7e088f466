import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from semcache.canonical import dumps
from semcache.errors import InvalidSettings
from semcache.explore.sample import sample_rows
from semcache.explore.tune import Recommendation, recommend
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
    assert str(found).endswith(found.reason)


def test_of_several_that_pass_the_one_with_most_right_hits_is_chosen(tuned: Recommend) -> None:
    found = tuned(sample_rows(400, noise=0), target=0.05)
    assert found.chosen is not None
    assert found.chosen.report.right == max(t.report.right for t in found.trials if t.passed)


def test_too_few_hits_recommend_nothing_and_say_how_many_it_takes(tuned: Recommend) -> None:
    found = tuned(sample_rows(60, noise=0), target=0.01)
    assert found.chosen is None
    assert found.needed == 368  # ln(0.025) / ln(0.99): two settings share the 5 %
    assert "it takes 368 without a wrong one" in found.reason


def test_a_planner_that_contradicts_itself_leaves_nothing_to_recommend(tuned: Recommend) -> None:
    found = tuned(sample_rows(600, noise=0.1), target=0.01)
    assert found.chosen is None
    assert "none keeps wrong hits under 1.00%" in found.reason


def test_max_wrong_is_tuned_as_well(tuned: Recommend) -> None:
    found = tuned(sample_rows(200, noise=0), target=0.05, knob="max_wrong", values=(0.01,))
    assert found.knob == "max_wrong"
    assert found.trials[0].report.setup["max_wrong"] == 0.01
    doc = json.loads(dumps(found.to_dict()))
    assert doc["trials"][0]["wrong"] == found.trials[0].report.wrong


@pytest.mark.parametrize(
    "options", [{"target": 0}, {"confidence": 1}, {"knob": "luck"}, {"values": ()}]
)
def test_settings_out_of_range_are_refused(tuned: Recommend, options: Any) -> None:
    with pytest.raises(InvalidSettings):
        tuned(sample_rows(5), **options)
