from pathlib import Path

from semcache.ports import Bounds, PlanStore, VectorIndex
from semcache.stores.memory import MemoryStore
from semcache.stores.vectors.matrix import MemoryIndex
from semcache.testing import PlanStoreContract, VectorIndexContract, make_record


class TestMemoryStore(PlanStoreContract):
    def make(self, tmp_path: Path) -> PlanStore:
        return MemoryStore()


class TestMemoryIndex(VectorIndexContract):
    def make(self, tmp_path: Path) -> VectorIndex:
        return MemoryIndex()


def test_changes_that_were_forgotten_are_not_made_up() -> None:
    store = MemoryStore(kept_changes=3)
    for name in "abcde":
        store.put(make_record(name))
    assert store.changes(1) is None
    assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]


def test_replacing_one_record_again_and_again_does_not_grow_the_store() -> None:
    store = MemoryStore()
    for i in range(500):
        store.put(make_record("a", created_s=float(i)), bounds=Bounds(2))
    assert len(store._tenants["acme"].ranks) < 100
