from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.errors import ForeignDirectory
from semcache.testing import FakeClock, HashEmbedder, make_record
from semcache.upkeep.compact import compact


def test_what_expired_goes_with_its_room_and_its_snapshots(kept: Path, clock: FakeClock) -> None:
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock, ttl_s=None) as cache:
        cache.store("visits in 2024", {"year": "2024"}, params={"year": "2024"}, tenant="acme")
        for n in range(200):
            cache._store.put(make_record(str(n), tenant="gone", body=f'"{"x" * 4000}"'))
        cache.clear(tenant="gone")
    (kept / "views" / "0.view1234.tmp").touch()
    clock.advance(31 * 24 * 3600)
    done = compact(kept, clock=clock)
    assert (done.expired, done.snapshots) == (6, 3)
    assert done.bytes_after < done.bytes_before
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock) as cache:
        assert cache.tenants() == ("acme",)
        assert cache.lookup("visits in 2023", tenant="acme")


def test_there_must_be_a_cache(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(ForeignDirectory, match="no cache at"):
        compact(tmp_path / "none", clock=clock)
    assert list(tmp_path.iterdir()) == []
