"""Plans that depend on which name is said, though the words are the same."""

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.canonical import Json
from tests.calling import calling, given_input, hit, missed


def keep(cache: PlanCache, thing: str, domain: str = "valve") -> None:
    plan = calling("state", thing=thing, domain=domain)
    cache.store(f"is the {thing} shut", plan, params={"thing": thing})


@pytest.mark.parametrize("given", [False, True])
def test_a_name_after_one_example_behind_words_that_tell_nothing_is_planned(
    cache: PlanCache, *, given: bool
) -> None:
    keep(cache, "Inlet")
    params = {"thing": "Kiosk"} if given else None
    found = missed(cache.lookup("is the Kiosk shut", params=params))
    assert found.reason in {"risk", "slots"}
    assert given_input(cache.lookup("is the Inlet shut")) == {"thing": "Inlet", "domain": "valve"}


def test_a_name_is_served_once_the_tenants_plans_showed_that_it_does_not_matter(
    cache: PlanCache,
) -> None:
    for thing in ("Inlet", "Outlet", "Bypass", "Drain"):
        cache.lookup(f"is the {thing} shut", params={"thing": thing})
        keep(cache, thing)
    found = cache.lookup("is the Overflow shut", params={"thing": "Overflow"})
    assert given_input(found) == {"thing": "Overflow", "domain": "valve"}
    assert isinstance(found, Hit)
    assert 0 < found.risk < 0.03


def test_a_name_that_changed_the_plan_once_makes_other_names_riskier(cache: PlanCache) -> None:
    for thing, domain in (("Inlet", "valve"), ("Kiosk", "door"), ("Bypass", "valve")):
        cache.lookup(f"is the {thing} shut", params={"thing": thing})
        keep(cache, thing, domain)
    assert not cache.lookup("is the Overflow shut", params={"thing": "Overflow"})


@pytest.mark.parametrize(
    ("stored", "query", "value", "new"),
    [
        ("rooms with {} beds", "rooms with {} beds", 2, 3),
        ("rooms from {}", "rooms from {}", "2026-03-01", "2026-04-02"),
        ("rooms called '{}'", "rooms called '{}'", "Opal", "Onyx"),
        ("rooms of {}", "rooms of {}", "HX-201", "HX-305"),
    ],
)
def test_numbers_dates_quotes_and_codes_are_sure_after_one_example(
    cache: PlanCache, stored: str, query: str, value: object, new: object
) -> None:
    cache.store(stored.format(value), calling("rooms", x=value), params={"x": value})  # type: ignore[arg-type]  # JSON scalars
    found = hit(cache.lookup(query.format(new)))
    assert found.risk < 0.02


@pytest.mark.parametrize("max_wrong", [None, 0.01])
def test_every_hit_of_every_tier_has_a_risk(max_wrong: float | None) -> None:
    with PlanCache.open(max_wrong=max_wrong) as cache:
        cache.store("sales in 2024 by category", calling("sales", year=2024), params={"year": 2024})
        for text in ("sales in 2024 by category", "show me sales in 2021 by category, please"):
            found = hit(cache.lookup(text))
            assert 0 < found.risk < 1


def learn_games(cache: PlanCache, text: str, season: int | None) -> None:
    params = [] if season is None else [Parameter("season", season)]
    cache.lookup(text)
    cache.store(text, calling("games", season=season), params=params)


def test_a_value_that_nobody_said_is_planned_again_until_plans_agree_on_it(
    cache: PlanCache,
) -> None:
    learn_games(cache, "how many games did the home team play", 2004)
    assert missed(cache.lookup("how many games did the home team play")).reason == "risk"
    for asked in ("played games", "games so far", "count the games", "games of the team", "games?"):
        learn_games(cache, asked, 2004)
    found = cache.lookup("how many games did the home team play")
    assert given_input(found) == {"season": 2004}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("find a unisex salon", "is_unisex", True),
        ("articles of two authors", "count", "( number 2 )"),
        ("the first weight measured", "label", "daily weight"),
    ],
)
def test_a_value_that_words_of_the_prompt_hint_at_is_no_doubt(
    cache: PlanCache, text: str, name: str, value: Json
) -> None:
    cache.store(text, calling("find", **{name: value}), params=[Parameter(name, value)])
    assert given_input(cache.lookup(text)) == {name: value}


def test_a_number_that_the_prompt_does_not_say_is_a_doubt(cache: PlanCache) -> None:
    params = [Parameter("count", "( number 3 )")]
    cache.store("articles of two authors", calling("find", count="( number 3 )"), params=params)
    assert missed(cache.lookup("articles of two authors")).reason == "risk"


def test_a_value_that_nobody_said_is_no_doubt_where_the_caller_gives_it(cache: PlanCache) -> None:
    cache.store("count the games", calling("games", season=2004), params={"season": 2004})
    found = cache.lookup("count the games", params={"season": 2011})
    assert given_input(found) == {"season": 2011}


def test_a_tenant_whose_plans_contradict_one_another_is_asked_again_for_the_same_words(
    cache: PlanCache,
) -> None:
    for asked in ("games of the team", "wins of the team", "losses of the team"):
        for text, by in ((asked, "season"), (f"list {asked}", "year")):
            cache.store(text, calling("count", by=by, of=asked))
    cache.store("draws of the team", calling("count", by="year", of="draws"))
    assert missed(cache.lookup("draws of the team")).reason == "risk"
    other = cache.lookup("draws of the team", tenant="other")
    assert missed(other).reason != "risk"


def test_words_that_were_planned_alike_are_served_in_a_tenant_that_contradicts_itself(
    cache: PlanCache,
) -> None:
    for asked in ("games of the team", "wins of the team"):
        for text, by in ((asked, "season"), (f"list {asked}", "year")):
            cache.store(text, calling("count", by=by, of=asked))
    for _ in range(12):
        cache.lookup("draws of the team")
        cache.store("draws of the team", calling("count", by="year", of="draws"))
    assert given_input(cache.lookup("draws of the team")) == {"by": "year", "of": "draws"}
