from datetime import UTC, datetime

import pytest

from semcache import Found, PlanCache
from semcache.canonical import JsonObject
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, given_input, missed

PROMPT = "sales in 2023"
DAY_S = 24 * 3600.0


@pytest.fixture
def filled(clock: FakeClock) -> PlanCache:
    cache = PlanCache.open(embedder=HashEmbedder(), clock=clock, ttl_s=DAY_S)
    cache.store("sales in 2024", calling("sales", year=2024), params={"year": 2024}, tags=("old",))
    given_input(cache.lookup(PROMPT))
    return cache


def told(found: Found) -> JsonObject:
    answer = found.to_dict()
    assert isinstance(answer["trace"], dict)
    return {**answer, "trace": {**answer["trace"], "milliseconds": None}}


def test_a_prompt_that_is_asked_again_gets_the_same_answer(filled: PlanCache) -> None:
    first, again = filled.lookup(PROMPT), filled.lookup(PROMPT)
    assert told(first) == told(again)
    assert filled.stats().hits == {"template": 3}


def test_values_of_an_answer_that_were_changed_are_not_those_of_the_next(filled: PlanCache) -> None:
    plan = filled.lookup(PROMPT).to_dict()["plan"]
    assert isinstance(plan, dict)
    plan.clear()
    assert given_input(filled.lookup(PROMPT)) == {"year": 2023}


def test_what_was_removed_is_not_served_to_who_asks_again(filled: PlanCache) -> None:
    filled.invalidate(tag="old")
    missed(filled.lookup(PROMPT))


def test_what_has_expired_is_not_served_to_who_asks_again(
    filled: PlanCache, clock: FakeClock
) -> None:
    clock.advance(DAY_S + 1)
    missed(filled.lookup(PROMPT))


def test_a_plan_that_another_year_changed_since_is_not_served_to_who_asks_again(
    filled: PlanCache,
) -> None:
    filled.store("sales in 2022", calling("revenue", year=2022), params={"year": 2022})
    missed(filled.lookup(PROMPT))


def test_words_for_a_day_are_worked_out_anew_on_the_next_day() -> None:
    clock = FakeClock(datetime(2024, 5, 2, 12, tzinfo=UTC).timestamp())
    with PlanCache.open(embedder=HashEmbedder(), clock=clock) as cache:
        given = {"since": "2024-05-01"}
        cache.store("sales since yesterday", calling("sales", **given), params=given)
        assert given_input(cache.lookup("sales since yesterday")) == given
        clock.advance(DAY_S)
        assert given_input(cache.lookup("sales since yesterday")) == {"since": "2024-05-02"}
