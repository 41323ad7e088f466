"""What a type checker knows of a lookup: mypy reads this file with the others.

So does pyright, strictly and by hand: its 280 MB are too many for each run of the checks.
"""

from typing import assert_type

from semcache import AsyncPlanCache, Found, Hit, Miss, PlanCache
from semcache.cache.result import Candidate
from semcache.events import Tier
from semcache.testing import HashEmbedder


def tier_of(found: Found) -> Tier | None:
    if found:
        assert_type(found, Hit)
        return found.tier
    assert_type(found, Miss)
    return None


def reason_of(found: Found) -> str:
    return "" if found else found.reason


async def awaited_tier_of(cache: AsyncPlanCache) -> Tier | None:
    found = await cache.lookup("sales", tools=[{"name": "query", "input_schema": {}}])
    if found:
        assert_type(found, Hit)
        return found.tier
    assert_type(found.nearest, Candidate | None)
    return None


def test_a_lookup_is_told_apart_by_its_truth() -> None:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        assert (tier_of(cache.lookup("sales")), reason_of(cache.lookup("sales"))) == (None, "empty")
        cache.store("sales", {"call": {"what": "sales"}})
        assert tier_of(cache.lookup("sales")) == "template"
