import logging
from pathlib import Path

import pytest

from semcache import Miss, PlanCache
from semcache.stores.disk import DiskStore
from semcache.testing import HashEmbedder
from tests.cache.learning import evidence, plan, plan_it


def test_evidence_of_one_tenant_never_touches_another(bounded: PlanCache) -> None:
    for tenant in ("good", "poisoned"):
        bounded.store("sales by state", plan("state"), tenant=tenant)
    before = bounded.lookup("state sales totals", tenant="good")
    for n in range(30):
        plan_it(bounded, f"sales by state {'x' * n}", str(n), tenant="poisoned")
    assert evidence(bounded, "good") == {}
    after = bounded.lookup("state sales totals", tenant="good")
    assert after.to_dict()["nearest"] == before.to_dict()["nearest"]


def test_evidence_is_there_after_a_restart(tmp_path: Path, embedder: HashEmbedder) -> None:
    with PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as cache:
        plan_it(cache, "sales by state", "state")
        plan_it(cache, "sales by state and city", "both")
    with PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as cache:
        assert evidence(cache)["labels"] == 1
        plan_it(cache, "sales by state or city", "either")
        assert evidence(cache)["labels"] == 2


def test_evidence_of_two_caches_over_one_directory_adds_up(
    tmp_path: Path, embedder: HashEmbedder
) -> None:
    with (
        PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as one,
        PlanCache.open(tmp_path, embedder=embedder, max_wrong=0.05) as other,
    ):
        plan_it(one, "sales by state", "state")
        plan_it(one, "sales by state and city", "both")
        plan_it(other, "sales by state or city", "either")
        evidence(one)
        assert evidence(other)["labels"] == 2


@pytest.mark.parametrize("note", ["{", '{"format": 99}', "[]", '{"format": 1}'])
def test_broken_evidence_is_passed_over_with_one_warning(
    bounded: PlanCache, note: str, caplog: pytest.LogCaptureFixture
) -> None:
    bounded.store("sales by state", plan("state"))
    bounded._store.put_note("default", "evidence", note)
    with caplog.at_level(logging.WARNING):
        assert isinstance(bounded.lookup("sales by city"), Miss)
    assert ["evidence" in record.message for record in caplog.records] == [True]


def test_clearing_a_tenant_forgets_its_evidence(bounded: PlanCache) -> None:
    plan_it(bounded, "sales by state", "state")
    plan_it(bounded, "sales by state and city", "both")
    assert evidence(bounded)
    bounded.clear(tenant="default")
    assert evidence(bounded) == {}


def test_evidence_is_kept_without_a_bound_too(tmp_path: Path, embedder: HashEmbedder) -> None:
    with PlanCache.open(tmp_path, embedder=embedder) as cache:
        plan_it(cache, "sales by state", "state")
        plan_it(cache, "sales by state and city", "both")
        cache.flush()
    store = DiskStore.open(tmp_path)
    assert store.get_note("default", "evidence") is not None
    store.close()
