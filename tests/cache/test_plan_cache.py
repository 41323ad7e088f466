import json
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Hit, Miss, Operation, Parameter, PlanCache
from semcache.binding.codecs import alike
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    BindingError,
    EmbeddingError,
    ForeignDirectory,
    InvalidInput,
    InvalidParameter,
    InvalidPlan,
    InvalidPrompt,
    InvalidSettings,
    NewerFormat,
    NotActionable,
    StoreUnavailable,
)
from semcache.events import (
    EntriesRemoved,
    EntryStored,
    LookupFinished,
    PhaseFinished,
    TierFailed,
)
from semcache.ports import Vectors
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver
from tests.caching import cache_over
from tests.calling import calling, given_input

YEAR = Parameter("year", "2024", mention="2024")


plan = partial(calling, "sales")


def catalog(summary: str = "Sales of a year.", **properties: Json) -> Catalog:
    schema: JsonObject = {"type": "object", "properties": properties or {"year": {}}}
    return Catalog([Operation("sales", summary, schema, effect="read")])


# What is kept ────────────────────────────────────────────────────────────────────────────────────


# specs: D-1
def test_what_is_embedded_names_no_value(cache: PlanCache, embedder: HashEmbedder) -> None:
    params = {"year": "2024", "city": "Springfield", "order": "ORD456"}
    cache.store("visits to Springfield in 2024 for ORD456", plan(**params), params=params)
    cache.lookup("trips to Shelbyville in 2023", params={"city": "Shelbyville", "year": "2023"})
    said = " ".join(embedder.texts).casefold()
    assert len(embedder.texts) == 2
    assert not [w for w in ("2024", "springfield", "ord456", "shelbyville", "2023") if w in said]
    assert "<city>" in said


# specs: C-14, D-1
@pytest.mark.parametrize(
    "changed",
    [catalog("Sales of a given year."), catalog(year={"type": "string"})],
    ids=["summary", "schema"],
)
def test_a_changed_operation_makes_every_entry_of_before_a_miss(
    changed: Catalog, tmp_path: Path, clock: FakeClock
) -> None:
    with PlanCache.open(
        tmp_path, catalog=catalog(), embedder=HashEmbedder(), clock=clock
    ) as before:
        before.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert before.lookup("sales in 2023")
    with PlanCache.open(tmp_path, catalog=changed, embedder=HashEmbedder(), clock=clock) as after:
        found = after.lookup("sales in 2023")
        assert isinstance(found, Miss)
        assert found.reason == "catalog"
        assert found.nearest is not None
        assert found.nearest.template == "sales in <year>"
        after.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert after.lookup("sales in 2023")
    with PlanCache.open(
        tmp_path, catalog=catalog(), embedder=HashEmbedder(), clock=clock
    ) as before:
        assert before.lookup("sales in 2023")


def test_a_plan_that_was_stored_again_replaces_the_one_before(
    cache: PlanCache, observer: RecordingObserver
) -> None:
    first = cache.store("sales in 2024", plan(year="2024", currency="USD"), params=[YEAR])
    again = cache.store("sales in 2024", plan(year="2024", currency="EUR"), params=[YEAR])
    assert (again.id, again.replaced, first.replaced) == (first.id, True, False)
    assert given_input(cache.lookup("sales in 2023")) == {"year": "2023", "currency": "EUR"}
    assert [stored.replaced for stored in observer.of(EntryStored)] == [False, True]


def test_a_plan_that_fixes_a_value_keeps_one_entry_a_value(cache: PlanCache) -> None:
    for year, report in (("2024", "r-24"), ("2023", "r-23")):
        cache.store(f"report of {year}", plan(report=report), params={"year": year})
    assert len(cache.entries()) == 2
    assert given_input(cache.lookup("report of 2024")) == {"report": "r-24"}
    assert given_input(cache.lookup("report of 2023")) == {"report": "r-23"}
    assert not cache.lookup("report of 2022")


def test_the_examples_of_an_entry_are_the_last_sixteen_that_differ(cache: PlanCache) -> None:
    for year in [*range(2000, 2020), 2019]:
        cache.store(f"sales in {year}", plan(year=str(year)), params={"year": str(year)})
    (entry,) = cache.entries()
    assert [example[0].value for example in entry.examples] == [str(y) for y in range(2004, 2020)]


