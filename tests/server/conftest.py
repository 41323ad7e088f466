from collections.abc import Iterator

import pytest

from semcache import SemCache, catalog_from, operation
from semcache.server.calls import Calls
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling


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
            plan, params = calling("count_visits", town="Oslo"), {"town": "Oslo"}
            assert made.cache.store("yearly visits to Oslo", plan, params=params, tenant=tenant)
        yield made


@pytest.fixture
def calls(semcache: SemCache) -> Calls:
    return Calls(semcache)
