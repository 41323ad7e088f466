from collections.abc import Iterator
from typing import Any

import pytest

from semcache import SemCache, catalog_from, operation
from semcache.server.calls import Calls
from semcache.testing import FakeClock, HashEmbedder

PLAN: dict[str, Any] = {
    "start_node": {"route": "count"},
    "count": {"operation": "count_visits", "input": {"town": "Oslo"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.count"}},
}


@operation(effect="read")
def count_visits(town: str) -> int:
    """Count the visits to a town."""
    return len(town)


@operation(effect="write")
def order_trip(town: str) -> str:
    """Order a trip to a town."""
    return town


@pytest.fixture
def semcache() -> Iterator[SemCache]:
    """A cache in which tenants acme and initech have one plan each."""
    with SemCache.open(
        catalog=catalog_from(count_visits, order_trip), embedder=HashEmbedder(), clock=FakeClock()
    ) as made:
        for tenant in ("acme", "initech"):
            stored = made.cache.store(
                "yearly visits to Oslo", PLAN, params={"town": "Oslo"}, tenant=tenant
            )
            assert stored
        yield made


@pytest.fixture
def calls(semcache: SemCache) -> Calls:
    return Calls(semcache)
