from semcache import PlanCache
from tests.cache.sales import YEAR, plan, schema
from tests.calling import missed


def test_tiers_are_asked_in_order_until_one_serves(cache: PlanCache) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR], schema=schema(year="2024"))
    by_template = cache.lookup("sales in 2023", schema=schema(year="2023"))
    by_schema = cache.lookup("what was sold during 2023", schema=schema(year="2023"))
    by_none = cache.lookup("what was sold during 2023", schema=schema("list", year="2023"))
    query = [[tier for tier, _ in found.trace.tiers] for found in (by_template, by_schema, by_none)]
    assert query == [
        ["template"],
        ["template", "schema"],
        ["template", "schema", "semantic"],
    ]


def test_an_empty_cache_says_so(cache: PlanCache) -> None:
    found = missed(cache.lookup("sales"))
    assert (found.reason, found.nearest) == ("empty", None)
    assert ("semantic", "nothing to compare with") in found.trace.tiers
