import gc
from pathlib import Path
from types import FunctionType, ModuleType

from semcache.ports import Bounds, PlanStore, Record
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


def held(store: MemoryStore) -> list[object]:
    """Return every object that a store keeps alive."""
    found: dict[int, object] = {}
    left: list[object] = [store]
    while left:
        one = left.pop()
        if id(one) not in found and not isinstance(one, type | ModuleType | FunctionType):
            found[id(one)] = one
            left.extend(gc.get_referents(one))
    return [*found.values()]


def test_replacing_one_record_again_and_again_does_not_grow_the_store() -> None:
    store = MemoryStore(kept_changes=10)
    sizes = []
    for i in range(500):
        store.put(make_record("a", created_s=float(i)), bounds=Bounds(2))
        sizes.append(len(held(store)))
    assert max(sizes[200:]) <= 1.1 * max(sizes[:200])


def test_nothing_is_kept_of_what_was_evicted_or_of_a_tenant_that_is_gone() -> None:
    store = MemoryStore(kept_changes=10)
    for i in range(300):
        record = make_record(f"{i:04}", tenant=f"{i:04}", created_s=float(i))
        store.put(record, bounds=Bounds(entries=5))
    kept = [one.id for one in held(store) if isinstance(one, Record)]
    assert sorted(kept) == list(store.tenants()) == [f"{i:04}" for i in range(295, 300)]
    names = {one for one in held(store) if isinstance(one, str) and one.isdigit()}
    assert names == {f"{i:04}" for i in range(290, 300)}, "the last ten changes name ten tenants"


def test_stale_places_of_a_ranking_do_not_pile_up() -> None:
    store, sizes = MemoryStore(kept_changes=10), []
    for i in range(9000):
        record = make_record(f"{i % 7}", tenant=f"{i % 50}", created_s=float(i))
        store.put(record, bounds=Bounds(entries=340))
        sizes.append(len(held(store)) if i % 250 == 249 else 0)
    assert max(sizes[4500:]) <= 1.1 * max(sizes[:4500])
