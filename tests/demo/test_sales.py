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


def _one(connection: sqlite3.Connection, sql: str) -> object:
    return connection.execute(sql).fetchone()[0]


def test_two_databases_hold_the_same_rows(database: sqlite3.Connection) -> None:
    with closing(sales.memory()) as again:
        assert _content(again) == _content(database)


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


def test_there_are_at_least_five_thousand_orders_over_six_years(
    database: sqlite3.Connection,
) -> None:
    assert _one(database, "SELECT count(*) FROM orders") == sales.ORDERS >= 5000
    years = database.execute("SELECT DISTINCT substr(date, 1, 4) FROM orders ORDER BY 1").fetchall()
    assert [year for (year,) in years] == ["2020", "2021", "2022", "2023", "2024", "2025"]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("channel", sales.CHANNELS),
        ("payment_method", sales.PAYMENT_METHODS),
        ("status", sales.STATUSES),
    ],
)
def test_every_declared_value_occurs(
    database: sqlite3.Connection, column: str, values: tuple[str, ...]
) -> None:
    found = database.execute(f"SELECT DISTINCT {column} FROM orders")  # noqa: S608 - listed above
    assert {value for (value,) in found} == set(values)


def test_every_state_and_city_has_customers(database: sqlite3.Connection) -> None:
    states = {state for (state,) in database.execute("SELECT state FROM customers")}
    cities = {city for (city,) in database.execute("SELECT city FROM customers")}
    assert states == set(sales.STATES)
    assert cities == {city for listed in sales.CITIES.values() for city in listed}


def test_an_order_costs_at_most_its_price_times_its_quantity(
    database: sqlite3.Connection,
) -> None:
    joined = "SELECT max(o.amount / (p.price * o.quantity)) FROM orders o"
    share = _one(database, f"{joined} JOIN products p ON p.id = o.product_id")
    assert isinstance(share, float)
    assert 0 < share < 1.001


CONTENT = "788d8cd765c2d6cb942a6fd3930902093ca248b44650d8f0a91f56f3b04121c2"
"""Digest of every row; a change of the data is a change of every figure in the documentation."""
