import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from semcache.errors import StoreCorrupt
from semcache.stores.disk.store import DiskStore
from semcache.testing import make_record

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]


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
