import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.errors import ForeignDirectory
from semcache.stores.disk.store import DiskStore
from semcache.testing import FakeClock, HashEmbedder, make_record
from semcache.upkeep.migrate import compact


def test_what_expired_goes_with_its_room_and_its_snapshots(kept: Path, clock: FakeClock) -> None:
    with closing(DiskStore.open(kept)) as store:
        for n in range(200):
            store.put(make_record(str(n), tenant="gone", body=f'"{"x" * 4000}"'))
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock, ttl_s=None) as cache:
        cache.store("visits in 2024", {"year": "2024"}, params={"year": "2024"}, tenant="acme")
        cache.clear(tenant="gone")
    (kept / "views" / "0.view1234.tmp").touch()
    clock.advance(31 * 24 * 3600)
    done = compact(kept, clock=clock)
    assert (done.expired, done.snapshots) == (6, 3)
    assert done.bytes_after < done.bytes_before
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock) as cache:
        assert cache.tenants() == ("acme",)
        assert cache.lookup("visits in 2023", tenant="acme")


def test_what_is_damaged_is_told_and_counts_no_more(kept: Path, clock: FakeClock) -> None:
    with closing(sqlite3.connect(kept / "semcache.db")) as connection, connection:
        connection.execute("UPDATE records SET body = '{}' WHERE tenant = 'acme' AND rowid = 1")
        connection.execute("UPDATE records SET size = 10000000 WHERE rowid > 1")
    assert compact(kept, clock=clock).damaged == 1
    with closing(DiskStore.open(kept)) as store:
        assert (store.count("acme"), store.count("umbrella")) == (2, 3)
        sizes = sum(record.size for tenant in store.tenants() for record in store.scan(tenant))
    with closing(sqlite3.connect(kept / "semcache.db")) as connection:
        assert connection.execute("SELECT entries, bytes FROM state").fetchone() == (5, sizes)


def test_nothing_of_a_value_is_left_in_the_files_once_its_plan_is_gone(
    kept: Path, clock: FakeClock
) -> None:
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock) as cache:
        for n in range(30):
            cache.store(f"sales to CUST-{n:05} by city", {"to": f"CUST-{n:05}"}, tenant="acme")
        cache.lookup("sales to CUST-00777 by city", tenant="acme")
        cache.invalidate(id=cache.entries(tenant="acme")[-1].id, tenant="acme")
        cache.clear(tenant="acme")
    compact(kept, clock=clock)
    files = [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
    assert [content for content in files if b"CUST-000" in content] == []


def test_there_must_be_a_cache(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(ForeignDirectory, match="no cache at"):
        compact(tmp_path / "none", clock=clock)
    assert list(tmp_path.iterdir()) == []
