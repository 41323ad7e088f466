"""A store on disk with three records, and what reaches past it to its rows."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from semcache.stores.disk.store import DiskStore
from semcache.testing import make_record
from tests.conftest import Postgres


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The directory of a store with the records a, b and c of acme, and a note."""
    with closing(DiskStore.open(tmp_path / "store")) as store:
        for name in ("a", "b", "c"):
            store.put(make_record(name, keys=(f"template:{name}", "schema:s")))
        store.put_note("acme", "stats", '{"hits":1}')
    return tmp_path / "store"


@pytest.fixture
def database() -> Callable[[Path], AbstractContextManager[sqlite3.Connection]]:
    """What connects to the database of a directory as anybody could."""
    return _database


@contextmanager
def _database(directory: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(directory / "semcache.db", isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections to databases that are opened from now on."""
    connect, opened = sqlite3.connect, list[sqlite3.Connection]()

    def noted(path: str, **options: Any) -> sqlite3.Connection:
        opened.append(connect(path, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return opened


@pytest.fixture
def flip() -> Callable[[Path, str, int], None]:
    """What damages the byte at a place of a column of a row, `table.column/tenant/id or name`."""
    return _flip


def _flip(directory: Path, row: str, place: int) -> None:
    with _database(directory) as connection:
        where, tenant, name = row.split("/")
        table, column = where.split(".")
        key = "name" if table == "notes" else "id"
        found = connection.execute(
            f"SELECT typeof({column}), CAST({column} AS BLOB) FROM {table}"  # noqa: S608 - ours
            f" WHERE tenant = ? AND {key} = ?",
            (tenant, name),
        ).fetchone()
        content = bytearray(found[1])
        content[place] ^= 0x81  # the high bit too, so that it is no longer UTF-8
        value = f"CAST(? AS {found[0]})"
        connection.execute(
            f"UPDATE {table} SET {column} = {value} WHERE tenant = ? AND {key} = ?",  # noqa: S608
            (bytes(content), tenant, name),
        )


@pytest.fixture
def schema(postgres: Postgres, tmp_path: Path) -> str:
    """Where in the database the test may have its tables; not there yet."""
    return postgres.schema(tmp_path)
