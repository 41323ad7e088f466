import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from semcache.errors import (
    ForeignDirectory,
    InvalidInput,
    NewerFormat,
    StoreCorrupt,
    StoreUnavailable,
)
from semcache.ports import Bounds
from semcache.stores.disk.store import DiskStore
from semcache.stores.disk.tables import DiskTables
from semcache.testing import make_record, same_records

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]


class TestOpening:
    def test_making_a_store_touches_nothing_before_it_is_used(self, tmp_path: Path) -> None:
        DiskStore(tmp_path / "store").close()
        assert list(tmp_path.iterdir()) == []

    def test_a_new_directory_is_marked_and_its_owners_alone(self, tmp_path: Path) -> None:
        DiskStore.open(tmp_path / "a" / "store").close()
        directory = tmp_path / "a" / "store"
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        assert (manifest["format"], manifest["version"]) == ("semcache-store", 2)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert set(modes.values()) == {0o600}

    @pytest.mark.parametrize("name", ["notes.txt", "cache.db", "semcache.db", ".hidden", "sub"])
    def test_a_directory_with_something_else_in_it_is_left_alone(
        self, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / name).write_text("mine", encoding="utf-8")
        with pytest.raises(ForeignDirectory, match=f"{name!r}.*name an empty"):
            DiskStore.open(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    @pytest.mark.parametrize(
        "manifest",
        [
            b"",
            b"\xff",
            b"{",
            b"[]",
            b'{"format":"other","version":1}',
            b'{"version":1}',
            b'{"format":"semcache-store","version":true}',
            b'{"format":"semcache-store","version":0}',
        ],
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
        newer = {"format": "semcache-store", "version": 3}
        (stored / "manifest.json").write_text(json.dumps(newer), encoding="utf-8")
        with pytest.raises(NewerFormat, match=r"has format 3.*upgrade semcache"):
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

    def test_a_database_that_is_not_ours_is_left_alone(
        self, tmp_path: Path, database: Connect
    ) -> None:
        with database(tmp_path) as connection:
            connection.execute("CREATE TABLE mine (x)")
        manifest = {"format": "semcache-store", "version": 2}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with pytest.raises(ForeignDirectory, match="tables that semcache did not make"):
            DiskStore.open(tmp_path)

    def test_tables_of_a_later_version_are_refused(self, stored: Path, database: Connect) -> None:
        with database(stored) as connection:
            connection.execute("PRAGMA user_version = 99")
        with pytest.raises(NewerFormat, match="version 99"):
            DiskStore.open(stored)


class TestTrouble:
    def test_a_database_locked_at_opening_is_read_and_not_written(
        self, stored: Path, database: Connect
    ) -> None:
        with database(stored) as connection:
            connection.execute("BEGIN IMMEDIATE")
            with closing(DiskStore.open(stored, busy_timeout_s=0.05)) as store:
                assert store.get("acme", "a") is not None
                with pytest.raises(StoreUnavailable, match="locked"):
                    store.remove("acme", ["a"])

    def test_a_database_that_cannot_be_written_is_served_with_a_warning_until_it_can(
        self, stored: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        connect: Any = sqlite3.connect

        def read_only(path: str, **options: Any) -> sqlite3.Connection:
            if not path.startswith("file:"):
                error = sqlite3.OperationalError("unable to open database file")
                error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
                raise error
            found: sqlite3.Connection = connect(path, **options)
            return found

        monkeypatch.setattr(sqlite3, "connect", read_only)
        with closing(DiskStore.open(stored)) as store:
            assert "served as it is" in caplog.text
            assert store.get("acme", "a") is not None
            with pytest.raises(StoreUnavailable, match="cannot be opened"):
                store.put(make_record("d"))
            monkeypatch.undo()
            assert store.put(make_record("d")).change == 4
            assert store.get("acme", "d") is not None

    def test_a_full_disk_is_unavailable_and_leaves_no_half(
        self, stored: Path, connections: list[sqlite3.Connection]
    ) -> None:
        with closing(DiskStore.open(stored)) as store:
            body = '"' + "x" * 100_000 + '"'
            connection = connections[-1]
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(StoreUnavailable, match="full"):
                store.put(make_record("d", keys=("schema:s",), body=body))
            assert [r.id for r in store.find("acme", "schema:s")] == ["c", "b", "a"]
            assert (store.count("acme"), store.last_change()) == (3, 3)
            connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
            store.put(make_record("d"))

    def test_a_store_whose_tables_are_gone_is_corrupt(
        self, stored: Path, database: Connect
    ) -> None:
        with closing(DiskStore.open(stored)) as store:
            with database(stored) as connection:
                connection.execute("DROP TABLE records")
            with pytest.raises(StoreCorrupt, match=r"no such table.*repair=True"):
                store.get("acme", "a")

    def test_a_failure_in_the_middle_of_a_put_leaves_nothing(
        self, stored: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("interrupted")

        with closing(DiskStore.open(stored)) as store:
            monkeypatch.setattr(DiskTables, "tell", fail)
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


class TestRepair:
    def test_a_database_that_is_none_is_corrupt_and_says_the_way_out(self, stored: Path) -> None:
        (stored / "semcache.db").write_bytes(b"not a database at all" * 100)
        with pytest.raises(StoreCorrupt, match="repair=True"):
            DiskStore.open(stored)
        assert (stored / "semcache.db").read_bytes().startswith(b"not a")

    def test_repairing_keeps_the_damaged_files_and_begins_anew(
        self, stored: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        for number in (1, 2):
            (stored / "semcache.db").write_bytes(b"not a database at all" * 100)
            with closing(DiskStore.open(stored, repair=True)) as store:
                assert store.count("acme") == 0
                assert f"damaged-{number}" in store.repaired
                store.put(make_record("a"))
            assert (stored / f"damaged-{number}" / "semcache.db").read_bytes().startswith(b"not a")
        assert "was damaged" in caplog.text

    def test_repairing_finds_a_page_that_opening_does_not_look_at(self, tmp_path: Path) -> None:
        with closing(DiskStore.open(tmp_path / "store")) as store:
            for i in range(200):
                store.put(make_record(f"{i}"))
        path = tmp_path / "store" / "semcache.db"
        content = bytearray(path.read_bytes())
        content[20 * 4096 :] = b"\xff" * (len(content) - 20 * 4096)
        path.write_bytes(content)
        with closing(DiskStore.open(tmp_path / "store")) as store, pytest.raises(StoreCorrupt):
            store.scan("acme")
        with closing(DiskStore.open(tmp_path / "store", repair=True)) as store:
            assert (store.count("acme"), "damaged-1" in store.repaired) == (0, True)

    def test_repairing_what_is_whole_changes_nothing(self, stored: Path) -> None:
        with closing(DiskStore.open(stored, repair=True)) as store:
            assert (store.count("acme"), store.repaired) == (3, "")
