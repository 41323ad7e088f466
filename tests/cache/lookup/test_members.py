"""Members of a group: entries with one plan but for values, of which some cannot be bound."""

import pytest

from semcache import Miss, PlanCache
from semcache.canonical import JsonObject, dumps
from semcache.models.minilm import MiniLMEmbedder
from semcache.testing import HashEmbedder
from tests.calling import calling, hit, missed

YEARS = range(1990, 1993)
COLUMNS = [f"{of}_{what}" for of in ("unit", "net", "list", "sale") for what in "abcdefghij"]
"""More than are compared with one prompt: plans that are made for one each crowd one another."""


def plan(limit: int) -> JsonObject:
    return calling("trucks", limit=limit)


def teach(cache: PlanCache, prompt: str, year: int) -> None:
    """Store a plan that says nothing of the year, and so serves that year alone."""
    assert cache.store(prompt, plan(5), params={"limit": 5, "year": year})


@pytest.fixture(params=[None, 0.02])
def cache(request: pytest.FixtureRequest) -> PlanCache:
    cache = PlanCache.open(embedder=HashEmbedder(), max_wrong=request.param)
    teach(cache, "show me the 5 cheap trucks in 2023", 2023)
    for year in YEARS:
        prompt = f"please show 5 cheap trucks in {year}"
        assert isinstance(cache.lookup(prompt), Miss)
        teach(cache, prompt, year)
    return cache


def test_where_the_nearest_cannot_be_bound_the_next_of_the_same_plan_is_served(
    cache: PlanCache,
) -> None:
    found = hit(cache.lookup("show 7 cheap trucks in 2023"))
    assert found.params == {"limit": 7, "year": 2023}
    assert [c.verdicts[-1].gate for c in found.trace.candidates] == ["binding"]


def test_a_value_that_no_member_serves_is_a_miss_that_says_what_was_tried(cache: PlanCache) -> None:
    found = missed(cache.lookup("show 7 cheap trucks in 2030"))
    assert found.reason == "pinned"
    assert 1 < len(found.trace.candidates) <= len(YEARS) + 1
    assert "the plan was made for '2023', which is not said here" in found.explain()


def test_what_is_said_of_a_hit_by_a_further_member_is_learned(cache: PlanCache) -> None:
    found = hit(cache.lookup("show 7 cheap trucks in 2023"))
    cache.feedback(found, right=False)
    assert sum(cache.evidence().record.other.values()) == 1
    assert isinstance(cache.lookup("show 7 cheap trucks in 2023"), Miss)


@pytest.mark.parametrize("given", [False, True])
def test_plans_made_for_other_words_do_not_crowd_out_the_one_made_for_these(
    minilm: MiniLMEmbedder, *, given: bool
) -> None:
    cache = PlanCache.open(embedder=minilm, max_wrong=0.02)
    chart = "distribution of {} in a bar chart" + " since {}" * given
    for column in COLUMNS:
        since = {"since": 2020} if given else {}
        drawn = calling("draw", what=f"encoding x {column} mark bar", **since)
        assert cache.store(chart.format(column, 2020), drawn, params=since or None)
    for column in COLUMNS[::7]:
        since = {"since": 2023} if given else {}
        found = hit(cache.lookup(f"show the {chart.format(column, 2023)}", params=since or None))
        assert column in dumps(found.plan.to_dict())
        assert found.params.get("since") == since.get("since")
