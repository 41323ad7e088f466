from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from semcache import PlanCache
from semcache.cache.reports import STATISTICS_NOTE, Counters
from semcache.errors import StoreUnavailable
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock
from tests.calling import calling


def test_counting_asks_for_a_flush_now_and_then() -> None:
    counters = Counters(MemoryStore(), FakeClock(), every=3)
    assert [counters.add("acme", "x") for _ in range(4)] == [False, False, True, True]
    counters.flush()
    assert not counters.add("acme", "x")


def test_what_cannot_be_written_waits_for_the_next_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    counters = Counters(store, FakeClock())
    counters.add("acme", "x")
    counters.add("umbrella", "x")

    def fail(*_: Any) -> None:
        raise StoreUnavailable("full")

    with monkeypatch.context() as broken:
        broken.setattr(store, "update_note", fail)
        with pytest.raises(StoreUnavailable):
            counters.flush()
    counters.add("acme", "x")
    counters.flush()
    assert Counters(store, FakeClock()).read("acme") == {"x": 2}
    assert Counters(store, FakeClock()).read("umbrella") == {"x": 1}


def test_no_count_is_lost_between_threads() -> None:
    store = MemoryStore()
    counters = Counters(store, FakeClock(), every=7)

    def count(_: int) -> None:
        for _ in range(50):
            if counters.add("acme", "x"):
                counters.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    counters.flush()
    assert Counters(store, FakeClock()).read("acme") == {"x": 400}


@pytest.mark.parametrize(
    "note", ["", "no json", "{", "[]", '{"x": "many"}', "7", '{"\\ud800": 3, "y": 2}']
)
def test_a_note_that_cannot_be_read_counts_from_nothing(note: str) -> None:
    store = MemoryStore()
    store.put_note("acme", STATISTICS_NOTE, note)
    counters = Counters(store, FakeClock())
    counters.add("acme", "y")
    counters.flush()
    assert counters.read("acme") == {"y": 1}


@pytest.mark.parametrize(("tenant", "left"), [("acme", {"b": 1}), (None, {})])
def test_forgetting_drops_what_is_pending(tenant: str | None, left: dict[str, int]) -> None:
    counters = Counters(MemoryStore(), FakeClock())
    counters.add("acme", "a")
    counters.add("umbrella", "b")
    counters.forget(tenant)
    assert (counters.read("acme"), counters.read("umbrella")) == ({}, left)


def test_the_lookups_of_one_run_count_once_as_what_the_last_came_to(cache: PlanCache) -> None:
    assert not cache.lookup("opening hours", run="a")
    assert not cache.lookup("opening hours", run="a")
    cache.store("opening hours", calling("hours"))
    assert cache.lookup("opening hours", run="b")
    assert (cache.stats().hit_rate, cache.stats().lookups) == (0.5, 2)
    assert cache.lookup("opening hours", run="a")
    assert (cache.stats().hits, cache.stats().misses) == ({"template": 2}, {})
