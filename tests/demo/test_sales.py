import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from semcache.canonical import Json, digest
from semcache.demo import sales


def _content(connection: sqlite3.Connection) -> str:
    rows: list[Json] = []
    for table in ("customers", "products", "orders"):
        # The names are the three above.
        read = connection.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608 - see above
        rows += [list(row) for row in read]
    return digest(rows)


def test_the_rows_are_those_of_every_other_machine(database: sqlite3.Connection) -> None:
    assert _content(database) == CONTENT


def test_a_file_holds_the_same_rows(database: sqlite3.Connection, tmp_path: Path) -> None:
    sales.create(tmp_path / "sales.sqlite")
    with closing(sqlite3.connect(tmp_path / "sales.sqlite")) as written:
        assert _content(written) == _content(database)


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        sales.create(path)
    assert path.read_text(encoding="utf-8") == "mine"


def test_every_state_and_city_has_customers(database: sqlite3.Connection) -> None:
    states = {state for (state,) in database.execute("SELECT state FROM customers")}
    cities = {city for (city,) in database.execute("SELECT city FROM customers")}
    assert states == set(sales.STATES)
    assert cities == {city for listed in sales.CITIES.values() for city in listed}


CONTENT = "788d8cd765c2d6cb942a6fd3930902093ca248b44650d8f0a91f56f3b04121c2"
"""Digest of every row; a change of the data is a change of every figure in the documentation."""
