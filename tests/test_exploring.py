"""Some hits are planned all the same, so that somebody knows how often hits are wrong."""

from collections.abc import Callable

import pytest

from semcache import Catalog, Operation, Parameter, SemCache, Settings
from semcache.canonical import Json, JsonObject
from semcache.errors import ModelUnavailable, OperationRefused
from semcache.plans.codec import decode
from semcache.ports import Planned, PlanRequest
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock
from tests.caching import cache_over, semcache_over
from tests.calling import calling

STORED, ASKED = "sales by state", "please show me the sales by state"


def plan(what: Json) -> JsonObject:
    return calling("report", what=what)


class Planner:
    """Makes the plan that a test wants, or fails."""

    def __init__(self) -> None:
        self.what: Json = "states"
        self.params: tuple[Parameter, ...] = ()
        self.asked: list[str] = []
        self.error: Exception | None = None

    def plan(self, request: PlanRequest) -> Planned:
        self.asked.append(request.prompt)
        if self.error is not None:
            raise self.error
        return Planned(decode(plan(self.what)), self.params, "scripted")


def opened(planner: Planner, chance: Callable[[], float], **more: float) -> SemCache:
    store, clock = MemoryStore(), FakeClock()
    schema: JsonObject = {"type": "object", "properties": {"what": {"type": "string"}}}
    catalog = Catalog([Operation("report", "Reports.", schema, effect="read", call=lambda _: 1)])
    settings = Settings(**{"explore": 0.25, **more})  # type: ignore[arg-type]  # floats all
    cache = cache_over(store, settings, catalog=catalog, clock=clock)
    return semcache_over(store, cache, planner, clock=clock, chance=chance)


def test_a_share_of_semantic_hits_is_planned_all_the_same_and_counted() -> None:
    planner = Planner()
    chances = iter([0.9, 0.2, 0.1])
    semcache = opened(planner, lambda: next(chances))
    semcache.run(STORED)
    assert not semcache.run(ASKED).planned
    assert semcache.run(ASKED).planned
    planner.what = "cities"
    semcache.run("kindly show me the sales by state")
    stats = semcache.cache.stats()
    assert (stats.explored, stats.explored_wrong) == (2, 1)
    assert len(planner.asked) == 3


def test_hits_of_equal_words_are_explored_like_others() -> None:
    planner = Planner()
    chances = iter([0.9, 0.0])
    semcache = opened(planner, lambda: next(chances))
    semcache.run(STORED)
    assert semcache.run(STORED).tier == "template"
    planner.what = "cities"
    assert semcache.run(STORED).planned
    stats = semcache.cache.stats()
    assert (stats.explored, stats.explored_wrong) == (1, 1)


def test_an_explored_hit_with_another_name_tells_whether_names_decide() -> None:
    planner = Planner()
    semcache = opened(planner, lambda: 0.0)
    planner.what, planner.params = "Ada", (Parameter("who", "Ada", mention="Ada"),)
    semcache.run("report on the late orders of Ada", params={"who": "Ada"})
    planner.what, planner.params = "somebody else", ()
    semcache.run("report on the late orders of Bo", params={"who": "Bo"})
    values = semcache.cache.evidence().values
    assert sum(values.other.values()) == 1
    assert not values.same


def test_a_planner_that_is_down_costs_an_explored_prompt_nothing() -> None:
    planner = Planner()
    semcache = opened(planner, lambda: 0.0)
    semcache.run(STORED)
    planner.error = ModelUnavailable("down")
    answer = semcache.run(ASKED)
    assert (answer.tier, answer.planned) == ("semantic", False)


def test_what_explored_hits_came_to_is_in_the_record_that_the_bound_rests_on() -> None:
    planner = Planner()
    semcache = opened(planner, lambda: 0.0, max_wrong=0.05)
    semcache.run("total sales by state")
    planner.what = "cities"
    semcache.run("customers by city")
    semcache.run("please show the total sales by state")
    record = semcache.cache.evidence().record
    assert semcache.cache.stats().explored == 1
    assert sum(record.other.values()) == 1
    assert not record.same


def test_a_semantic_hit_whose_plan_cannot_run_counts_as_wrong() -> None:
    planner = Planner()
    semcache = opened(planner, lambda: 0.9, max_wrong=0.05)
    semcache.cache.catalog = None  # so that a plan is kept that breaks the schema
    semcache.cache.store("total sales by state", plan(5))
    semcache.cache.store("customers by city", plan("cities"))
    with pytest.raises(OperationRefused):
        semcache.run("please show the total sales by state")
    assert sum(semcache.cache.evidence().record.other.values()) == 1