# specs: D-3
def test_tenants_see_nothing_of_each_other(cache: PlanCache, tmp_path: Path) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR], tenant="acme", tags=["t"])
    found = cache.lookup("sales in 2024", tenant="umbrella")
    assert isinstance(found, Miss)
    assert (found.reason, found.trace.candidates) == ("empty", ())
    assert cache.stats(tenant="umbrella").entries == 0
    assert cache.entries(tenant="umbrella") == ()
    assert cache.invalidate(tag="t", tenant="umbrella") == 0
    assert cache.clear(tenant="umbrella") == 0
    assert cache.tenants() == ("acme",)
    assert cache.lookup("sales in 2024", tenant="acme")


def test_what_one_tenant_taught_is_no_value_for_another(cache: PlanCache) -> None:
    params = {"city": "Springfield"}
    cache.store("visits to Springfield", plan(**params), params=params, tenant="acme")
    cache.store("visits to Springfield", plan(town="x"), tenant="umbrella")
    assert cache.lookup("visits to Springfield", tenant="umbrella").trace.template == (
        "visits to springfield"
    )


# specs: C-14
@pytest.mark.parametrize("language", ["ja", ""])
def test_a_plan_for_another_language_is_a_reference_and_never_served(
    cache: PlanCache, language: str
) -> None:
    stored = cache.store("sales in 2024", plan(year="2024"), params=[YEAR], grounding="en")
    found = cache.lookup("Sales in 2023", grounding=language)
    assert isinstance(found, Miss)
    assert found.nearest is not None
    assert (found.reason, found.nearest.entry) == ("grounding", stored.id)
    assert cache.lookup("Sales in 2023", grounding="en")


# specs: D-3
def test_groundings_are_told_apart_by_their_name(cache: PlanCache) -> None:
    cache.store("refund my order", plan(way="a"), grounding="returns/1")
    cache.store("refund my order", plan(way="b"), grounding="returns/2")
    assert given_input(cache.lookup("refund my order", grounding="returns/1")) == {"way": "a"}
    assert given_input(cache.lookup("refund my order", grounding="returns/2")) == {"way": "b"}
    found = cache.lookup("refund my order")
    assert isinstance(found, Miss)
    assert found.reason == "grounding"


# Time and size ───────────────────────────────────────────────────────────────────────────────────


# specs: D-7
def test_a_plan_is_served_until_its_time_is_over_however_often_it_was(
    clock: FakeClock, embedder: HashEmbedder
) -> None:
    with PlanCache.open(embedder=embedder, clock=clock, ttl_s=100) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        clock.advance(99.9)
        assert cache.lookup("sales in 2023")
        clock.advance(0.1)
        assert not cache.lookup("sales in 2023")
        assert not cache.lookup("show me the sales in 2023")


# specs: D-7
def test_expired_entries_are_swept_and_counted(
    clock: FakeClock, observer: RecordingObserver
) -> None:
    with PlanCache.open(
        embedder=HashEmbedder(), clock=clock, observer=observer, ttl_s=100
    ) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        clock.advance(60)
        cache.store("visits in 2024", plan(year="2024"), params=[YEAR])
        clock.advance(60)
        assert cache.remove_expired() == 1
        assert cache.remove_expired() == 0
        assert [entry.prompt for entry in cache.entries()] == ["visits in 2024"]
        assert observer.of(EntriesRemoved) == [
            EntriesRemoved(tenant="default", count=1, why="expired")
        ]


# specs: A-13, D-7
def test_removing_says_how_many_were_there(cache: PlanCache) -> None:
    stored = cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    assert cache.invalidate(id=stored.id) == 1
    assert cache.invalidate(id=stored.id) == 0
    assert not cache.lookup("sales in 2024")


