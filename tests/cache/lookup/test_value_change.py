"""Plans that depend on which name is said, though the words are the same."""

import pytest

from semcache import Hit, PlanCache
from tests.calling import calling, given_input, missed


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
    found = cache.lookup(query.format(new))
    assert isinstance(found, Hit), found.explain()
    assert found.risk < 0.0125


@pytest.mark.parametrize("max_wrong", [None, 0.01])
def test_every_hit_of_every_tier_has_a_risk(max_wrong: float | None) -> None:
    with PlanCache.open(max_wrong=max_wrong) as cache:
        cache.store("sales in 2024 by category", calling("sales", year=2024), params={"year": 2024})
        for text in ("sales in 2024 by category", "show me sales in 2021 by category, please"):
            found = cache.lookup(text)
            assert isinstance(found, Hit)
            assert 0 < found.risk < 1
