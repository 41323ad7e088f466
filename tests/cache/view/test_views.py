"""Many caches over one store: each sees the changes of the others at its next lookup."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from semcache import PlanCache
from semcache.cache.view.views import Views
from semcache.ports import Record
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, given_input, hit

plan = partial(calling, "sales")


def year(value: str) -> dict[str, str]:
    return {"year": value}


@pytest.fixture
def shared(tmp_path: Path, clock: FakeClock) -> Iterator[Callable[[], PlanCache]]:
    opened: list[PlanCache] = []

    def make() -> PlanCache:
        opened.append(PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock))
        return opened[-1]

    yield make
    for cache in opened:
        cache.close()


@pytest.mark.parametrize("prompt", ["sales in 2023", "please show me sales in 2023"])
def test_what_one_cache_stores_replaces_and_removes_another_follows(
    shared: Callable[[], PlanCache], prompt: str
) -> None:
    left, right = shared(), shared()
    assert not right.lookup(prompt)
    for version in (1, 2):
        body = plan(year="2024", v=version)
        stored = left.store("sales in 2024", body, params=year("2024"))
        assert given_input(right.lookup(prompt)) == {"year": "2023", "v": version}
    left.invalidate(id=stored.id)
    assert not right.lookup(prompt)


def test_a_veto_of_one_cache_holds_in_another(shared: Callable[[], PlanCache]) -> None:
    left, right = shared(), shared()
    left.store("sales in 2024", plan(year="2024"), params=year("2024"))
    assert right.lookup("show me sales in 2023")
    left.feedback(left.lookup("show me sales in 2022"), right=False)
    missed = right.lookup("show me sales in 2023")
    assert (bool(missed), missed.trace.candidates[0].verdicts[-1].gate) == (False, "vetoed")


def test_clearing_everything_empties_every_cache(shared: Callable[[], PlanCache]) -> None:
    left, right = shared(), shared()
    for tenant in ("acme", "umbrella"):
        left.store("sales in 2024", plan(year="2024"), params=year("2024"), tenant=tenant)
        assert right.lookup("sales in 2023", tenant=tenant)
    assert left.clear() == 2
    for tenant in ("acme", "umbrella"):
        assert not right.lookup("sales in 2023", tenant=tenant)
    left.store("sales in 2024", plan(year="2024"), params=year("2024"), tenant="acme")
    assert right.lookup("sales in 2023", tenant="acme")


def test_counts_of_all_caches_add_up_once_they_are_flushed(
    shared: Callable[[], PlanCache],
) -> None:
    left, right = shared(), shared()
    for cache in (left, right, right):
        cache.lookup("sales in 2023")
    left.flush()
    right.flush()
    assert left.stats().lookups == right.stats().lookups == 3


class ForgetfulStore(MemoryStore):
    """A store that remembers no change that it is asked for."""

    def changes(self, since: int) -> Any:
        return None


def _views(store: Any) -> Views:
    return Views(store, make_index=lambda _: FaissIndex(), embedder="hash:64")


def _records(*prompts: str) -> list[Record]:
    with PlanCache.open(embedder=HashEmbedder(), clock=FakeClock()) as cache:
        for prompt in prompts:
            cache.store(prompt, plan(year="2024"), params=year("2024"))
        return [e.record(HashEmbedder().embed(["x"])[0], "hash:64") for e in cache.entries()]


def test_a_view_that_fell_too_far_behind_is_read_whole() -> None:
    store = ForgetfulStore()
    views, records = _views(store), _records("sales in 2024", "visits in 2024")
    store.put(records[0])
    assert len(views.current("default").entries) == 1
    store.put(records[1])
    assert len(views.current("default").entries) == 2
    store.remove("default", [records[0].id])
    assert list(views.current("default").entries) == [records[1].id]


def test_a_dropped_entry_leaves_nothing_behind() -> None:
    store = MemoryStore()
    views, records = _views(store), _records("sales in 2024", "visits to Rome in 2024")
    for record in records:
        store.put(record)
    view = views.current("default")
    assert len(view.index) == 2
    store.remove("default", [record.id for record in records])
    view = views.current("default")
    assert (len(view.index), len(view.entries), len(view.vocabulary)) == (0, 0, 0)
    assert (dict(view.fixed), list(view.skeletons.candidates("sales in 2024"))) == ({}, [])


def test_lookups_and_changes_from_many_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with closing(PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=FakeClock())) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=year("2024"))

        def work(thread: int) -> None:
            try:
                for i in range(12):
                    city = f"City{thread}x{i}"
                    stored = cache.store(
                        f"visits to {city} by bus",
                        plan(city=city, of="bus"),
                        params={"city": city},
                    )
                    hit(cache.lookup("please show me sales in 2023"))
                    cache.lookup(f"visits to {city} by train")
                    if i % 3 == 0:
                        cache.invalidate(id=stored.id)
            except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    assert failures == []


def test_a_store_that_was_changed_by_hand_is_followed(tmp_path: Path, clock: FakeClock) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
        stored = cache.store("sales in 2024", plan(year="2024"), params=year("2024"))
        assert cache.lookup("sales in 2023")
        with closing(DiskStore.open(tmp_path)) as store:
            store.remove("default", [stored.id])
        assert not cache.lookup("sales in 2023")
