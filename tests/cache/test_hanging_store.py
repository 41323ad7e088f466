"""A store that hangs for one tenant: everybody else is served."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from semcache import Hit, PlanCache
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder
from tests.cache.learning import plan

PROMPT = "please show the total sales by state"


def fill(cache: PlanCache, tenant: str) -> Hit:
    cache.store("total sales by state", plan("state"), tenant=tenant)
    cache.store("sales by city", plan("city"), tenant=tenant)
    found = cache.lookup(PROMPT, tenant=tenant)
    assert isinstance(found, Hit)
    return found


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch, method: str, tenant: str) -> Iterator[threading.Event]:
    """Let a method of the store hang for a tenant; give what is set once somebody hangs."""
    inner, hangs, goes_on = getattr(MemoryStore, method), threading.Event(), threading.Event()

    def slow(self: MemoryStore, query: str, *args: object, **rest: object) -> object:
        if query == tenant:
            hangs.set()
            assert goes_on.wait(30)
        return inner(self, query, *args, **rest)

    monkeypatch.setattr(MemoryStore, method, slow)
    try:
        yield hangs
    finally:
        goes_on.set()


@pytest.mark.parametrize("method", ["pages", "get_note", "update_note"])
def test_a_tenant_whose_store_hangs_delays_no_hit_of_another(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    with PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), max_wrong=0.05) as cache:
        hit = fill(cache, "slow")
        fill(cache, "quick")
        work: Callable[[], object] = partial(cache.feedback, hit, right=False)
        if method != "update_note":
            cache.clear(tenant="slow")  # so that all of it is read again
            work = partial(fill, cache, "slow")
        with hanging(monkeypatch, method, "slow") as hangs:
            thread = threading.Thread(target=work)
            thread.start()
            assert hangs.wait(30)
            assert cache.lookup(PROMPT, tenant="quick")
            assert cache.store("costs by city", plan("costs"), tenant="quick")
            assert cache.lookup("costs by city", tenant="quick")
        thread.join(30)


def test_no_lookup_waits_for_counts_that_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), max_wrong=0.05) as cache:
        fill(cache, "quick")
        before = cache.stats(tenant="quick").lookups
        with hanging(monkeypatch, "update_note", "quick") as hangs:
            for _ in range(1100):
                assert cache.lookup(PROMPT, tenant="quick")
            assert hangs.wait(30)
        cache.flush()
        assert cache.stats(tenant="quick").lookups == before + 1100
