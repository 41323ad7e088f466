"""Callers that give every value by name: no word need be understood for a value."""

from functools import partial
from pathlib import Path

import pytest

from semcache import Miss, Parameter, PlanCache
from semcache.canonical import Json
from semcache.testing import FakeClock
from tests.calling import calling, given_input

plan = partial(calling, "meetings")


def test_a_value_said_in_other_words_is_served_as_it_was_given(cache: PlanCache) -> None:
    params = [Parameter("by", "1 hour", mention="1 hour")]
    cache.store("move my meeting by 1 hour", plan(by="1 hour"), params=params)
    found = cache.lookup("Move my meeting by 1.5 hours", params={"by": "1.5 hour"})
    assert given_input(found) == {"by": "1.5 hour"}
    assert found.trace.template == "move my meeting by <number> hours"


@pytest.mark.parametrize("said", ["March 2nd", "2nd of March", "tomorrow", "2019-03-02"])
def test_a_date_said_in_any_way_is_served_as_it_was_given_on_any_day(
    cache: PlanCache, clock: FakeClock, said: str
) -> None:
    params = [Parameter("day", "2019-03-01", mention="March 1st")]
    cache.store("what is on my calendar on March 1st", plan(day="2019-03-01"), params=params)
    clock.advance(3 * 24 * 3600)
    text = f"what is on my calendar on {said}"
    assert given_input(cache.lookup(text, params={"day": "2019-03-02"})) == {"day": "2019-03-02"}
    assert isinstance(cache.lookup("what is on my calendar on March 1st"), Miss)


def test_a_frozen_date_that_nobody_gave_keeps_the_plan_from_others(cache: PlanCache) -> None:
    frozen = plan(days=30, start="2024-02-10")
    cache.store("sales of the last 30 days", frozen, params=[Parameter("days", 30, mention="30")])
    assert isinstance(cache.lookup("sales of the last 60 days", params={"days": 60}), Miss)


def test_values_that_follow_from_others_are_no_matter_once_all_are_given(cache: PlanCache) -> None:
    params = [Parameter("age1", 20, mention="20"), Parameter("age2", 29)]
    cache.store("diagnoses of patients aged 20s", plan(age1=20, age2=29), params=params)
    text = "diagnoses of patients aged 40s"
    assert isinstance(cache.lookup(text), Miss)
    found = cache.lookup(text, params={"age1": 40, "age2": 49})
    assert given_input(found) == {"age1": 40, "age2": 49}


def test_a_word_that_steers_a_plan_may_be_a_value(cache: PlanCache) -> None:
    params = [Parameter("way", "more", mention="more"), Parameter("n", 5, mention="5")]
    cache.store("mail Kim when daily visits are more than 5", plan(way="more", n=5), params=params)
    found = cache.lookup(
        "mail Kim when daily visits are less than 7", params={"way": "less", "n": 7}
    )
    assert given_input(found) == {"way": "less", "n": 7}


def test_a_number_that_nobody_gave_must_be_what_it_was(cache: PlanCache) -> None:
    params = [Parameter("city", "Reno", mention="Reno")]
    cache.store("3 month survival in Reno", plan(city="Reno"), params=params)
    assert cache.lookup("3 month survival in Lodi", params={"city": "Lodi"})
    assert not cache.lookup("6 month survival in Lodi", params={"city": "Lodi"})
    assert not cache.lookup("6 week or 3 month survival in Lodi", params={"city": "Lodi"})


def test_a_number_that_nobody_gave_but_the_plan_takes_is_read(cache: PlanCache) -> None:
    params = [Parameter("city", "Reno", mention="Reno")]
    cache.store("top 3 sales of books in Reno", plan(city="Reno", limit=3), params=params)
    found = cache.lookup("top 7 sales of books in Lodi", params={"city": "Lodi"})
    assert given_input(found) == {"city": "Lodi", "limit": 7}


def test_quoted_words_may_repeat_given_values_and_nothing_else(cache: PlanCache) -> None:
    params = [Parameter("metric", "visits", mention="visits"), Parameter("n", 5, mention="5")]
    text = "if visits of the site fell to {1} mail 'I saw that {0} fell to {1}'"
    stored = text.replace("if visits", "if {0}").format("visits", 5)
    cache.store(stored, plan(metric="visits", n=5), params=params)
    ask = text.replace("if visits", "if {0}")
    new = {"metric": "downloads", "n": 9}
    assert cache.lookup(ask.format("downloads", 9), params=new)
    assert not cache.lookup(ask.format("downloads", 9).replace("saw", "hope"), params=new)


def test_roles_are_told_by_names_whatever_the_order(cache: PlanCache) -> None:
    params = [Parameter("to", "Lena", mention="Lena"), Parameter("of", "Parker", mention="Parker")]
    cache.store(
        "move the lead Parker to the team of Lena", plan(to="Lena", of="Parker"), params=params
    )
    found = cache.lookup(
        "move the lead Amir to the team of Yuki", params={"of": "Amir", "to": "Yuki"}
    )
    assert given_input(found) == {"to": "Yuki", "of": "Amir"}
    assert not cache.lookup(
        "move the lead Amir to the team of Yuki", params={"of": "Yuki", "to": "Amir"}
    )


def test_what_was_stored_before_a_restart_is_served_by_name_after_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    def served() -> Json:
        with PlanCache.open(tmp_path, clock=clock) as cache:
            if not cache.stats().entries:
                params = [Parameter("by", "1 hour", mention="1 hour")]
                cache.store("move it by 1 hour", plan(by="1 hour"), params=params)
            return given_input(cache.lookup("move it by 2 hours", params={"by": "2 hour"}))

    assert served() == served() == {"by": "2 hour"}
