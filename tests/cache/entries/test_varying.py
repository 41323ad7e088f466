"""Constants that nobody said but that follow from a value are never served with another value."""

from functools import partial

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.canonical import Json
from tests.calling import calling

STATES = {"Reno": "NV", "Boise": "ID", "Fresno": "CA", "Oakland": "CA"}


plan = partial(calling, "hotels")


def learn(cache: PlanCache, city: str, state: str | None = None, stars: int = 3) -> None:
    params = [
        Parameter("city", city, mention=city),
        Parameter("stars", stars, mention=str(stars)),
    ]
    made = plan(city=city, state=state or STATES[city], stars=stars)
    cache.store(f"hotels in {city} with {stars} stars", made, params=params)


def served(cache: PlanCache, city: str, stars: int, *, given: bool = False) -> Json:
    params = {"city": city, "stars": stars} if given else None
    found = cache.lookup(f"hotels in {city} with {stars} stars", params=params)
    if not isinstance(found, Hit):
        return None
    call = found.plan.to_dict()["call"]
    assert isinstance(call, dict)
    return call["input"]


@pytest.mark.parametrize("given", [False, True])
def test_a_constant_that_follows_from_a_value_is_served_with_that_value_alone(
    cache: PlanCache, *, given: bool
) -> None:
    for city in ("Reno", "Boise", "Fresno", "Oakland"):
        learn(cache, city)
    for city, state in STATES.items():
        wanted = {"city": city, "state": state, "stars": 5}
        assert served(cache, city, 5, given=given) == wanted
    assert served(cache, "Tucson", 3, given=given) is None


def test_a_value_that_did_not_change_stays_free(cache: PlanCache) -> None:
    learn(cache, "Reno")
    learn(cache, "Boise")
    assert served(cache, "Reno", 1) == {"city": "Reno", "state": "NV", "stars": 1}


def test_plans_that_differ_in_their_values_alone_serve_every_value(cache: PlanCache) -> None:
    learn(cache, "Fresno")
    learn(cache, "Oakland")
    wanted = {"city": "Oakland", "state": "CA", "stars": 4}
    assert served(cache, "Oakland", 4) == wanted
    assert len(cache.entries()) == 1


def test_another_plan_for_the_same_values_takes_the_place_of_the_first(cache: PlanCache) -> None:
    learn(cache, "Reno", state="XX")
    learn(cache, "Reno")
    assert served(cache, "Reno", 3) == {"city": "Reno", "state": "NV", "stars": 3}
    assert len(cache.entries()) == 1


def test_one_tenant_learns_nothing_of_it_from_another(cache: PlanCache) -> None:
    learn(cache, "Reno")
    learn(cache, "Boise")
    params = [Parameter("city", "Reno", mention="Reno")]
    cache.store("hotels in Reno", plan(city="Reno", state="NV"), params=params, tenant="other")
    assert cache.lookup("hotels in Reno", tenant="other")
    assert len(cache.entries(tenant="other")[0].plan.pinned) == 0
