"""The operations of the demo: typed reads over the sales database.

Values travel as SQL parameters and field names are looked up in a table, so nothing that a plan
carries ever becomes SQL.
"""

import re
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from typing_extensions import TypedDict  # before Python 3.12, pydantic takes no other

from semcache.catalog.catalog import Catalog
from semcache.demo.sales import (
    CATEGORIES,
    CHANNELS,
    CITIES,
    PAYMENT_METHODS,
    PRODUCTS,
    STATES,
    STATUSES,
)
from semcache.demo.terms import (
    SOURCE,
    Aggregate,
    Field,
    SalesFilter,
    SalesSort,
    Scalar,
    columns_of,
    grouped,
    select,
    sorted_by,
    where_of,
)
from semcache.sources.functions import catalog_from, operation

_DAY = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
Row = dict[str, Scalar | None]
"""Column → value."""


class Order(TypedDict):
    """One order, with its customer and its product."""

    order_id: str
    date: str
    year: int
    quarter: int
    month: int
    customer: str
    email: str
    state: str
    city: str
    product: str
    category: str
    price: float
    quantity: int
    amount: float
    channel: str
    payment_method: str
    status: str


class Customer(TypedDict):
    """One customer."""

    name: str
    email: str
    city: str
    state: str
    since: str


class Product(TypedDict):
    """One product."""

    name: str
    category: str
    price: float


@dataclass(frozen=True, slots=True)
class SalesResult:
    """Rows of sales."""

    data: list[Row]
    """Fields for listed orders; what is grouped by and the figures otherwise."""
    total_records: int
    """How many rows there are without the limit."""
    has_more: bool
    """Whether the limit cut rows off."""


@dataclass(frozen=True, slots=True)
class YearComparison:
    """Sales of two years side by side, in dollars."""

    first_year: int
    first_amount: float
    second_year: int
    second_amount: float
    change: float
    """The second amount minus the first."""