def test_entries_are_invalidated_by_tag_operation_and_key_or_any_of_them(
    observer: RecordingObserver,
) -> None:
    with PlanCache.open(
        catalog=catalog(), embedder=HashEmbedder(), clock=FakeClock(), observer=observer
    ) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR], tags=["a", "b"])
        cache.store("sales of 2024", plan(year="2024"), params=[YEAR], tags=["b"])
        assert cache.invalidate(tag="none", operation="none", key="none") == 0
        assert cache.invalidate(tag="a") == 1
        assert cache.invalidate(tag="b", operation="sales") == 1
        assert [e.count for e in observer.of(EntriesRemoved)] == [1, 1]


def test_invalidating_nothing_in_particular_is_refused(cache: PlanCache) -> None:
    with pytest.raises(InvalidInput, match="`clear` removes all"):
        cache.invalidate()


# specs: A-13
def test_clearing_says_how_many_went_and_forgets_counts_too(cache: PlanCache) -> None:
    for what in ("sales", "visits"):
        for tenant in ("acme", "umbrella"):
            cache.store(f"{what} in 2024", plan(year="2024"), params=[YEAR], tenant=tenant)
    cache.lookup("sales in 2023", tenant="acme")
    assert cache.clear(tenant="acme") == 2
    assert cache.stats(tenant="acme").lookups == 0
    assert cache.clear() == 2
    assert cache.tenants() == ()


# Feedback ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("params", [None, {"city": "Springfield"}])
def test_a_semantic_hit_that_was_wrong_is_never_served_to_that_template_again(
    embedder: HashEmbedder, params: dict[str, str] | None
) -> None:
    cache = PlanCache.open(embedder=embedder, max_wrong=0.05)
    city = {"city": "Shelbyville"}
    stored = cache.store("trips to Shelbyville", plan(**city), params=city if params else {})
    ask = "show me the trips to Springfield" if params else "show me the trips to Shelbyville"
    wrong = cache.lookup(ask, params=params)
    assert isinstance(wrong, Hit)
    assert wrong.tier == "semantic"
    cache.feedback(wrong, right=False)
    found = cache.lookup(ask, params=params)
    assert isinstance(found, Miss)
    assert found.reason == "vetoed"
    assert cache.lookup("trips to Shelbyville", params=params and city)
    assert cache.invalidate(id=stored.id) == 1


def test_a_template_hit_that_was_wrong_removes_the_plan(
    cache: PlanCache, observer: RecordingObserver
) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    cache.feedback(cache.lookup("sales in 2023"), right=False)
    assert cache.entries() == ()
    assert [e.why for e in observer.of(EntriesRemoved)] == ["feedback"]
    assert cache.stats().feedback_wrong == 1


# Restart ─────────────────────────────────────────────────────────────────────────────────────────


# specs: D-13
def test_plans_counts_and_vetoes_survive_a_restart_without_embedding(
    tmp_path: Path, clock: FakeClock
) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock, max_wrong=0.05) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        cache.store("visits in 2024", plan(of="visits", year="2024"), params=[YEAR])
        for year in (2019, 2020, 2021):
            cache.feedback(cache.lookup(f"please show me sales in {year}"), right=True)
        cache.feedback(cache.lookup("please show me visits in 2024"), right=False)
    embedder = HashEmbedder()
    with PlanCache.open(tmp_path, embedder=embedder, clock=clock, max_wrong=0.05) as cache:
        found = cache.lookup("sales in 2023")
        assert given_input(found) == {"year": "2023"}
        assert embedder.texts == []
        assert given_input(cache.lookup("please show sales in 2022")) == {"year": "2022"}
        assert len(embedder.texts) == 1
        vetoed = cache.lookup("please show me visits in 2021")
        assert isinstance(vetoed, Miss)
        assert vetoed.reason in {"vetoed", "risk"}  # the evidence survived too, and is asked first
        assert cache.stats().stored == 3  # two plans, and a prompt that joined


def test_another_embedder_finds_old_plans_by_exact_keys_only(
    tmp_path: Path, clock: FakeClock
) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(dim=64), clock=clock) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    with PlanCache.open(tmp_path, embedder=HashEmbedder(dim=32), clock=clock) as cache:
        assert cache.lookup("sales in 2023")
        missed = cache.lookup("show me sales in 2023")
        assert not missed
        assert "no entry has a vector of hash:32; `semcache doctor --repair`" in missed.explain()
        cache.store("sales in 2022", plan(year="2022"), params={"year": "2022"})
        assert cache.lookup("show me sales in 2023")


