import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from semcache.errors import StoreCorrupt
from semcache.ports import Bounds
from semcache.stores.disk.store import DiskStore
from semcache.testing import make_record

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]
Flip = Callable[[Path, str, int], None]


@pytest.mark.parametrize("place", [0, 40, 64, 70, 200, -20, -1])
def test_a_record_with_a_flipped_byte_is_set_aside_and_the_others_stay(
    stored: Path, place: int, flip: Flip
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
    stored: Path, caplog: pytest.LogCaptureFixture, flip: Flip
) -> None:
    flip(stored, "r/acme/b", 100)
    flip(stored, "r/acme/c", 100)
    with closing(DiskStore.open(stored)) as store:
        assert [r.id for r in store.find("acme", "template:b")] == []
        assert [r.id for r in store.scan("acme")] == ["a"]
        assert (store.count("acme"), store.set_aside_count("acme")) == (1, 2)
    assert caplog.text.count("is not what was written") == 2


@pytest.mark.parametrize("place", [0, 66, 77, 100, -1])
def test_reading_page_by_page_passes_over_a_damaged_record_with_a_warning(
    stored: Path, place: int, caplog: pytest.LogCaptureFixture, flip: Flip
) -> None:
    flip(stored, "r/acme/b", place)
    with closing(DiskStore.open(stored)) as store:
        assert [[r.id for r in page] for page in store.pages("acme", size=1)] == [["a"], ["c"]]
        assert (store.count("acme"), store.set_aside_count("acme")) == (2, 1)
    assert caplog.text.count("is not what was written") == 1


def test_a_damaged_record_is_replaced_and_removed_as_any_other(stored: Path, flip: Flip) -> None:
    for name in ("a", "b"):
        flip(stored, f"r/acme/{name}", 100)
    with closing(DiskStore.open(stored)) as store:
        assert store.put(make_record("a", keys=("new",), labels=())).replaced
        assert store.remove("acme", ["b"]) == 1
        assert [r.id for r in store.find("acme", "schema:s")] == ["c"]
        assert list(store.labelled("acme", "tag:sales")) == ["c"]
        assert store.put(make_record("d"), bounds=Bounds(1)).evicted == ("c", "a")


def test_a_record_in_another_records_place_is_not_served(stored: Path, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute("DELETE FROM Cache WHERE key = 'r/acme/b'")
        connection.execute("UPDATE Cache SET key = 'r/acme/b' WHERE key = 'r/acme/a'")
    with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="record"):
        store.get("acme", "b")


def test_a_key_that_leads_astray_serves_nothing_of_another_tenant(
    stored: Path, database: Connect
) -> None:
    with closing(DiskStore.open(stored)) as store:
        store.put(make_record("x", tenant="other", keys=("schema:s",)))
        with database(stored) as connection:
            connection.execute("UPDATE Cache SET value = 'r/other/x' WHERE key LIKE 'k/acme/%'")
        assert list(store.find("acme", "schema:s")) == []
        assert store.get("other", "x") is not None


def test_a_damaged_count_is_counted_anew(stored: Path, flip: Flip) -> None:
    flip(stored, "n/acme", -1)
    with closing(DiskStore.open(stored)) as store:
        assert store.count("acme") == 3
        assert store.put(make_record("d"), bounds=Bounds(4)).evicted == ()
        assert store.count("acme") == 4


def test_an_age_that_leads_to_no_record_does_not_stop_eviction(
    stored: Path, database: Connect
) -> None:
    with database(stored) as connection:
        connection.execute("UPDATE Cache SET value = 'x' WHERE key LIKE 'o/acme/%/a'")
    with closing(DiskStore.open(stored)) as store:
        assert store.put(make_record("d"), bounds=Bounds(3)).evicted == ("b",)
        assert store.put(make_record("e"), bounds=Bounds(3)).evicted == ("c",)
        assert store.count("acme") == 3


def test_a_record_that_cannot_be_set_aside_is_still_told(stored: Path, flip: Flip) -> None:
    flip(stored, "r/acme/b", 100)
    with closing(DiskStore.open(stored)) as store:
        store._opened.db()._sql("PRAGMA query_only = 1")
        for _ in range(2):
            with pytest.raises(StoreCorrupt):
                store.get("acme", "b")
