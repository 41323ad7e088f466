import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from semcache import Miss, PlanCache, Settings
from semcache.errors import StoreUnavailable
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder
from tests.cache.learning import plan, plan_it
from tests.caching import cache_over


def test_evidence_of_one_tenant_never_touches_another(bounded: PlanCache) -> None:
    for tenant in ("good", "poisoned"):
        bounded.store("sales by state", plan("state"), tenant=tenant)
    before = bounded.lookup("state sales totals", tenant="good")
    for n in range(30):
        plan_it(bounded, f"sales by state {'x' * n}", str(n), tenant="poisoned")
    assert bounded.evidence(tenant="good").labels == 0
    after = bounded.lookup("state sales totals", tenant="good")
    assert after.to_dict()["nearest"] == before.to_dict()["nearest"]


def test_evidence_is_there_after_a_restart(tmp_path: Path, embedder: HashEmbedder) -> None:
    with PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as cache:
        plan_it(cache, "sales by state", "state")
        plan_it(cache, "sales by state and city", "both")
    with PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as cache:
        assert cache.evidence().labels == 1
        plan_it(cache, "sales by state or city", "either")
        assert cache.evidence().labels == 2


@pytest.mark.parametrize("note", ["{", '{"format": 99}', "[]", '{"format": 1}'])
def test_broken_evidence_is_passed_over_with_one_warning(
    note: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    cache = cache_over(store, Settings(max_wrong=0.05))
    cache.store("sales by state", plan("state"))
    store.put_note("default", "evidence", note)
    with caplog.at_level(logging.WARNING):
        assert isinstance(cache.lookup("sales by city"), Miss)
    assert ["evidence" in record.message for record in caplog.records] == [True]


def test_evidence_is_kept_without_a_bound_too(tmp_path: Path, embedder: HashEmbedder) -> None:
    with PlanCache.open(tmp_path, embedder=embedder) as cache:
        plan_it(cache, "sales by state", "state")
        plan_it(cache, "sales by state and city", "both")
    with PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as cache:
        assert cache.evidence().labels == 1
        assert cache.evidence().words.of("city") == (0.0, 0.5)


PROMPTS = [
    f"{what} {how} {which}"
    for what in ("sales", "tax", "rent")
    for how in ("by", "without", "in")
    for which in ("state", "city", "zone")
]


def taught(cache: PlanCache, *, flushed: bool) -> list[object]:
    """Plan some prompts; return how each was looked up and what was learned in the end."""
    told: list[object] = []
    for prompt in PROMPTS:
        found = cache.lookup(prompt).to_dict()
        assert isinstance(found["trace"], dict)
        del found["trace"]["milliseconds"]
        told.append(found)
        plan_it(cache, prompt, prompt.split()[-1])
        if flushed:
            cache.flush()
    return [*told, cache.evidence().to_json()]


def test_what_is_written_in_the_background_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr("semcache.cache.evidence.evidence_notes.EVERY", 1)
    told = []
    for flushed in (False, True):
        with PlanCache.open(embedder=HashEmbedder(), clock=clock, max_wrong=0.05) as cache:
            told.append(taught(cache, flushed=flushed))
    assert told[0] == told[1]


def test_labels_that_could_not_be_written_wait_for_the_next_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("semcache.cache.evidence.evidence_notes.EVERY", 2)
    store, broken = MemoryStore(), True
    cache, write = cache_over(store), store.update_note

    def update(tenant: str, name: str, change: Callable[[str | None], str | None]) -> None:
        if broken and name == "evidence":
            raise StoreUnavailable("the disk is full")
        write(tenant, name, change)

    monkeypatch.setattr(store, "update_note", update)
    plan_it(cache, "sales by state", "state")
    for which in ("city", "zone", "week"):
        plan_it(cache, f"sales by {which}", which)
    cache.flush()
    broken = False
    plan_it(cache, "sales by year", "year")
    assert cache.evidence().labels == 4


@pytest.mark.parametrize("every", [64, 2], ids=["at the end", "in the background"])
def test_evidence_of_two_caches_over_one_directory_adds_up(
    tmp_path: Path, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr("semcache.cache.evidence.evidence_notes.EVERY", every)
    with (
        PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as one,
        PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as other,
    ):
        plan_it(one, "sales by state", "state")
        for n, which in enumerate(("city", "zone", "week", "year", "shop", "item", "team", "user")):
            plan_it((one, other)[n // 3 % 2], f"sales by {which}", which)
        for cache in (one, other):
            cache.flush()
        assert one.evidence().labels == 8


@pytest.mark.parametrize("every", [64, 1], ids=["in memory", "on its way"])
def test_of_a_tenant_that_is_cleared_no_evidence_comes_back(
    bounded: PlanCache, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr("semcache.cache.evidence.evidence_notes.EVERY", every)
    plan_it(bounded, "sales by state", "state")
    plan_it(bounded, "sales by city", "city")
    bounded.clear(tenant="default")
    assert bounded.evidence().labels == 0
