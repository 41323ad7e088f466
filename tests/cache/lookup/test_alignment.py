"""Values that nobody knew, read where a stored template has its slots."""

import pytest

from semcache import Hit, PlanCache
from tests.calling import calling, given_input

STAFF = ("Nina", "Otis", "Petra")


@pytest.fixture
def badges(cache: PlanCache) -> PlanCache:
    """A cache that blocked a few badges."""
    for name in STAFF:
        for text in ("block the badge of {}", "list the doors that {} opened"):
            plan = calling(f"badge.{text.split()[0]}", holder=name)
            cache.store(text.format(name), plan, params={"holder": name})
    return cache


def test_a_value_that_looks_like_those_before_is_an_inferred_hit(badges: PlanCache) -> None:
    found = badges.lookup("block the badge of Quentin")
    assert given_input(found) == {"holder": "Quentin"}
    assert isinstance(found, Hit)
    assert (found.tier, found.trace.template) == ("semantic", "block the badge of quentin")
    assert "hit by alignment" in found.explain()


@pytest.mark.parametrize(
    "rest",
    [
        "Quentin unblock Rosa",
        "Quentin and North Haverbrook",
        "everybody but Quentin",
        "last month",
        "Quentin bar Rosa",
        "whoever asks",
        "Quentin permanently",
        "Quentin thrice",
        "Quentin; skip Rosa",
        "Quentin Rosa",
        "himself",
        "half the staff",
        "visitors",
        "QUENTIN",
    ],
)
def test_words_that_look_like_no_value_before_are_no_value(badges: PlanCache, rest: str) -> None:
    assert not badges.lookup(f"block the badge of {rest}")


def test_capitals_of_a_headline_make_no_names(badges: PlanCache) -> None:
    assert not badges.lookup("Block The Badge Of Visitors")


def test_one_lower_case_word_is_a_value_once_several_were(cache: PlanCache) -> None:
    for i, plant in enumerate(["oak", "elm", "fir", "yew", "ash"]):
        assert not cache.lookup("water the old pine now")
        text = ("water the old {} now", "water our old {} now please")[i % 2].format(plant)
        cache.store(text, calling("water", plant=plant), params={"plant": plant})
    assert given_input(cache.lookup("water the old pine now")) == {"plant": "pine"}
    assert not cache.lookup("water the old garden bench now")


def test_what_feedback_strikes_is_the_reading_and_not_the_plan(badges: PlanCache) -> None:
    badges.feedback(badges.lookup("block the badge of Quentin"), right=False)
    assert not badges.lookup("block the badge of Quentin")
    assert given_input(badges.lookup("block the badge of Nina")) == {"holder": "Nina"}
    assert given_input(badges.lookup("block the badge of Rosa")) == {"holder": "Rosa"}