# specs: A-13
@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_corrupt_entry_is_a_miss_set_aside_and_the_rest_is_served(
    place: int, tmp_path: Path, clock: FakeClock
) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
        bad = cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        cache.store("visits in 2024", plan(year="2024"), params=[YEAR])
    _flip(tmp_path, bad.id, place)
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
        assert not cache.lookup("sales in 2023")
        assert cache.lookup("visits in 2023")
        assert [entry.prompt for entry in cache.entries()] == ["visits in 2024"]
        assert cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert cache.lookup("sales in 2023")


def _flip(directory: Path, entry: str, place: int) -> None:
    with closing(sqlite3.connect(directory / "semcache.db", isolation_level=None)) as database:
        rows = database.execute(
            "SELECT rowid, CAST(body AS BLOB) FROM records WHERE id = ?", (entry,)
        ).fetchall()
        assert len(rows) == 1
        content = bytearray(rows[0][1])
        content[place] ^= 0x81
        database.execute(
            "UPDATE records SET body = CAST(? AS TEXT) WHERE rowid = ?",
            (bytes(content), rows[0][0]),
        )


def test_a_record_that_is_no_entry_of_ours_is_passed_over(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    cache = cache_over(store, clock=clock)
    stored = cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    record = store.get("default", stored.id)
    assert record is not None
    store.put(replace(record, body='{"format": 99}'))
    assert not cache.lookup("sales in 2023")
    assert not cache.lookup("show me sales in 2023")
    assert cache.entries() == ()
    assert "found 99" in caplog.text


# Bad input ───────────────────────────────────────────────────────────────────────────────────────

BAD_PROMPTS = ["", " \n\t", None, 7, b"sales", "a\0b", "a\ud800b", "x" * 2**20]
CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE


@pytest.mark.parametrize("prompt", BAD_PROMPTS, ids=lambda p: repr(p)[:12])
def test_a_prompt_that_cannot_be_used_is_named_and_changes_nothing(
    cache: PlanCache, prompt: Any
) -> None:
    for call in (lambda: cache.lookup(prompt), lambda: cache.store(prompt, plan())):
        with pytest.raises(InvalidPrompt):
            call()
    assert (cache.entries(), cache.stats().lookups) == ((), 0)


def test_a_prompt_of_thousands_of_mentions_is_stored_and_found(cache: PlanCache) -> None:
    numbers = " ".join(str(n % 97) for n in range(4000))
    assert cache.store(f"add {numbers}", plan())
    assert cache.lookup(f"add {numbers}")
    assert not cache.lookup(f"add {numbers[:-2]} 5")


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"year": float("nan")}, InvalidParameter),
        ({"year": CYCLE}, InvalidParameter),
        ({"year": {1, 2}}, InvalidParameter),
        ({"": "2024"}, InvalidParameter),
        ({"year": "a\ud800"}, InvalidParameter),
        ({"orderId": 1, "order_id": 2}, InvalidParameter),
    ],
)
def test_values_that_cannot_be_used_are_named_and_change_nothing(
    cache: PlanCache, params: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        cache.lookup("sales", params=params)
    with pytest.raises(error):
        cache.store("sales", plan(), params=params)
    assert cache.entries() == ()


@pytest.mark.parametrize(
    "bad",
    [
        "not json",
        "[1]",
        "{}" * 2,
        7,
        None,
        {"start_node": {"route": "nowhere"}},
        {"start_node": "call"},
        {"x": float("nan")},
        {"x": CYCLE},
        {1: "x"},
        {"x": {1, 2}},
    ],
    ids=repr,
)
def test_a_plan_that_cannot_be_used_is_refused_and_changes_nothing(
    cache: PlanCache, bad: Any
) -> None:
    with pytest.raises(InvalidPlan):
        cache.store("sales", bad)
    assert cache.entries() == ()


def test_a_refused_plan_tells_everything_that_is_wrong_with_it() -> None:
    broken = plan(year="2024") | {"start_node": {"route": "nowhere"}}
    with (
        PlanCache.open(catalog=catalog(year={"type": "integer"}), clock=FakeClock()) as cache,
        pytest.raises(InvalidPlan) as caught,
    ):
        cache.store("sales in 2024", broken)
    assert len(caught.value.findings) == 4
    assert "leads to 'nowhere', which is no node (and 3 more)" in str(caught.value)


def test_a_prompt_without_a_word_of_the_catalog_is_stored_and_found_all_the_same() -> None:
    with PlanCache.open(catalog=catalog(), embedder=HashEmbedder(), clock=FakeClock()) as cache:
        assert not cache.lookup("wie war 2023")
        assert cache.store("wie war 2024", plan(year="2024"), params=[YEAR])
        assert given_input(cache.lookup("wie war 2023")) == {"year": "2023"}


def test_a_plan_that_calls_an_unknown_operation_is_refused() -> None:
    with (
        PlanCache.open(catalog=Catalog([]), clock=FakeClock()) as cache,
        pytest.raises(InvalidPlan, match="sales"),
    ):
        cache.store("sales", plan())


# specs: D-10
def test_a_plan_that_says_it_cannot_be_done_is_not_kept(cache: PlanCache) -> None:
    final = {"id": "final", "input": {"error": "nobody sells moons"}}
    with pytest.raises(NotActionable, match="nobody sells moons"):
        cache.store("buy the moon", {"tasks": [{"id": "task0", "input": {}}, final]})
    assert cache.entries() == ()


def test_a_placeholder_for_nothing_is_refused(cache: PlanCache) -> None:
    with pytest.raises(BindingError, match="month"):
        cache.store("sales in 2024", plan(month="{{params.month}}"), params=[YEAR])
    assert cache.entries() == ()


@pytest.mark.parametrize("threshold", [-1.01, 1.01, float("nan"), "0.9", True])
def test_a_threshold_out_of_range_is_refused(cache: PlanCache, threshold: Any) -> None:
    for use in (PlanCache.open, partial(cache.lookup, "sales")):
        with pytest.raises(InvalidSettings, match="threshold is"):
            use(threshold=threshold)


def test_a_stricter_threshold_holds_where_risk_decides_too(tmp_path: Path) -> None:
    with PlanCache.open(embedder=HashEmbedder(), max_wrong=0.3, threshold=0.5) as cache:
        cache.store("sales by state in 2024", plan(year="2024"), params=[YEAR])
        query = "please show me the sales by state in 2023"
        found = cache.lookup(query)
        assert isinstance(found, Hit)
        assert (found.tier, found.risk is None) == ("semantic", False)
        assert cache.lookup(query, threshold=found.score - 0.01)
        missed = cache.lookup(query, threshold=found.score)
        assert isinstance(missed, Miss)
        assert missed.reason == "threshold"


def test_a_directory_that_is_not_ours_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ForeignDirectory):
        PlanCache.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_of_a_later_version_is_left_as_it_was(tmp_path: Path) -> None:
    PlanCache.open(tmp_path, embedder=HashEmbedder()).close()
    manifest = tmp_path / "manifest.json"
    later = json.loads(manifest.read_text(encoding="utf-8")) | {"version": 99}
    manifest.write_text(json.dumps(later), encoding="utf-8")
    with pytest.raises(NewerFormat):
        PlanCache.open(tmp_path)
    assert json.loads(manifest.read_text(encoding="utf-8")) == later


