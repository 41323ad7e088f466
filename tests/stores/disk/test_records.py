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


@pytest.mark.parametrize(
    ("column", "place"),
    [
        ("records.body", 0),
        ("records.body", -1),
        ("records.keys", 3),
        ("records.labels", 0),
        ("records.checksum", 31),
        ("records.created_s", 0),
        ("vectors.embedding", 5),
        ("vectors.embedding", -1),
    ],
)
def test_a_record_with_a_flipped_byte_is_set_aside_and_the_others_stay(
    stored: Path, column: str, place: int, flip: Flip
) -> None:
    flip(stored, f"{column}/acme/b", place)
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
    flip(stored, "records.body/acme/b", 1)
    flip(stored, "records.body/acme/c", 1)
    with closing(DiskStore.open(stored)) as store:
        assert [r.id for r in store.find("acme", "template:b")] == []
        assert [r.id for r in store.scan("acme")] == ["a"]
        assert (store.count("acme"), store.set_aside_count("acme")) == (1, 2)
    assert caplog.text.count("is not what was written") == 2


@pytest.mark.parametrize("place", [0, -1])
def test_reading_page_by_page_passes_over_a_damaged_record_with_a_warning(
    stored: Path, place: int, caplog: pytest.LogCaptureFixture, flip: Flip
) -> None:
    flip(stored, "records.body/acme/b", place)
    with closing(DiskStore.open(stored)) as store:
        assert [[r.id for r in page] for page in store.pages("acme", size=1)] == [["a"], ["c"]]
        assert (store.count("acme"), store.set_aside_count("acme")) == (2, 1)
    assert caplog.text.count("is not what was written") == 1


def test_a_damaged_record_is_replaced_and_removed_as_any_other(stored: Path, flip: Flip) -> None:
    for name in ("a", "b"):
        flip(stored, f"records.keys/acme/{name}", 3)
    with closing(DiskStore.open(stored)) as store:
        assert store.put(make_record("a", keys=("new",), labels=())).replaced
        assert store.remove("acme", ["b"]) == 1
        assert [r.id for r in store.find("acme", "schema:s")] == ["c"]
        assert list(store.labelled("acme", "tag:sales")) == ["c"]
        assert store.put(make_record("d"), bounds=Bounds(1)).evicted == ("c", "a")


def test_a_record_in_another_records_place_is_not_served(stored: Path, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute("DELETE FROM records WHERE id = 'b'")
        connection.execute("UPDATE records SET id = 'b' WHERE id = 'a'")
    with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="record"):
        store.get("acme", "b")


def test_a_key_that_leads_astray_serves_nothing_of_another_tenant(
    stored: Path, database: Connect
) -> None:
    with closing(DiskStore.open(stored)) as store:
        store.put(make_record("x", tenant="other", keys=("schema:s",)))
        with database(stored) as connection:
            connection.execute("UPDATE keys SET tenant = 'acme' WHERE tenant = 'other'")
        assert [r.tenant for r in store.find("acme", "schema:s")] == ["acme"] * 3
        assert store.get("other", "x") is not None


def test_a_damaged_count_is_counted_anew_by_compacting(stored: Path, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute("UPDATE tenants SET entries = 900, bytes = 3")
        connection.execute("UPDATE state SET entries = -4")
    with closing(DiskStore.open(stored)) as store:
        store.shrink()
        assert store.count("acme") == store.room().entries == 3
        assert store.put(make_record("d"), bounds=Bounds(4)).evicted == ()


def test_a_record_that_cannot_be_set_aside_is_still_told(
    stored: Path, flip: Flip, database: Connect
) -> None:
    flip(stored, "records.body/acme/b", 1)
    with closing(DiskStore.open(stored, busy_timeout_s=0.01)) as store, database(stored) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(StoreCorrupt):
                store.get("acme", "b")
