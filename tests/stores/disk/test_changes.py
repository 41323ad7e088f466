import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from semcache.errors import StoreCorrupt
from semcache.stores.disk.store import DiskStore
from semcache.testing import make_record

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]


@pytest.mark.parametrize("value", ["{", "[1,2]", "[1,2,3]"])
def test_changes_that_cannot_be_read_are_forgotten(
    stored: Path, value: str, database: Connect
) -> None:
    with database(stored) as connection:
        connection.execute("UPDATE Cache SET value = ? WHERE key LIKE 'c/%2'", (value,))
    with closing(DiskStore.open(stored)) as store:
        assert store.changes(0) is None
        assert [c.number for c in store.changes(2) or ()] == [3]


def test_a_change_without_a_number_is_corrupt(stored: Path, database: Connect) -> None:
    with database(stored) as connection:
        connection.execute("UPDATE Cache SET key = 'c/x' WHERE key LIKE 'c/%3'")
    with closing(DiskStore.open(stored)) as store, pytest.raises(StoreCorrupt, match="'c/x'"):
        store.last_change()


def test_changes_that_were_forgotten_are_not_made_up(tmp_path: Path) -> None:
    with closing(DiskStore(tmp_path / "store", kept_changes=3)) as store:
        for name in "abcde":
            store.put(make_record(name))
        assert store.changes(1) is None
        assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]
