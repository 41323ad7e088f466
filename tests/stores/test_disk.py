import json
import multiprocessing
import os
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import diskcache
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import (
    ForeignDirectory,
    InvalidInput,
    NewerFormat,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from semcache.ports import Bounds, PlanStore
from semcache.stores.disk import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.stores.places import escape, sortable, unescape
from semcache.testing import SharedStoreContract, make_record, same_records


class TestDiskStore(SharedStoreContract):
    def make(self, tmp_path: Path) -> PlanStore:
        return DiskStore(tmp_path / "store")


@contextmanager
def database(directory: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as connection:
        yield connection


def flip(directory: Path, row: str, place: int) -> None:
    with database(directory) as connection:
        select = "SELECT CAST(value AS BLOB) FROM Cache WHERE key = ?"
        content = bytearray(connection.execute(select, (row,)).fetchone()[0])
        content[place] ^= 0x81  # the high bit too, so that it is no longer UTF-8
        update = "UPDATE Cache SET value = CAST(? AS TEXT) WHERE key = ?"
        connection.execute(update, (bytes(content), row))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with closing(DiskStore.open(tmp_path / "store")) as store:
        for name in ("a", "b", "c"):
            store.put(make_record(name, keys=(f"template:{name}", "schema:s")))
        store.put_note("acme", "stats", '{"hits":1}')
    return tmp_path / "store"


class TestOpening:
    def test_making_a_store_touches_nothing_before_it_is_used(self, tmp_path: Path) -> None:
        DiskStore(tmp_path / "store").close()
        assert list(tmp_path.iterdir()) == []

    def test_a_new_directory_is_marked_and_its_owners_alone(self, tmp_path: Path) -> None:
        DiskStore.open(tmp_path / "a" / "store").close()
        directory = tmp_path / "a" / "store"
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        assert (manifest["format"], manifest["version"]) == ("semcache-store", 1)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert set(modes.values()) == {0o600}

    def test_an_empty_directory_becomes_a_store(self, tmp_path: Path) -> None:
        with closing(DiskStore.open(tmp_path)) as store:
            assert store.count("acme") == 0

    @pytest.mark.parametrize("name", ["notes.txt", "cache.db", ".hidden", "sub"])
    def test_a_directory_with_something_else_in_it_is_left_alone(
        self, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / name).write_text("mine", encoding="utf-8")
        with pytest.raises(ForeignDirectory, match=f"{name!r}.*name an empty"):
            DiskStore.open(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_another_diskcache_is_not_taken_over(self, tmp_path: Path) -> None:
        diskcache.Cache(str(tmp_path)).close()
        with pytest.raises(ForeignDirectory):
            DiskStore.open(tmp_path, repair=True)

    @pytest.mark.parametrize(
        "manifest", [b"", b"\xff", b"{", b"[]", b'{"format":"other","version":1}', b'{"version":1}']
    )
    def test_a_manifest_that_is_not_ours_is_left_alone(
        self, tmp_path: Path, manifest: bytes
    ) -> None:
        (tmp_path / "manifest.json").write_bytes(manifest)
        with pytest.raises(ForeignDirectory, match=r"manifest\.json"):
            DiskStore.open(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]

    def test_a_file_is_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in (tmp_path / "file", tmp_path / "file" / "store"):
            with pytest.raises(ForeignDirectory, match="not a directory"):
                DiskStore.open(path)

    def test_a_newer_format_is_refused_with_the_way_out(self, stored: Path) -> None:
        newer = {"format": "semcache-store", "version": 2}
        (stored / "manifest.json").write_text(json.dumps(newer), encoding="utf-8")
        with pytest.raises(NewerFormat, match=r"has format 2.*upgrade semcache"):
            DiskStore.open(stored)

    def test_what_a_process_left_that_died_while_claiming_is_no_obstacle(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "manifest.jsonab12.tmp").write_text("{", encoding="utf-8")
        DiskStore.open(tmp_path).close()

    def test_a_directory_that_cannot_be_written_is_unavailable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        # Tests may run as root, whom no file mode stops.
        monkeypatch.setattr(Path, "mkdir", refuse)
        with pytest.raises(StoreUnavailable, match="Permission denied"):
            DiskStore.open(tmp_path / "store")

    def test_a_path_that_diskcache_would_change_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ELSEWHERE", "x")
        with pytest.raises(InvalidInput, match="ELSEWHERE"):
            DiskStore.open(tmp_path / "$ELSEWHERE")
        assert not (tmp_path / "x").exists()


class TestTrouble:
    def test_a_locked_database_is_unavailable_and_nothing_is_lost(self, stored: Path) -> None:
        with (
            closing(DiskStore(stored, busy_timeout_s=0.05)) as store,
            database(stored) as connection,
        ):
            store.count("acme")
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                store.put(make_record("d"))
            assert store.get("acme", "a") is not None
            connection.execute("ROLLBACK")
            assert store.put(make_record("d")).change == 4

    def test_a_database_locked_at_opening_is_unavailable(self, stored: Path) -> None:
        with database(stored) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                DiskStore.open(stored, busy_timeout_s=0.05)

    def test_a_read_only_database_is_unavailable_for_writing_alone(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store:
            store._db()._sql("PRAGMA query_only = 1")
            with pytest.raises(StoreUnavailable, match="read-only"):
                store.put(make_record("d"))
            assert store.get("acme", "a") is not None
            store._db()._sql("PRAGMA query_only = 0")
            store.put(make_record("d"))

    def test_a_read_only_database_is_unavailable_at_opening(
        self, stored: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connect = sqlite3.connect

        def read_only(path: Path, **options: object) -> sqlite3.Connection:
            return connect(f"file:{path}?mode=ro", uri=True, **options)  # type: ignore[call-overload, no-any-return]

        monkeypatch.setattr(sqlite3, "connect", read_only)
        with pytest.raises(StoreUnavailable, match="read-only"):
            DiskStore.open(stored)

    def test_a_full_disk_is_unavailable_and_leaves_no_half(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store:
            pages = store._db()._sql("PRAGMA page_count").fetchone()[0]
            store._db()._sql(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(StoreUnavailable, match="full"):
                store.put(make_record("d", keys=("schema:s",), body='"' + "x" * 100_000 + '"'))
            assert [r.id for r in store.find("acme", "schema:s")] == ["c", "b", "a"]
            assert (store.count("acme"), store.last_change()) == (3, 3)
            store._db()._sql(f"PRAGMA max_page_count = {pages + 1000}")
            store.put(make_record("d"))

    def test_a_store_whose_tables_are_gone_is_corrupt(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store:
            store._db()._sql("DROP TABLE Cache")
            with pytest.raises(StoreCorrupt, match=r"no such table.*repair=True"):
                store.get("acme", "a")

    def test_a_failure_in_the_middle_of_a_put_leaves_nothing(
        self, stored: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("interrupted")

        with closing(DiskStore.open(stored)) as store:
            monkeypatch.setattr(store._db(), "point", fail)
            with pytest.raises(StoreUnavailable, match="interrupted"):
                store.put(make_record("a", keys=("new",)), bounds=Bounds(1))
            monkeypatch.undo()
            assert same_records(store.get("acme", "a"), store.scan("acme")[0])
            assert list(store.find("acme", "new")) == []
            assert (store.count("acme"), store.last_change()) == (3, 3)
            assert store.put(make_record("d")).change == 4

    def test_a_key_that_is_not_unicode_is_bad_input(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store, pytest.raises(InvalidInput):
            store.get("\ud800", "a")


class TestDamage:
    @pytest.mark.parametrize("place", [0, 40, 64, 70, 200, -20, -1])
    def test_a_record_with_a_flipped_byte_is_set_aside_and_the_others_stay(
        self, stored: Path, place: int
    ) -> None:
        flip(stored, "r/acme/b", place)
        with closing(DiskStore.open(stored)) as store:
            with pytest.raises(StoreCorrupt, match=r"'b' of tenant 'acme'.*set aside"):
                store.get("acme", "b")
            assert store.get("acme", "b") is None
            assert (store.count("acme"), store.set_aside_count("acme")) == (2, 1)
            assert list(store.labelled("acme", "tag:sales")) == ["a", "c"]
            assert [c.kind for c in store.changes(3) or ()] == ["remove"]

    def test_finding_and_scanning_pass_over_a_damaged_record_with_a_warning(
        self, stored: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        flip(stored, "r/acme/b", 100)
        flip(stored, "r/acme/c", 100)
        with closing(DiskStore.open(stored)) as store:
            assert [r.id for r in store.find("acme", "template:b")] == []
            assert [r.id for r in store.scan("acme")] == ["a"]
            assert (store.count("acme"), store.set_aside_count("acme")) == (1, 2)
        assert caplog.text.count("is not what was written") == 2

    def test_a_damaged_record_is_replaced_and_removed_as_any_other(self, stored: Path) -> None:
        for name in ("a", "b"):
            flip(stored, f"r/acme/{name}", 100)
        with closing(DiskStore.open(stored)) as store:
            assert store.put(make_record("a", keys=("new",), labels=())).replaced
            assert store.remove("acme", ["b"]) == 1
            assert [r.id for r in store.find("acme", "schema:s")] == ["c"]
            assert list(store.labelled("acme", "tag:sales")) == ["c"]
            assert store.put(make_record("d"), bounds=Bounds(1)).evicted == ("c", "a")

    def test_a_record_in_another_records_place_is_not_served(self, stored: Path) -> None:
        with database(stored) as connection:
            connection.execute("DELETE FROM Cache WHERE key = 'r/acme/b'")
            connection.execute("UPDATE Cache SET key = 'r/acme/b' WHERE key = 'r/acme/a'")
        with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="record"):
            store.get("acme", "b")

    def test_a_key_that_leads_astray_serves_nothing_of_another_tenant(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store:
            store.put(make_record("x", tenant="other", keys=("schema:s",)))
            with database(stored) as connection:
                connection.execute("UPDATE Cache SET value = 'r/other/x' WHERE key LIKE 'k/acme/%'")
            assert list(store.find("acme", "schema:s")) == []
            assert store.get("other", "x") is not None

    def test_a_damaged_count_is_counted_anew(self, stored: Path) -> None:
        flip(stored, "n/acme", -1)
        with closing(DiskStore.open(stored)) as store:
            assert store.count("acme") == 3
            assert store.put(make_record("d"), bounds=Bounds(4)).evicted == ()
            assert store.count("acme") == 4

    def test_an_age_that_leads_to_no_record_does_not_stop_eviction(self, stored: Path) -> None:
        with database(stored) as connection:
            connection.execute("UPDATE Cache SET value = 'x' WHERE key LIKE 'o/acme/%/a'")
        with closing(DiskStore.open(stored)) as store:
            assert store.put(make_record("d"), bounds=Bounds(3)).evicted == ("b",)
            assert store.put(make_record("e"), bounds=Bounds(3)).evicted == ("c",)
            assert store.count("acme") == 3

    def test_a_record_that_cannot_be_set_aside_is_still_told(self, stored: Path) -> None:
        flip(stored, "r/acme/b", 100)
        with closing(DiskStore.open(stored)) as store:
            store._db()._sql("PRAGMA query_only = 1")
            for _ in range(2):
                with pytest.raises(StoreCorrupt):
                    store.get("acme", "b")

    def test_a_damaged_note_is_told_once_and_begins_anew(self, stored: Path) -> None:
        flip(stored, "m/acme/stats", 70)
        with closing(DiskStore.open(stored)) as store:
            with pytest.raises(StoreCorrupt, match="note 'stats'"):
                store.get_note("acme", "stats")
            assert store.get_note("acme", "stats") is None
            assert store.set_aside_count("acme") == 1

    def test_a_damaged_note_is_updated_from_nothing_with_a_warning(
        self, stored: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        flip(stored, "m/acme/stats", 70)
        with closing(DiskStore.open(stored)) as store:
            store.update_note("acme", "stats", lambda old: f"was {old}")
            assert store.get_note("acme", "stats") == "was None"
        assert "note 'stats'" in caplog.text

    @pytest.mark.parametrize("value", ["{", "[1,2]", "[1,2,3]"])
    def test_changes_that_cannot_be_read_are_forgotten(self, stored: Path, value: str) -> None:
        with database(stored) as connection:
            connection.execute("UPDATE Cache SET value = ? WHERE key LIKE 'c/%2'", (value,))
        with closing(DiskStore.open(stored)) as store:
            assert store.changes(0) is None
            assert [c.number for c in store.changes(2) or ()] == [3]

    def test_a_change_without_a_number_is_corrupt(self, stored: Path) -> None:
        with database(stored) as connection:
            connection.execute("UPDATE Cache SET key = 'c/x' WHERE key LIKE 'c/%3'")
        with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="'c/x'"):
            store.last_change()

    def test_a_database_that_is_none_is_corrupt_and_says_the_way_out(self, stored: Path) -> None:
        (stored / "cache.db").write_bytes(b"not a database at all" * 100)
        with pytest.raises(StoreCorrupt, match="repair=True"):
            DiskStore.open(stored)
        assert (stored / "cache.db").read_bytes().startswith(b"not a")

    def test_repairing_keeps_the_damaged_files_and_begins_anew(
        self, stored: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        for number in (1, 2):
            (stored / "cache.db").write_bytes(b"not a database at all" * 100)
            with closing(DiskStore.open(stored, repair=True)) as store:
                assert store.count("acme") == 0
                assert f"damaged-{number}" in store.repaired
                store.put(make_record("a"))
            assert (stored / f"damaged-{number}" / "cache.db").read_bytes().startswith(b"not a")
        assert "was damaged" in caplog.text

    def test_repairing_finds_a_page_that_opening_does_not_look_at(self, tmp_path: Path) -> None:
        with closing(DiskStore.open(tmp_path / "store")) as store:
            for i in range(200):
                store.put(make_record(f"{i}"))
        path = tmp_path / "store" / "cache.db"
        content = bytearray(path.read_bytes())
        content[40 * 4096 : 80 * 4096] = b"\xff" * (40 * 4096)
        path.write_bytes(content)
        with closing(DiskStore.open(tmp_path / "store")) as store, pytest.raises(StoreCorrupt):
            store.scan("acme")
        with closing(DiskStore.open(tmp_path / "store", repair=True)) as store:
            assert (store.count("acme"), "damaged-1" in store.repaired) == (0, True)

    def test_repairing_what_is_whole_changes_nothing(self, stored: Path) -> None:
        with closing(DiskStore.open(stored, repair=True)) as store:
            assert (store.count("acme"), store.repaired) == (3, "")


class TestTextAlone:
    def test_diskcache_is_never_let_pickle_anything(self, stored: Path) -> None:
        with closing(DiskStore.open(stored)) as store:
            for value in ({"a": 1}, None, 1.5, b"x", ("a",)):
                with pytest.raises(StoreError, match="expected text"):
                    store._db().set("key", value)
                with pytest.raises(StoreError, match="expected text"):
                    store._db().set(value, "value")

    def test_a_pickle_that_somebody_planted_is_never_loaded(self, stored: Path) -> None:
        planted = pickle.dumps(make_record("a"))
        with database(stored) as connection:
            connection.execute("UPDATE Cache SET mode = 4, value = ?", (planted,))
            connection.execute(
                "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 4, ?)", (planted, planted)
            )
        with closing(DiskStore.open(stored)) as store:
            with pytest.raises(StoreCorrupt):
                store.get("acme", "a")
            with pytest.raises(StoreCorrupt):
                store._db().get("r/acme/b")
            with pytest.raises(StoreCorrupt):
                list(store._db())

    def test_large_bodies_stay_in_the_database_and_its_transactions(self, tmp_path: Path) -> None:
        record = make_record("a", body=json.dumps(["long"] * 200_000))
        with closing(DiskStore.open(tmp_path / "store")) as store:
            store.put(record)
            assert same_records(store.get("acme", "a"), record)
        assert all(path.is_file() for path in (tmp_path / "store").iterdir())


def test_changes_that_were_forgotten_are_not_made_up(tmp_path: Path) -> None:
    with closing(DiskStore(tmp_path / "store", kept_changes=3)) as store:
        for name in "abcde":
            store.put(make_record(name))
        assert store.changes(1) is None
        assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]


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


@settings(max_examples=40, deadline=None)
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


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2))
def test_numbers_sort_as_text_as_they_do_as_numbers(pair: list[float]) -> None:
    low, high = sorted(pair)
    if low < high:
        assert sortable(low) < sortable(high)


@given(st.text(), st.text())
def test_two_names_never_share_a_place(left: str, right: str) -> None:
    assert unescape(escape(left)) == left
    assert (escape(left) == escape(right)) == (left == right)
    assert "/" not in escape(left)
    assert escape(left)


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
from semcache.stores.disk import DiskStore
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
