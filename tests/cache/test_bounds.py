"""What a cache may take and how long its entries live: bounds, quotas, and the TTL."""

from functools import partial
from typing import Any

import pytest

from semcache import PlanCache, Settings
from semcache.cache import plan_cache
from semcache.errors import InvalidInput
from semcache.events import EntriesRemoved
from semcache.ports import Record
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver
from tests.caching import cache_over
from tests.calling import calling

DAY_S = 24 * 3600.0
NAMES = ("sales", "taxes", "rents", "loans")  # words of one length: entries of one size


plan = partial(calling, "report")


def opened(clock: FakeClock, **bounds: Any) -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder(), clock=clock, **bounds)


def keep(cache: PlanCache, name: str, **more: Any) -> None:
    assert cache.store(f"{name} in 2024", plan(of=name, year=2024), params={"year": 2024}, **more)


def kept(cache: PlanCache, tenant: str = "default") -> list[str]:
    return [entry.prompt.split()[0] for entry in cache.entries(tenant=tenant)]


def test_a_plan_that_is_served_outlives_newer_ones_that_are_not(clock: FakeClock) -> None:
    with opened(clock, max_entries=3) as cache:
        for name in NAMES[:3]:
            keep(cache, name)
            clock.advance(1)
        assert cache.lookup("sales in 2019")
        cache.flush()
        keep(cache, "loans")
        assert kept(cache) == ["sales", "rents", "loans"]


def test_a_plan_that_took_long_to_make_outlives_newer_ones_that_did_not(clock: FakeClock) -> None:
    with opened(clock, max_entries=3) as cache:
        keep(cache, "sales", cost_s=20.0)
        for name in NAMES[1:]:
            clock.advance(1)
            keep(cache, name)
        assert kept(cache) == ["sales", "rents", "loans"]


def test_a_plan_served_long_ago_makes_room_for_ones_served_now(clock: FakeClock) -> None:
    with opened(clock, max_entries=3) as cache:
        for name in NAMES[:3]:
            keep(cache, name)
        for _ in range(10):
            assert cache.lookup("sales in 2019")
        cache.flush()
        clock.advance(6 * DAY_S)
        assert cache.lookup("taxes in 2019")
        assert cache.lookup("rents in 2019")
        cache.flush()
        keep(cache, "loans")
        assert kept(cache) == ["taxes", "rents", "loans"]


def test_bytes_are_bounded_for_each_tenant(clock: FakeClock) -> None:
    store = MemoryStore()
    keep(cache_over(store, clock=clock), "sales")
    size = store.room().bytes
    with opened(clock, max_bytes=2 * size) as cache:
        for name in NAMES:
            keep(cache, name)
            keep(cache, name, tenant="other")
            clock.advance(1)
        assert kept(cache) == kept(cache, "other") == ["rents", "loans"]


def test_a_plan_larger_than_the_bound_is_not_stored_and_nothing_goes_for_it(
    clock: FakeClock,
) -> None:
    with opened(clock, max_total_bytes=10_000) as cache:
        keep(cache, "sales")
        stored = cache.store("all of it", plan(of="x" * 10_000))
        assert not stored
        assert "bytes; the bound of all together is 10,000" in stored.reason
        assert kept(cache) == ["sales"]


def test_over_the_bound_of_all_tenants_the_largest_makes_room_and_it_is_told(
    clock: FakeClock,
) -> None:
    observer = RecordingObserver()
    with opened(clock, max_total_entries=4, observer=observer) as cache:
        for name in NAMES[:3]:
            keep(cache, name, tenant="large")
            clock.advance(1)
        for name in NAMES[:2]:
            keep(cache, name, tenant="small")
        assert (kept(cache, "large"), kept(cache, "small")) == (
            ["taxes", "rents"],
            ["sales", "taxes"],
        )
        assert not cache.lookup("sales in 2019", tenant="large")
    assert [(e.tenant, e.count, e.why) for e in observer.of(EntriesRemoved)] == [
        ("large", 1, "evicted")
    ]


@pytest.mark.parametrize(
    ("slides", "prompt", "lives"),
    [
        ("never", "sales in 2019", False),
        ("exact", "sales in 2019", True),
        ("exact", "could you please tell sales in 2019?", False),
        ("always", "could you please tell sales in 2019?", True),
    ],
)
def test_a_ttl_begins_anew_with_the_hits_that_are_said_to(
    clock: FakeClock, slides: str, prompt: str, lives: bool
) -> None:
    with opened(clock, ttl_s=100.0, ttl_slides=slides, threshold=0.1) as cache:
        keep(cache, "sales")
        clock.advance(60)
        assert cache.lookup(prompt)
        clock.advance(60)
        assert bool(cache.lookup("sales in 2018")) is lives
        clock.advance(101)
        assert not cache.lookup("sales in 2018")


def test_a_ttl_that_slides_is_written_now_and_then_and_not_at_each_hit(clock: FakeClock) -> None:
    store = MemoryStore()
    with cache_over(store, Settings(ttl_s=160.0, ttl_slides="exact"), clock=clock) as cache:
        keep(cache, "sales")
        before = store.last_change()
        for _ in range(100):
            clock.advance(1)
            assert cache.lookup("sales in 2019")
        assert store.last_change() - before <= 10


def test_a_plan_that_holds_what_yesterday_was_does_not_live_longer_by_being_served(
    clock: FakeClock,
) -> None:
    with opened(clock, ttl_s=100_000.0, ttl_slides="always") as cache:
        cache.store("sales of yesterday", plan(day="2023-11-13"), params={"day": "2023-11-13"})
        end = cache.entries()[0].expires_s
        clock.advance(60)
        cache.lookup("sales of yesterday")
        assert cache.entries()[0].expires_s == end


def test_an_entry_that_is_removed_while_it_is_extended_does_not_come_back(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    with cache_over(store, Settings(ttl_s=100.0, ttl_slides="exact"), clock=clock) as cache:
        keep(cache, "sales")
        assert cache.lookup("sales in 2024")  # from here on it is in memory
        get = store.get

        def get_before_another_removes(tenant: str, known: str) -> Record | None:
            record = get(tenant, known)
            store.remove(tenant, [known])
            return record

        clock.advance(60)
        monkeypatch.setattr(store, "get", get_before_another_removes)
        assert cache.lookup("sales in 2024")
        assert cache.entries() == ()


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), True, "1"])
def test_seconds_that_are_none_are_refused(cache: PlanCache, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="cost_s"):
        cache.store("sales in 2024", plan(year=2024), cost_s=wrong)


# specs: D-7
def test_expired_entries_are_removed_by_the_stores_that_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_cache, "TIDIED", 3)
    clock = FakeClock()
    cache = opened(clock, ttl_s=10.0)
    for word in ("tides", "moons"):
        cache.store(word, {"operation": word})
    clock.advance(20)
    cache.store("stars", {"operation": "stars"})
    assert [entry.prompt for entry in cache.entries()] == ["stars"]
