import base64
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from semcache import PlanCache, Settings
from semcache.errors import InvalidInput
from semcache.ports import PlanStore, Record
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder, make_record
from semcache.upkeep.migrate import Migrated, migrate
from semcache.wiring import open_store

KEY = base64.b64encode(b"k" * 32).decode()


def counts(store: PlanStore) -> dict[str, tuple[int, float]]:
    return {known: (use.count, use.last_s) for known, use in store.uses("acme").items()}


@pytest.mark.parametrize("key", ["", KEY])
def test_everything_is_there_afterwards_and_nothing_was_embedded(
    key: str, kept: Path, tmp_path: Path, clock: FakeClock
) -> None:
    settings = Settings(directory=tmp_path / "new", encryption_key=key)
    with closing(DiskStore.open(kept)) as source, closing(open_store(settings)) as target:
        source.use("acme", {source.scan("acme")[0].id: 3}, now_s=clock.now())
        done = migrate(source, target)
        assert done == Migrated(tenants=2, records=6, notes=2)
        assert counts(target) == counts(source)
        assert migrate(source, target) == done  # a second time changes nothing
        assert counts(target) == counts(source)
    embedder = HashEmbedder()
    with PlanCache.open(
        tmp_path / "new", embedder=embedder, clock=clock, encryption_key=key
    ) as cache:
        assert cache.stats(tenant="acme").lookups == 1
        assert cache.lookup("sales in 2023", tenant="acme")
        assert embedder.texts == []
        assert cache.lookup("please show me the orders of 2023 by state", tenant="umbrella")


def test_two_caches_are_never_mixed(kept: Path) -> None:
    target = MemoryStore()
    target.put(make_record("x", tenant="strange"))
    with closing(DiskStore.open(kept)) as source:
        with pytest.raises(InvalidInput, match="tenant 'strange'"):
            migrate(source, target)
        target.clear()
        target.put(make_record("x", tenant="acme"))
        with pytest.raises(InvalidInput, match="entry 'x' of tenant 'acme'"):
            migrate(source, target)


def test_a_cache_in_use_is_copied_as_it_was_when_that_began() -> None:
    class InUse(MemoryStore):
        def scan(self, tenant: str) -> Sequence[Record]:
            found = super().scan(tenant)
            self.put(make_record("later", tenant=tenant))
            return found

    source, target = InUse(), MemoryStore()
    for known in "abc":
        source.put(make_record(known))
    assert migrate(source, target) == Migrated(tenants=1, records=3, notes=0)
    assert [record.id for record in target.scan("acme")] == ["a", "b", "c"]
