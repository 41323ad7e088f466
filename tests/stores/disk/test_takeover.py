"""A directory of the first version of the format: tests/data/version1, written by 854ca32."""

import json
import multiprocessing
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from semcache.errors import ForeignDirectory, StoreUnavailable
from semcache.ports import Room
from semcache.stores.disk import takeover
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.disk.store import DiskStore
from semcache.testing import keep, make_record

DATA = Path(__file__).parent.parent.parent / "data"
WRITTEN: dict[str, Any] = json.loads((DATA / "version1.json").read_text(encoding="utf-8"))
"""What was in it, as the version that wrote it read it."""
TENANTS = ["50%/a b", "acme"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "version1", tmp_path / "store"))


def held(store: DiskStore) -> dict[str, Any]:
    """Return what a store holds, as the file has it."""

    def record(tenant: str, known: Any) -> dict[str, Any]:
        use = store.uses(tenant)[known.id]
        names = ("id", "body", "embedder", "created_s", "expires_s", "change", "cost_s")
        fields = {name: getattr(known, name) for name in names}
        fields |= {"keys": [*known.keys], "labels": [*known.labels]}
        fields |= {"vector": [float(number) for number in known.vector]}
        return fields | {"uses": use.count, "worth": use.worth}

    return {
        tenant: {
            "records": [record(tenant, known) for known in store.scan(tenant)],
            "statistics": store.get_note(tenant, "statistics"),
            "room": [store.room(tenant).entries, store.room(tenant).bytes],
        }
        for tenant in store.tenants()
    } | {"changes": [[c.number, c.tenant, c.id, c.kind] for c in store.changes(0) or ()]}


def test_all_of_it_is_there_under_the_numbers_that_it_had(old: Path) -> None:
    with closing(DiskStore.open(old)) as store:
        assert held(store) == WRITTEN
        assert [r.id for r in store.find("acme", store.scan("acme")[0].keys[0])]
        assert store.put(make_record("new")).change == WRITTEN["changes"][-1][0] + 1
    assert json.loads((old / "manifest.json").read_text(encoding="utf-8"))["version"] == 2
    assert not list(old.glob("cache.db*"))


def test_a_process_that_dies_on_the_way_leaves_what_was_there(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("_write_new", "_copy_changes", "mark"):
        monkeypatch.setattr(takeover, step, die)
        with pytest.raises(KeyboardInterrupt):
            DiskStore.open(old)
        monkeypatch.undo()
    assert not list(old.glob("*.tmp"))
    with closing(DiskStore.open(old)) as store:
        assert held(store) == WRITTEN


def _open(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        assert store.count("acme") == 3


def test_processes_that_take_it_over_at_once_take_it_over_once(old: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_open, args=(old,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 3


def test_an_earlier_semcache_that_has_it_open_finds_nothing_to_write_to(old: Path) -> None:
    with closing(sqlite3.connect(old / "cache.db", isolation_level=None)) as earlier:
        assert earlier.execute("SELECT count(*) FROM Cache").fetchone()[0]
        DiskStore.open(old).close()
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            earlier.execute("DELETE FROM Cache")


def test_one_that_an_earlier_semcache_is_writing_to_is_unavailable(old: Path) -> None:
    with closing(sqlite3.connect(old / "cache.db", isolation_level=None)) as earlier:
        earlier.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            DiskStore.open(old, busy_timeout_s=0.05)


def test_a_record_that_was_damaged_is_set_aside(old: Path) -> None:
    with closing(sqlite3.connect(old / "cache.db")) as database, database:
        database.execute("UPDATE Cache SET value = replace(value, 'sales', 'salts')")
    with closing(DiskStore.open(old)) as store:
        assert [store.count(tenant) for tenant in TENANTS] == [2, 2]
        assert [store.set_aside_count(tenant) for tenant in TENANTS] == [1, 1]


def test_a_frozen_one_is_refused_and_not_changed(old: Path) -> None:
    with pytest.raises(StoreUnavailable, match="open it once without `frozen`"):
        DiskStore.open(old, frozen=True)
    assert (old / "cache.db").read_bytes() == (DATA / "version1" / "cache.db").read_bytes()


def test_responses_are_not_taken_for_plans_nor_plans_for_responses(
    tmp_path: Path, old: Path
) -> None:
    with closing(DiskResponses(tmp_path / "new")) as responses:
        keep(responses, "a")
    old_responses = shutil.copytree(DATA / "responses1", tmp_path / "responses")
    for directory in (tmp_path / "new", Path(old_responses)):
        with pytest.raises(ForeignDirectory, match="responses"):
            DiskStore.open(directory)
    DiskStore.open(tmp_path / "plans").close()
    for directory in (tmp_path / "plans", old):
        with pytest.raises(ForeignDirectory, match="plans"):
            DiskResponses(directory).room()


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "responses1", tmp_path / "responses"))


def test_responses_are_there_with_their_groups_ages_and_order(responses: Path) -> None:
    with closing(DiskResponses(responses)) as store:
        assert [*store.keys()] == ["a/b", "c", "d"]
        assert [*store.keys(group="g")] == ["c"]
        assert store.room() == Room(3, 15)
        assert not store.has("d", now_s=1_000_000.0)
        assert [store.get(key, now_s=1_001.0) for key in ("a/b", "c", "d")] == [
            '"é 漢"', "null", "[1]"
        ]  # fmt: skip
    assert not list(responses.glob("cache.db*"))


def test_the_response_used_longest_ago_before_still_goes_first(responses: Path) -> None:
    with closing(DiskResponses(responses)) as store:
        assert keep(store, "new", limit=Room(3, 100)) == 1
        assert [*store.keys()] == ["a/b", "d", "new"]


def test_a_response_that_was_damaged_is_left_out(responses: Path) -> None:
    with closing(sqlite3.connect(responses / "cache.db")) as database, database:
        database.execute("UPDATE Cache SET value = replace(value, 'null', 'nil') WHERE key = 'e/c'")
        database.execute("UPDATE Cache SET value = '[1,2' WHERE key = 'a/d'")
    with closing(DiskResponses(responses)) as store:
        assert [store.get(key, now_s=1_001.0) for key in ("c", "d")] == [None, None]
        assert store.get("a/b", now_s=1_001.0) == '"é 漢"'
        assert store.room() == Room(1, 8)
