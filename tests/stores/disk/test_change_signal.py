from contextlib import closing
from pathlib import Path

import psutil
import pytest

from semcache.stores.disk import store as disk_store
from semcache.stores.disk.store import SIGNAL, ChangeSignal, DiskStore
from semcache.stores.disk.tables import DiskTables
from semcache.testing import make_record


def test_all_that_share_a_directory_see_a_strike(tmp_path: Path) -> None:
    left, right = ChangeSignal(tmp_path), ChangeSignal(tmp_path)
    before = right.read()
    assert before == left.read()
    left.bump()
    assert right.read() == left.read() != before


def test_without_a_file_nothing_is_relied_on(tmp_path: Path) -> None:
    ticks = ChangeSignal(tmp_path / "missing")
    ticks.bump()
    assert ticks.read() is None


def test_a_file_cut_short_is_made_whole_at_opening(tmp_path: Path) -> None:
    ChangeSignal(tmp_path)
    (tmp_path / SIGNAL).write_bytes(b"")
    ticks = ChangeSignal(tmp_path)
    before = ticks.read()
    ticks.bump()
    assert ticks.read() != before


def test_who_may_only_read_hears_strikes_and_makes_none(tmp_path: Path) -> None:
    assert ChangeSignal(tmp_path, writable=False).read() is None
    assert not (tmp_path / SIGNAL).exists()
    writer, reader = ChangeSignal(tmp_path), ChangeSignal(tmp_path, writable=False)
    writer.bump()
    assert reader.read() == writer.read()
    reader.bump()
    assert reader.read() == writer.read()


def test_while_nothing_changes_the_database_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(DiskStore.open(tmp_path / "store")) as store:
        store.put(make_record("a"))
        asked: list[int] = []
        last = DiskTables.last_change

        def counting(tables: DiskTables) -> int:
            asked.append(1)
            return last(tables)

        monkeypatch.setattr(DiskTables, "last_change", counting)
        monkeypatch.setattr(disk_store, "RECHECK_S", 1e9)
        assert [store.last_change() for _ in range(5)] == [1] * 5
        assert len(asked) <= 1


def test_a_change_that_was_never_told_is_seen_when_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        closing(DiskStore.open(tmp_path / "store")) as killed,
        closing(DiskStore.open(tmp_path / "store")) as other,
    ):
        assert other.last_change() == 0
        monkeypatch.setattr(ChangeSignal, "bump", lambda _: None)
        killed.put(make_record("a"))
        monkeypatch.setattr(disk_store, "RECHECK_S", 0.0)
        assert other.last_change() == 1


def test_a_change_is_seen_at_once_however_long_nobody_looks_by_himself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_store, "RECHECK_S", 1e9)
    with (
        closing(DiskStore.open(tmp_path / "store")) as left,
        closing(DiskStore.open(tmp_path / "store")) as right,
    ):
        for number in range(1, 20):
            (left, right)[number % 2].put(make_record("a"))
            assert left.last_change() == right.last_change() == number


def test_a_closed_store_has_no_file_open(tmp_path: Path) -> None:
    store = DiskStore.open(tmp_path / "s")
    store.put(make_record("a"))
    store.close()
    assert not [f for f in psutil.Process().open_files() if f.path.startswith(str(tmp_path))]
