import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog
from semcache.canonical import Json, JsonObject
from semcache.demo import operations, sales
from semcache.errors import OperationRefused

SPELLED = {
    "California": ("state", "CA"),
    "returns": ("status", "returned"),
    "web": ("channel", "online"),
}


@pytest.fixture(scope="session")
def catalog(database: sqlite3.Connection) -> Catalog:
    return operations.catalog(database)


@pytest.fixture(scope="session")
def denver(database: sqlite3.Connection) -> list[tuple[str, int]]:
    sql = "SELECT o.id, o.quantity FROM orders o, customers c WHERE c.id = customer_id AND city = ?"
    return sorted(database.execute(sql, ["Denver"]))


def _called(catalog: Catalog, name: str, arguments: JsonObject) -> Any:
    call = catalog.get(name).call
    assert call is not None
    return call(arguments)


def _ids(catalog: Catalog, *filters: Json) -> list[str]:
    rows = _called(catalog, "query_sales", {"filters": list(filters)})["data"]
    return [row["order_id"] for row in rows]


def test_every_closed_value_finds_orders(catalog: Catalog) -> None:
    for field, values in catalog.closed.items():
        for value in values:
            assert _ids(catalog, {"field": field, "operator": "=", "value": value}), value


@pytest.mark.parametrize("word", SPELLED)
def test_other_words_lead_to_a_value_of_a_closed_set(catalog: Catalog, word: str) -> None:
    field, value = SPELLED[word]
    assert catalog.synonyms[word] == value
    assert value in catalog.closed[field]


def test_figures_are_grouped_sorted_and_cut(catalog: Catalog) -> None:
    result = _called(
        catalog,
        "query_sales",
        {
            "filters": [{"field": "year", "operator": "=", "value": 2024}],
            "aggregates": [{"field": "amount", "function": "sum"}, {"function": "count"}],
            "group_by": ["category"],
            "order_by": [{"field": "amount", "direction": "desc"}],
            "limit": 3,
        },
    )
    sums = [row["sum_amount"] for row in result["data"]]
    assert list(result["data"][0]) == ["category", "sum_amount", "count"]
    assert sums == sorted(sums, reverse=True)
    assert (len(sums), result["total_records"], result["has_more"]) == (3, 8, True)


def test_products_are_listed_within_a_price(catalog: Catalog) -> None:
    listed = _called(catalog, "list_products", {"category": "Books", "max_price": 29.95})
    assert [row["name"] for row in listed] == ["Cookbook", "Crossword Collection", "Travel Guide"]
    dear = _called(catalog, "list_products", {"min_price": 400})
    assert [row["name"] for row in dear] == ["Standing Desk", "Tablet Computer"]


def test_a_year_given_as_text_finds_what_the_number_finds(catalog: Catalog) -> None:
    as_text = _ids(catalog, {"field": "year", "value": "2024"})
    assert as_text == _ids(catalog, {"field": "year", "value": 2024}) != []


