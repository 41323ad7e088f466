import pickle
from pathlib import Path

from semcache.ports import Bounds, PlanStore
from semcache.stores.memory import MemoryStore
from semcache.testing import PlanStoreContract, make_record


class TestMemoryStore(PlanStoreContract):
    def make(self, tmp_path: Path) -> PlanStore:
        return MemoryStore()


def test_changes_that_were_forgotten_are_not_made_up() -> None:
    store = MemoryStore(kept_changes=3)
    for name in "abcde":
        store.put(make_record(name))
    assert store.changes(1) is None
    assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]


def size(store: MemoryStore) -> int:
    return len(pickle.dumps(store._contents.__dict__ | {"_by_entries": 0, "_by_bytes": 0}))


def test_replacing_one_record_again_and_again_does_not_grow_the_store() -> None:
    store = MemoryStore(kept_changes=10)
    sizes = []
    for i in range(500):
        store.put(make_record("a", created_s=float(i)), bounds=Bounds(2))
        sizes.append(size(store))
    assert max(sizes[200:]) <= 1.1 * max(sizes[:200])


def test_nothing_is_kept_of_what_was_evicted_or_of_a_tenant_that_is_gone() -> None:
    store = MemoryStore(kept_changes=10)
    for i in range(300):
        record = make_record(f"{i:04}", tenant=f"{i:04}", created_s=float(i))
        store.put(record, bounds=Bounds(entries=5))
        if i == 50:
            before = size(store)
    assert size(store) <= 1.1 * before
    assert len(store.tenants()) == 5