# Trouble ─────────────────────────────────────────────────────────────────────────────────────────


class FailingStore(MemoryStore):
    """A store in which chosen calls fail while `down` is set."""

    def __init__(self, *calls: str) -> None:
        super().__init__()
        self.calls = calls
        self.down = True

    def __getattribute__(self, name: str) -> Any:
        if name in {"calls", "down"} or name.startswith("__"):
            return super().__getattribute__(name)
        if self.__dict__.get("down") and name in self.__dict__.get("calls", ()):

            def fail(*_: object, **__: object) -> None:
                raise StoreUnavailable(f"{name} does not work: disk full")

            return fail
        return super().__getattribute__(name)


READING = ("last_change", "changes", "scan", "pages", "get", "find", "get_note")
WRITING = ("put", "put_note", "update_note", "remove", "clear")


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize("calls", [READING, WRITING, READING + WRITING], ids=["r", "w", "rw"])
def test_a_store_that_fails_is_a_miss_events_and_one_warning(
    calls: Sequence[str], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    observer, store = RecordingObserver(), FailingStore(*calls)
    cache = cache_over(store, clock=clock, observer=observer)
    for _ in range(3):
        found = cache.lookup("sales in 2024")
        assert isinstance(found, Miss)
        stored = cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert (bool(stored), "disk full" in stored.reason) == (False, True)
        assert cache.invalidate(tag="x") == 0
    assert {failed.part for failed in observer.of(TierFailed)} == {"store"}
    assert len(_warnings(caplog)) == 1
    cache.close()


def test_a_store_that_works_again_is_used_again_and_may_warn_again(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = FailingStore(*READING, *WRITING)
    cache = cache_over(store, clock=clock)
    cache.lookup("sales in 2023")
    store.down = False
    assert cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    assert cache.lookup("sales in 2023")
    cache.flush()
    store.down = True
    found = cache.lookup("sales in 2023")
    assert isinstance(found, Miss)
    assert found.reason == "store_failed"
    assert len(_warnings(caplog)) == 2


def test_an_embedder_that_fails_leaves_the_exact_tiers_working(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, scripted_embedder: Any
) -> None:
    observer = RecordingObserver()
    broken = scripted_embedder(EmbeddingError("no weights"))
    cache = cache_over(MemoryStore(), clock=clock, observer=observer, embedder=broken)
    stored = cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    assert bool(stored)
    assert stored.reason == "not embedded: no weights"
    assert cache.lookup("sales in 2023")
    assert not cache.lookup("show me sales in 2023")
    assert [failed.part for failed in observer.of(TierFailed)] == ["embedder"]
    assert len(_warnings(caplog)) == 1


def test_an_embedder_that_fails_at_lookup_is_a_miss_that_says_so(
    clock: FakeClock, scripted_embedder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = scripted_embedder(
        (1, 0), EmbeddingError("out of memory"), EmbeddingError("out of memory"), (1, 0)
    )
    cache = cache_over(MemoryStore(), clock=clock, embedder=embedder)
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    for _ in range(2):
        found = cache.lookup("show me sales in 2023")
        assert isinstance(found, Miss)
        assert found.reason == "embedder_failed"
    assert cache.lookup("show me sales in 2023")
    assert len(_warnings(caplog)) == 1


class WrongVectors:
    """An embedder whose vectors nobody can compare."""

    fingerprint = "wrong"

    def __init__(self, *rows: Sequence[float]) -> None:
        self._rows = [*rows]

    def embed(self, texts: Sequence[str]) -> Vectors:
        row = self._rows[0] if len(self._rows) == 1 else self._rows.pop(0)
        return np.array([row for _ in texts], np.float32)


@pytest.mark.parametrize("rows", [[(1, 0), (1, 0, 0)], [(1, 0), (float("nan"), 0)]])
def test_vectors_that_cannot_be_compared_are_a_failing_embedder(
    rows: list[Sequence[float]], clock: FakeClock
) -> None:
    observer = RecordingObserver()
    cache = cache_over(MemoryStore(), clock=clock, observer=observer, embedder=WrongVectors(*rows))
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    found = cache.lookup("show me sales in 2023")
    assert isinstance(found, Miss)
    assert found.reason == "embedder_failed"
    assert "InvalidVector" in observer.of(TierFailed)[0].error


def test_a_vector_that_cannot_be_kept_leaves_the_plan_to_the_exact_tiers(clock: FakeClock) -> None:
    nothing = WrongVectors((float("nan"), 0))
    cache = cache_over(MemoryStore(), clock=clock, embedder=nothing)
    assert cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    assert cache.lookup("sales in 2023")
    assert not cache.lookup("show me sales in 2023")


def test_an_observer_that_raises_breaks_nothing_and_is_logged_once(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []

    def observer(event: object) -> None:
        seen.append(event)
        raise RuntimeError("the dashboard is down")

    with PlanCache.open(embedder=HashEmbedder(), clock=clock, observer=observer) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert cache.lookup("sales in 2023")
    assert len(seen) > 1
    assert len(_warnings(caplog)) == 1


# Events, logs and counts ─────────────────────────────────────────────────────────────────────────


def test_every_lookup_is_reported_with_its_phases(
    cache: PlanCache, observer: RecordingObserver
) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    cache.lookup("show me sales in 2023", run="run-7")
    cache.lookup("returns by state", run="run-8")
    hit, miss = observer.of(LookupFinished)
    assert (hit.run, hit.tier, hit.reason, hit.key) == ("run-7", "semantic", "", "sales in <year>")
    assert (miss.run, miss.tier, miss.reason) == ("run-8", None, "slots")
    phases = {event.phase for event in observer.of(PhaseFinished) if event.run == "run-7"}
    assert phases >= {"embed", "search", "gates", "bind", "check"}


def test_the_log_says_hit_or_miss_with_the_key(
    cache: PlanCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    with caplog.at_level(logging.INFO, "semcache"):
        cache.lookup("sales in 2023")
        cache.lookup("returns by state")
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("HIT template sales in <year>")
    assert said[1].startswith("MISS returns by state (")


def test_counts_add_up(cache: PlanCache) -> None:
    assert cache.stats().hit_rate == 0.0
    cache.lookup("sales in 2023")
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    cache.lookup("sales in 2023")
    cache.lookup("please show me sales in 2023")
    stats = cache.stats()
    assert (stats.entries, stats.stored, stats.lookups) == (1, 1, 3)
    assert (stats.hits, stats.misses) == ({"template": 1, "semantic": 1}, {"empty": 1})
    assert stats.hit_rate == pytest.approx(2 / 3)


# Properties ──────────────────────────────────────────────────────────────────────────────────────

WORDS = st.from_regex(r"[A-Z]{2,4}-?[0-9]{3,6}", fullmatch=True)
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(old=st.lists(WORDS, min_size=4, max_size=4, unique=True))
def test_a_hit_has_exactly_the_new_values_and_none_of_the_old(old: list[str]) -> None:
    was, now = old[:2], old[2:]
    with PlanCache.open(embedder=HashEmbedder(dim=8), clock=FakeClock()) as cache:
        params = {"customer": was[0], "order": was[1]}
        body = plan(who=was[0], what=[{"order": was[1]}], tags=["fixed"])
        cache.store(f"refund order {was[1]} of customer {was[0]}", body, params=params)
        found = cache.lookup(f"Please refund order {now[1]} of customer {now[0]}")
    if found:
        assert given_input(found) == {"who": now[0], "what": [{"order": now[1]}], "tags": ["fixed"]}


@settings(max_examples=60)
@given(first=ANY_JSON, second=ANY_JSON)
def test_given_values_of_any_shape_are_the_ones_that_are_served(first: Json, second: Json) -> None:
    with PlanCache.open(embedder=HashEmbedder(dim=8), clock=FakeClock()) as cache:
        cache.store("do it", plan(name=first), params={"name": first})
        found = cache.lookup("do it", params={"name": second})
        again = cache.lookup("do it", params={"name": first})
    assert given_input(again) == {"name": first}
    if found:  # a plan that has text there takes the number 0 as the text "0"
        served = given_input(found)
        assert isinstance(served, dict)
        assert alike(served["name"], second)


@settings(max_examples=100)
@given(
    prompt=st.text(max_size=200)
    | st.text(alphabet="in the 2024 <year> {{params.x}} $.a '\"“”-,.?\n", max_size=80),
    stored=st.sampled_from(
        ["sales in 2024", "total <year> of 2024", "the file 'a b' of 5 May 2024"]
    ),
)
def test_a_lookup_of_any_text_answers_or_says_what_is_wrong_with_it(
    prompt: str, stored: str
) -> None:
    with PlanCache.open(embedder=HashEmbedder(dim=8), clock=FakeClock()) as cache:
        cache.store(stored, plan(year="2024"), params=[YEAR])
        try:
            found = cache.lookup(prompt)
        except InvalidInput:
            return
        assert isinstance(found, Hit | Miss)
        assert found.explain()
        json.dumps(found.to_dict())
