import json
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import StoreCorrupt
from semcache.ports import Bounds, PlanStore
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import SharedStoreContract, make_record, same_records

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]
Flip = Callable[[Path, str, int], None]


class TestDiskStore(SharedStoreContract):
    def make(self, tmp_path: Path) -> PlanStore:
        return DiskStore(tmp_path / "store")


class TestDamage:
    def test_a_damaged_note_is_told_once_and_begins_anew(self, stored: Path, flip: Flip) -> None:
        flip(stored, "notes.sealed/acme/stats", 70)
        with closing(DiskStore.open(stored)) as store:
            with pytest.raises(StoreCorrupt, match="note 'stats'"):
                store.get_note("acme", "stats")
            assert store.get_note("acme", "stats") is None
            assert store.set_aside_count("acme") == 1

    def test_a_damaged_note_is_updated_from_nothing_with_a_warning(
        self, stored: Path, caplog: pytest.LogCaptureFixture, flip: Flip
    ) -> None:
        flip(stored, "notes.sealed/acme/stats", 70)
        with closing(DiskStore.open(stored)) as store:
            store.update_note("acme", "stats", lambda old: f"was {old}")
            assert store.get_note("acme", "stats") == "was None"
        assert "note 'stats'" in caplog.text


class TestTextAlone:
    def test_a_pickle_that_somebody_planted_is_never_loaded(
        self, stored: Path, database: Connect
    ) -> None:
        with database(stored) as connection:
            planted = pickle.dumps(make_record("a"))
            connection.execute("UPDATE records SET body = ?, keys = ?", (planted, planted))
        with closing(DiskStore.open(stored)) as store:
            with pytest.raises(StoreCorrupt):
                store.get("acme", "a")
            assert list(store.scan("acme")) == []

    def test_large_bodies_stay_in_the_database_and_its_transactions(self, tmp_path: Path) -> None:
        record = make_record("a", body=json.dumps(["long"] * 200_000))
        with closing(DiskStore.open(tmp_path / "store")) as store:
            store.put(record)
            assert same_records(store.get("acme", "a"), record)
        assert all(path.is_file() for path in (tmp_path / "store").iterdir())


TENANTS = st.sampled_from(["acme", "a/c", ""])


IDS = st.sampled_from(["a", "b", "%", "x/y"])


STEPS = st.one_of(
    st.tuples(st.just("put"), TENANTS, IDS, st.sampled_from([1.0, -2.0, 3.5]), st.integers(1, 3)),
    st.tuples(st.just("remove"), TENANTS, st.lists(IDS, max_size=2)),
    st.tuples(st.just("clear"), st.none() | TENANTS),
)


def take(store: PlanStore, step: tuple[Any, ...]) -> object:
    match step:
        case "put", tenant, known, created_s, bound:
            keys = (f"k{created_s}", "all")
            record = make_record(known, tenant=tenant, created_s=created_s, keys=keys)
            return store.put(record, bounds=Bounds(bound))
        case "remove", tenant, ids:
            return store.remove(tenant, ids)
        case _:
            return store.clear(step[1])


def state(store: PlanStore) -> object:
    return [
        (
            tenant,
            store.count(tenant),
            [(r.id, r.change, r.created_s) for r in store.scan(tenant)],
            [r.id for r in store.find(tenant, "k1.0")],
            [r.id for r in store.find(tenant, "all")],
            list(store.labelled(tenant, "tag:sales")),
        )
        for tenant in store.tenants()
    ]


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=12))
def test_disk_and_memory_are_alike_after_any_steps(steps: list[tuple[Any, ...]]) -> None:
    memory = MemoryStore()
    with TemporaryDirectory() as directory, closing(DiskStore(directory)) as disk:
        for step in steps:
            assert take(disk, step) == take(memory, step)
            assert state(disk) == state(memory)
        assert sorted(disk.tenants()) == list(memory.tenants())
        assert {c.number for c in disk.changes(0) or ()} == {
            c.number for c in memory.changes(0) or ()
        }


def _fill(directory: Path, process: int) -> None:
    with closing(DiskStore.open(directory)) as store:
        for i in range(20):
            store.put(make_record(f"{process}-{i}"), bounds=Bounds(60))
            store.update_note("acme", "n", lambda old: str(int(old or 0) + 1))


def test_processes_that_open_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    arguments = [(tmp_path / "store", number) for number in range(4)]
    processes = [context.Process(target=_fill, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0] * 4
    with closing(DiskStore.open(tmp_path / "store")) as store:
        assert (store.count("acme"), store.get_note("acme", "n")) == (60, "80")
        changes = store.changes(0)
        assert changes is not None
        assert [change.number for change in changes] == list(range(1, 101))


WRITER = """
import sys
from semcache.ports import Bounds
from semcache.stores.disk.store import DiskStore
from semcache.testing import make_record

store = DiskStore.open(sys.argv[1])
for i in range(100_000):
    keys = (f"template:{i}", "schema:s")
    store.put(make_record(f"{i}", keys=keys, created_s=float(i)), bounds=Bounds(20))
    print(i, flush=True)
"""


@pytest.mark.parametrize("after", [1, 30, 75])
def test_a_writer_killed_at_any_moment_leaves_whole_records_alone(
    tmp_path: Path, after: int
) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    # The command is our own.
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: S603
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == after:
                os.kill(writer.pid, signal.SIGKILL)
                break
    with closing(DiskStore.open(tmp_path / "store")) as store:
        records = store.scan("acme")
        ids = [record.id for record in records]
        assert int(ids[-1]) >= after
        assert ids == [f"{i}" for i in range(int(ids[0]), int(ids[-1]) + 1)]
        assert len(ids) == store.count("acme") == min(20, int(ids[-1]) + 1)
        assert [r.id for r in store.find("acme", "schema:s")] == ids[::-1]
        assert sorted(store.labelled("acme", "tag:sales")) == sorted(ids)
        assert store.put(make_record("next")).change == len(store.changes(0) or ())


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM changes WHERE number = 2", "UPDATE changes SET number = 9 WHERE id = 'b'"],
)
def test_changes_with_a_gap_are_forgotten(stored: Path, damage: str, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute(damage)
    with closing(DiskStore.open(stored)) as store:
        assert store.changes(0) is None


def test_a_change_without_a_number_is_corrupt(stored: Path, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute("UPDATE state SET last_change = 'x'")
    with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="'x'"):
        store.last_change()


def test_changes_that_were_forgotten_are_not_made_up(tmp_path: Path) -> None:
    with closing(DiskStore(tmp_path / "store", kept_changes=3)) as store:
        for name in "abcde":
            store.put(make_record(name))
        assert store.changes(1) is None
        assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]
