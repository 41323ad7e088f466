import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from semcache.errors import StoreCorrupt, StoreUnavailable
from semcache.ports import ResponseStore, Room
from semcache.stores.disk.responses import DiskResponses
from semcache.testing import ResponseStoreContract, keep


# specs: B-4, B-5
class TestDiskResponses(ResponseStoreContract):
    def make(self, tmp_path: Path) -> ResponseStore:
        return DiskResponses(tmp_path / "responses")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[DiskResponses]:
    with closing(DiskResponses(tmp_path / "r", busy_timeout_s=0.05)) as store:
        yield store


@pytest.fixture
def there(tmp_path: Path, here: DiskResponses) -> Iterator[DiskResponses]:
    """As another process has it: the same directory, another connection and memory."""
    with closing(DiskResponses(here.directory, busy_timeout_s=0.05)) as store:
        yield store


def damage(store: DiskResponses, statement: str) -> None:
    with closing(sqlite3.connect(store.directory / "semcache.db")) as connection, connection:
        connection.execute(statement)


def test_making_one_opens_nothing(tmp_path: Path) -> None:
    DiskResponses(tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_what_one_process_sets_and_removes_another_sees(
    here: DiskResponses, there: DiskResponses
) -> None:
    keep(here, "a", "1")
    assert there.get("a", now_s=0) == "1"
    there.remove(["a"])
    assert here.get("a", now_s=0) is None
    assert here.room() == Room(0, 0)


def test_a_use_keeps_a_text_alive_for_others_too(here: DiskResponses, there: DiskResponses) -> None:
    keep(here, "a", ttl_s=100)
    assert here.get("a", now_s=99)
    assert there.has("a", now_s=198)


def test_uses_that_were_only_noted_are_written_on_closing(
    here: DiskResponses, there: DiskResponses
) -> None:
    keep(here, "a")
    keep(here, "b")
    assert here.get("a", now_s=1)
    here.close()
    keep(there, "c", limit=Room(2, 100))
    assert list(there.keys()) == ["a", "c"]


def test_many_hits_write_seldom(here: DiskResponses) -> None:
    keep(here, "a")
    with closing(sqlite3.connect(here.directory / "semcache.db")) as other:
        before = other.execute("PRAGMA data_version").fetchone()
        for second in range(100):
            assert here.get("a", now_s=second)
        assert other.execute("PRAGMA data_version").fetchone() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE responses SET sealed = replace(sealed, 'good', 'evil') WHERE key = 'a'",
        "UPDATE responses SET sealed = CAST(x'ff00' AS TEXT) WHERE key = 'a'",
        "UPDATE responses SET sealed = x'ff00' WHERE key = 'a'",
        "UPDATE responses SET used_s = 'then' WHERE key = 'a'",
        "UPDATE responses SET ttl_s = 'soon' WHERE key = 'a'",
        "DELETE FROM responses WHERE key = 'a'",
        "UPDATE responses SET sealed = (SELECT max(sealed) FROM responses WHERE key = 'b')",
    ],
)
def test_a_text_that_is_not_what_was_written_is_a_miss_and_can_be_set_again(
    here: DiskResponses, statement: str
) -> None:
    keep(here, "a", '"good"')
    keep(here, "b", '"other"')
    damage(here, statement)
    assert here.get("a", now_s=0) is None
    keep(here, "a", '"good"')
    assert [here.get(key, now_s=0) for key in "ab"] == ['"good"', '"other"']
    assert here.room().entries == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE room SET entries = 'x'",
        "UPDATE room SET entries = -7",
        "UPDATE room SET entries = 900, bytes = 900000",
        "UPDATE responses SET used = 'zzz' WHERE used = 2",
        "UPDATE responses SET used = 9223372036854775807 WHERE used = 2",
        "UPDATE responses SET bytes = 'x' WHERE used = 1",
    ],
)
def test_damaged_books_are_kept_within_the_limit(here: DiskResponses, statement: str) -> None:
    limit = Room(2, 100)
    keep(here, "a", limit=limit)
    keep(here, "b", limit=limit)
    damage(here, statement)
    for key in "cdef":
        keep(here, key, limit=limit)
    assert here.room().entries == len(here.keys()) <= 2
    assert here.get("f", now_s=0) == "1"


def test_a_locked_database_still_reads_and_says_that_it_cannot_write(here: DiskResponses) -> None:
    keep(here, "a", ttl_s=10)
    with closing(sqlite3.connect(here.directory / "semcache.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert here.get("a", now_s=9) == "1"
        with pytest.raises(StoreUnavailable, match="locked"):
            keep(here, "b")
    keep(here, "b")


def test_a_file_that_is_no_database_is_said_to_be_damaged(here: DiskResponses) -> None:
    keep(here, "a")
    here.close()
    (here.directory / "semcache.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreCorrupt):
        DiskResponses(here.directory).get("a", now_s=0)
