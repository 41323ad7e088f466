import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcache import Hit, Miss, PlanCache
from semcache.canonical import Json, JsonObject
from semcache.plans.codec import decode
from semcache.stores.disk import DiskStore
from semcache.testing import HashEmbedder
from tests.calling import calling


def plan(what: str, **values: Json) -> JsonObject:
    return calling("shop.query", what=what, **values)


@pytest.fixture
def bounded(tmp_path: Path, embedder: HashEmbedder) -> Iterator[PlanCache]:
    with PlanCache.open(tmp_path / "cache", embedder=embedder, max_wrong=0.05) as cache:
        yield cache


def evidence(cache: PlanCache, tenant: str = "default") -> JsonObject:
    """Return what the cache wrote down of a tenant's evidence."""
    cache.flush()
    note = cache._store.get_note(tenant, "evidence")
    return json.loads(note) if note else {}


def plan_it(cache: PlanCache, prompt: str, what: str, tenant: str = "default") -> None:
    """Look `prompt` up and let it be planned, as a caller with a planner does."""
    if not cache.lookup(prompt, tenant=tenant):
        cache.store(prompt, plan(what), tenant=tenant)


def test_a_planned_miss_labels_its_neighbors(bounded: PlanCache) -> None:
    plan_it(bounded, "sales by state", "state")
    plan_it(bounded, "sales by state and city", "both")
    plan_it(bounded, "overall sales by state", "state")
    written = evidence(bounded)
    assert (written["labels"], written["same"]) == (2, 1)
    words = written["words"]
    assert isinstance(words, dict)
    assert isinstance(words["other"], dict)
    assert words["same"] == {"overall": 1.0}
    assert words["other"].keys() >= {"and", "city"}


def test_a_prompt_that_was_never_looked_up_labels_nothing(bounded: PlanCache) -> None:
    bounded.store("sales by state", plan("state"))
    bounded.store("sales by state and city", plan("both"))
    assert evidence(bounded) == {}


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


def test_wrong_feedback_is_evidence(bounded: PlanCache) -> None:
    bounded.store("total sales by state", plan("state"))
    bounded.store("sales by city", plan("city"))
    found = bounded.lookup("please show the total sales by state")
    assert isinstance(found, Hit)
    assert found.tier == "semantic"
    bounded.feedback(found, right=False)
    record = evidence(bounded)["record"]
    assert isinstance(record, dict)
    assert record["same"] == {}
    assert record["other"]


def test_a_hit_that_was_planned_all_the_same_weighs_more_than_a_word_about_it(
    bounded: PlanCache,
) -> None:
    pulls = []
    for tenant in ("explored", "told"):
        bounded.store("total sales by state", plan("state"), tenant=tenant)
        bounded.store("sales by city", plan("city"), tenant=tenant)
        found = bounded.lookup("please show the total sales by state", tenant=tenant)
        assert isinstance(found, Hit)
        if tenant == "explored":
            assert not bounded.audit(found, decode(plan("another")))
        else:
            bounded.feedback(found, right=False)
        precision = bounded.evidence(tenant=tenant).precision
        assert precision is not None
        pulls.append(float(precision.sum()))
    assert pulls[0] > 2 * pulls[1] > 0


def test_a_refusal_says_how_probable_a_wrong_plan_is_and_in_which_words(bounded: PlanCache) -> None:
    bounded.store("unpaid invoices", plan("unpaid"))
    bounded.store("customers late", plan("late"))
    missed = bounded.lookup("customers unpaid")
    assert isinstance(missed, Miss)
    assert missed.reason == "risk"
    assert "wrong with probability 0." in missed.explain()
    assert "differs in" in missed.explain()


def test_a_word_that_no_entry_has_and_a_turned_condition_are_refused(bounded: PlanCache) -> None:
    bounded.store("sales by state", plan("state"))
    for asked, word in [("sales by state without tax", "without"), ("sales by state sia", "sia")]:
        missed = bounded.lookup(asked)
        assert isinstance(missed, Miss)
        assert missed.reason == "words"
        assert repr(word) in missed.explain()


def test_a_template_that_two_plans_claim_is_contested(bounded: PlanCache) -> None:
    bounded.store("show sales by state", plan("one"))
    assert bounded.lookup("show sales by state")
    bounded.store("list sales by state", plan("other"))
    missed = bounded.lookup("show sales by state")
    assert isinstance(missed, Miss)
    assert missed.reason == "contested"


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