@dataclass(frozen=True, slots=True)
class SalesService:
    """Reads of one sales database. Safe from several threads."""

    database: sqlite3.Connection | Path
    """A connection opened with `check_same_thread=False`, or a file, opened for each read."""
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def query_sales(
        self,
        *,
        filters: Sequence[SalesFilter] = (),
        aggregates: Sequence[Aggregate] = (),
        group_by: Sequence[Field] = (),
        order_by: Sequence[SalesSort] = (),
        limit: int | None = None,
    ) -> SalesResult:
        """SalesQuery sales: filter orders, then list them or aggregate them by group.

        Args:
            filters: Conditions that all hold for each order that counts.
            aggregates: Figures for each group, or for all orders; without any, orders are listed.
            group_by: Fields that make a group; one row for each combination.
            order_by: Fields to sort by, the first one first.
            limit: At most so many rows.
        """
        where, values = where_of(filters)
        columns = columns_of(aggregates, group_by)
        sql = f"SELECT {select(columns)} FROM {SOURCE}{where}{grouped(group_by)}"  # noqa: S608 - only names of columns
        sql += sorted_by(order_by, aggregates, columns)
        rows = self._rows(sql, values)
        kept = rows if limit is None else rows[: max(limit, 0)]
        return SalesResult(kept, total_records=len(rows), has_more=len(kept) < len(rows))

    def compare_sales(self, *, first_year: int, second_year: int) -> YearComparison:
        """Compare sales of two years: the amounts, and the change from the first to the second.

        Args:
            first_year: The year to start from.
            second_year: The year to compare it with.
        """
        first, second = self._amount(first_year), self._amount(second_year)
        return YearComparison(first_year, first, second_year, second, round(second - first, 2))

    def get_order(self, *, order_id: str) -> Order | None:
        """Get one order by its id; null if there is none.

        Args:
            order_id: Id of the order, such as ORD1001.
        """
        columns = select(columns_of((), ()))
        sql = f"SELECT {columns} FROM {SOURCE} WHERE o.id = ?"  # noqa: S608 - only names of columns
        return cast("Order | None", next(iter(self._rows(sql, [order_id])), None))

    def get_customer(self, *, email: str) -> Customer | None:
        """Get one customer by e-mail address; null if there is none.

        Args:
            email: E-mail address of the customer.
        """
        sql = "SELECT name, email, city, state, since FROM customers WHERE email = ?"
        return cast("Customer | None", next(iter(self._rows(sql, [email])), None))

    def list_products(
        self,
        *,
        category: str | None = None,
        min_price: float | None = None,
        max_price: float | None = None,
    ) -> list[Product]:
        """List products, by name.

        Args:
            category: Only products of this category.
            min_price: Only products that cost at least so many dollars.
            max_price: Only products that cost at most so many dollars.
        """
        rows = self._rows(
            "SELECT name, category, price FROM products WHERE category = ifnull(?, category)"
            " AND price >= ifnull(?, price) AND price <= ifnull(?, price) ORDER BY name",
            [category, min_price, max_price],
        )
        return cast("list[Product]", rows)

    def list_customers(
        self, *, state: str | None = None, city: str | None = None, since: str | None = None
    ) -> list[Customer]:
        """List customers, by name.

        Args:
            state: Only customers in this state, by its two-letter code.
            city: Only customers in this city.
            since: Only customers who joined in this year (2024), month (2024-03) or on this day
                (2024-03-11), or later.
        """
        if since is not None and not _DAY.fullmatch(since):
            raise ValueError(f"since is {since!r}; expected 2024, 2024-03 or 2024-03-11")
        rows = self._rows(
            "SELECT name, email, city, state, since FROM customers WHERE state = ifnull(?, state)"
            " AND city = ifnull(?, city) AND since >= ifnull(?, since) ORDER BY name",
            [state, city, since],
        )
        return cast("list[Customer]", rows)

    def _amount(self, year: int) -> float:
        filters = [SalesFilter(field="year", value=year)]
        aggregates = [Aggregate(field="amount", function="sum")]
        amount = self.query_sales(filters=filters, aggregates=aggregates).data[0]["sum_amount"]
        return float(amount or 0)

    def _rows(self, sql: str, values: Sequence[Scalar | None]) -> list[Row]:
        if isinstance(self.database, sqlite3.Connection):
            with self._one_at_a_time:
                return _fetched(self.database, sql, values)
        address = f"{self.database.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return _fetched(connection, sql, values)


def catalog(database: sqlite3.Connection | Path) -> Catalog:
    """Return the operations over `database`, with the values and words of its domain.

    A connection must have been opened with `check_same_thread=False`, as `sales.memory` does, since
    operations run on worker threads.
    """
    service = SalesService(database)
    reads = (
        service.query_sales,
        service.compare_sales,
        service.get_order,
        service.get_customer,
        service.list_products,
        service.list_customers,
    )
    described = catalog_from(*(operation(read, effect="read") for read in reads))
    return Catalog(described, closed=_CLOSED, synonyms=_SYNONYMS)


_CLOSED: dict[str, Sequence[str]] = {
    "category": CATEGORIES,
    "channel": CHANNELS,
    "city": [city for cities in CITIES.values() for city in cities],
    "payment_method": PAYMENT_METHODS,
    "product": [product for products in PRODUCTS.values() for product in products],
    "state": tuple(STATES),
    "status": STATUSES,
}

_SYNONYMS: dict[str, str] = {
    **{name: code for code, name in STATES.items()},
    "buyer": "customer",
    "item": "product",
    "orders": "sale",
    "purchase": "sale",
    "returns": "returned",
    "cancellations": "cancelled",
    "canceled": "cancelled",
    "customer state": "state",
    "revenue": "amount",
    "sales": "amount",  # "total sales" adds amounts up; "total transactions" would count
    "transaction": "sale",
    "turnover": "amount",
    "units": "quantity",
    "web": "online",
}


def _fetched(
    connection: sqlite3.Connection, sql: str, values: Sequence[Scalar | None]
) -> list[Row]:
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
