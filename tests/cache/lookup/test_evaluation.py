from functools import partial

from semcache import Catalog, Operation, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, missed

YEAR = Parameter("year", "2024", mention="2024")


plan = partial(calling, "sales")


def test_a_value_that_the_operation_does_not_take_is_a_miss_and_no_error(
    clock: FakeClock,
) -> None:
    properties: JsonObject = {"year": {"type": "string", "pattern": "^20"}}
    input_schema: JsonObject = {"type": "object", "properties": properties}
    catalog = Catalog([Operation("sales", "Sales.", input_schema, effect="read")])
    with PlanCache.open(catalog=catalog, embedder=HashEmbedder(), clock=clock) as cache:
        cache.store("report of 2024", plan(year="2024"), params=[YEAR])
        assert cache.lookup("report of 2023")
        found = missed(cache.lookup("report of 1999"))
        assert found.reason == "check"
        assert "/call/input/year" in found.explain()


def test_a_template_that_two_plans_claim_is_contested(bounded: PlanCache) -> None:
    bounded.store("show sales by state", plan(what="one"))
    assert bounded.lookup("show sales by state")
    bounded.store("list sales by state", plan(what="other"))
    assert missed(bounded.lookup("show sales by state")).reason == "contested"


def test_a_catalog_set_later_checks_values_and_tells_closed_ones(clock: FakeClock) -> None:
    def catalog(*regions: str) -> Catalog:
        region: JsonObject = {"type": "string", "enum": [*regions]}
        schema: JsonObject = {"type": "object", "properties": {"region": region}}
        return Catalog([Operation("sales", "Sales.", schema, effect="read")])

    with PlanCache.open(catalog=catalog("east"), embedder=HashEmbedder(), clock=clock) as cache:
        assert cache.lookup("report of east").trace.template == "report of <region>"
        cache.catalog = catalog("west", "north")
        assert cache.lookup("report of west").trace.template == "report of <region>"
        assert cache.lookup("report of east").trace.template == "report of east"
        cache.store("report of west", plan(region="west"), params={"region": "west"})
        assert missed(cache.lookup("report of x", params={"region": "x"})).reason == "check"


def test_a_plan_with_a_value_whose_words_are_passed_over_serves_no_prompt_without_them(
    cache: PlanCache,
) -> None:
    said = [Parameter("state", "on", mention="on")]
    cache.store("how many gas sensors are on?", calling("sensors", state="on"), params=said)
    assert cache.lookup("please, how many gas sensors are on?")
    found = cache.lookup("how many gas sensors are?")
    assert not found
    assert found.reason == "pinned"