COMPARED: dict[str, Callable[[float, float], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@settings(max_examples=60)
@given(operator=st.sampled_from(sorted(COMPARED)), bound=st.integers(0, 9))
def test_operators_mean_what_python_means(
    operator: str, bound: int, catalog: Catalog, denver: list[tuple[str, int]]
) -> None:
    found = _ids(
        catalog,
        {"field": "quantity", "operator": operator, "value": bound},
        {"field": "city", "operator": "=", "value": "Denver"},
    )
    wanted = [order for order, quantity in denver if COMPARED[operator](quantity, bound)]
    assert sorted(found) == wanted


def test_lists_and_ranges_include_their_ends(catalog: Catalog) -> None:
    def years(operator: str, *values: int) -> set[int]:
        condition: Json = {"field": "year", "operator": operator, "value": list(values)}
        rows = _called(catalog, "query_sales", {"filters": [condition], "group_by": ["year"]})
        return {row["year"] for row in rows["data"]}

    assert years("in", 2021, 2024) == {2021, 2024}
    assert years("not_in", 2021, 2024) == {2020, 2022, 2023, 2025}
    assert years("between", 2021, 2023) == {2021, 2022, 2023}


@pytest.mark.parametrize("value", ["' OR 1=1 --", "x'); DROP TABLE orders; --", "?", "$.x", "%"])
def test_a_value_that_looks_like_sql_is_a_value(catalog: Catalog, value: str) -> None:
    assert _ids(catalog, {"field": "customer", "operator": "=", "value": value}) == []
    assert _called(catalog, "get_order", {"order_id": value}) is None
    assert _called(catalog, "list_customers", {"city": value}) == []
    assert len(_ids(catalog)) == sales.ORDERS


@pytest.mark.parametrize(
    "arguments",
    [
        {"filters": [{"field": "1; DROP TABLE orders", "value": 1}]},
        {"filters": [{"field": "year", "operator": "= 1 OR", "value": 1}]},
        {"filters": [{"field": "year", "value": 2024, "also": 1}]},
        {"group_by": ["nothing"]},
        {"aggregates": [{"field": "amount", "function": "load_extension"}]},
        {"limit": "5; --"},
    ],
)
def test_names_that_are_not_listed_are_refused(catalog: Catalog, arguments: JsonObject) -> None:
    assert catalog.violations("query_sales", arguments)
    with pytest.raises(OperationRefused, match="query_sales"):
        _called(catalog, "query_sales", arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"filters": [{"field": "year", "operator": "in", "value": 1}]}, "expected a list"),
        ({"filters": [{"field": "year", "value": [1]}]}, "expected one value"),
        ({"filters": [{"field": "year", "operator": "between", "value": [1]}]}, "the two ends"),
        ({"filters": [{"field": "year", "value": "last year"}]}, "expected a number"),
        ({"group_by": ["state"], "order_by": [{"field": "amount"}]}, "no 'amount' to sort by"),
    ],
)
def test_a_query_that_means_nothing_says_why(
    catalog: Catalog, arguments: JsonObject, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        _called(catalog, "query_sales", arguments)


def test_a_year_without_sales_amounts_to_nothing(catalog: Catalog) -> None:
    compared = _called(catalog, "compare_sales", {"first_year": 1999, "second_year": 2024})
    assert compared["first_amount"] == 0
    assert compared["change"] == compared["second_amount"]


def test_one_thing_is_found_by_its_id_or_is_absent(catalog: Catalog) -> None:
    assert _called(catalog, "get_order", {"order_id": "ORD1042"})["order_id"] == "ORD1042"
    assert _called(catalog, "get_order", {"order_id": "ORD1"}) is None
    found = _called(catalog, "get_customer", {"email": "ada.chen@example.com"})
    assert found["name"] == "Ada Chen"


def test_customers_are_listed_since_a_year_or_a_day(catalog: Catalog) -> None:
    by_year = _called(catalog, "list_customers", {"state": "OH", "since": "2023"})
    by_day = _called(catalog, "list_customers", {"state": "OH", "since": "2023-01-01"})
    assert by_year == by_day != []
    assert {row["state"] for row in by_year} == {"OH"}
    with pytest.raises(ValueError, match="since is 'long ago'"):
        _called(catalog, "list_customers", {"since": "long ago"})


def test_threads_share_one_connection_or_one_file(catalog: Catalog, tmp_path: Path) -> None:
    sales.create(tmp_path / "the sales?.sqlite")
    from_file = operations.catalog(tmp_path / "the sales?.sqlite")
    assert from_file == catalog
    assert {one.effect for one in catalog} == {"read"}
    orders = [f"ORD{1001 + i}" for i in range(50)]
    for known in (catalog, from_file):
        with ThreadPoolExecutor(8) as threads:
            found = threads.map(partial(_order, known), orders)
            assert [row["order_id"] for row in found] == orders


def _order(catalog: Catalog, name: str) -> Any:
    return _called(catalog, "get_order", {"order_id": name})


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    catalog = operations.catalog(tmp_path / "none.sqlite")
    with pytest.raises(sqlite3.OperationalError):
        _called(catalog, "get_order", {"order_id": "ORD1042"})
    assert list(tmp_path.iterdir()) == []
