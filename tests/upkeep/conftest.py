from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.canonical import JsonObject
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling

PROMPTS = ("sales in 2024", "visits to Springfield in 2024", "orders of 2024 by state")


def plan(operation: str, year: str) -> JsonObject:
    return calling(operation, year=year)


@pytest.fixture
def kept(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a few plans of two tenants, and a snapshot of their views."""
    monkeypatch.setattr("semcache.cache.view.views.WORTHWHILE", 1)
    with PlanCache.open(tmp_path / "cache", embedder=HashEmbedder(), clock=clock) as cache:
        for tenant in ("acme", "umbrella"):
            for n, prompt in enumerate(PROMPTS):
                cache.store(prompt, plan(f"o{n}", "2024"), params={"year": "2024"}, tenant=tenant)
            cache.lookup("sales in 2023", tenant=tenant)
    return tmp_path / "cache"
