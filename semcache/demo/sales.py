"""The sales database of the demo: customers, products and six years of orders in SQLite.

The same rows on every machine and in every Python, so that answers can be compared.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")

ORDERS = 6_000
CUSTOMERS = 320
FIRST_DAY = date(2020, 1, 1)
DAYS = (date(2026, 1, 1) - FIRST_DAY).days

STATES = {
    "AZ": "Arizona",
    "CA": "California",
    "CO": "Colorado",
    "FL": "Florida",
    "GA": "Georgia",
    "IL": "Illinois",
    "IN": "Indiana",
    "MA": "Massachusetts",
    "MI": "Michigan",
    "MN": "Minnesota",
    "NC": "North Carolina",
    "NJ": "New Jersey",
    "NV": "Nevada",
    "NY": "New York",
    "OH": "Ohio",
    "OR": "Oregon",
    "PA": "Pennsylvania",
    "TX": "Texas",
    "VA": "Virginia",
    "WA": "Washington",
}
"""Code → full name. Indiana and Oregon are here on purpose: their codes are also English words."""

CITIES = {
    "AZ": ("Phoenix", "Tucson"),
    "CA": ("Los Angeles", "San Diego", "Oakland"),
    "CO": ("Denver", "Boulder"),
    "FL": ("Miami", "Tampa"),
    "GA": ("Atlanta", "Savannah"),
    "IL": ("Chicago", "Peoria"),
    "IN": ("Indianapolis", "Fort Wayne"),
    "MA": ("Boston", "Worcester"),
    "MI": ("Detroit", "Ann Arbor"),
    "MN": ("Minneapolis", "Duluth"),
    "NC": ("Charlotte", "Raleigh"),
    "NJ": ("Newark", "Trenton"),
    "NV": ("Las Vegas", "Reno"),
    "NY": ("Buffalo", "Albany", "Rochester"),
    "OH": ("Columbus", "Cleveland"),
    "OR": ("Eugene", "Salem"),
    "PA": ("Philadelphia", "Pittsburgh"),
    "TX": ("Houston", "Austin", "Dallas"),
    "VA": ("Richmond", "Norfolk"),
    "WA": ("Seattle", "Spokane"),
}

PRODUCTS = {
    "Electronics": {
        "Wireless Mouse": 24.99,
        "Mechanical Keyboard": 89.5,
        "Noise Canceling Headphones": 249.0,
        "Tablet Computer": 429.0,
        "Webcam": 59.95,
    },
    "Furniture": {
        "Standing Desk": 549.0,
        "Office Chair": 219.0,
        "Bookshelf": 129.0,
        "Floor Lamp": 74.5,
    },
    "Clothing": {
        "Rain Jacket": 119.0,
        "Running Shoes": 94.95,
        "Wool Sweater": 69.0,
        "Cotton Socks": 11.5,
    },
    "Toys": {
        "Puzzle Box": 19.99,
        "Building Blocks": 39.0,
        "Toy Train": 54.0,
        "Plush Bear": 16.75,
    },
    "Books": {
        "Cookbook": 29.95,
        "Travel Guide": 21.0,
        "Crossword Collection": 9.99,
        "World Atlas": 64.0,
    },
    "Groceries": {
        "Coffee Beans": 17.25,
        "Olive Oil": 22.4,
        "Green Tea": 8.95,
        "Dark Chocolate": 5.6,
    },
    "Sports": {
        "Yoga Mat": 34.0,
        "Tennis Racket": 139.0,
        "Camping Tent": 269.0,
        "Water Bottle": 18.5,
    },
    "Garden": {
        "Pruning Shears": 27.0,
        "Garden Hose": 44.9,
        "Patio Heater": 189.0,
        "Seed Kit": 13.2,
    },
}
"""Category → product → price in dollars."""

CATEGORIES = tuple(PRODUCTS)
CHANNELS = ("online", "retail", "phone", "partner")
PAYMENT_METHODS = ("credit card", "PayPal", "gift card", "bank transfer", "cash")
STATUSES = ("completed", "returned", "cancelled")

_FIRST_NAMES = (
    "Ada", "Ben", "Carla", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jamal",
    "Kofi", "Lena", "Maria", "Nadia", "Omar", "Priya", "Quentin", "Rosa", "Sven", "Tara",
)  # fmt: skip
_LAST_NAMES = (
    "Abbott", "Bianchi", "Chen", "Diaz", "Eriksen", "Fischer", "Gupta", "Haddad",
    "Ivanova", "Johnson", "Kowalski", "Lopez", "Mensah", "Nakamura", "Okafor", "Petrov",
)  # fmt: skip

_TABLES = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    city TEXT NOT NULL,
    state TEXT NOT NULL,
    since TEXT NOT NULL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL,
    price REAL NOT NULL
);
CREATE TABLE orders (
    id TEXT PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    date TEXT NOT NULL,
    quantity INTEGER NOT NULL,
    amount REAL NOT NULL,
    channel TEXT NOT NULL,
    payment_method TEXT NOT NULL,
    status TEXT NOT NULL
);
"""


def memory() -> sqlite3.Connection:
    """Return the database in memory, filled; several threads may use it, one at a time.

    The caller closes it. Takes some tens of milliseconds.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    fill(connection)
    return connection


def create(path: Path) -> None:
    """Write the database as a new file at `path`.

    Raises:
        FileExistsError: there is a file already.
    """
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists; remove it or choose another name")
    with closing(sqlite3.connect(path)) as connection:
        fill(connection)


def fill(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database and insert every row."""
    # random() is the one method whose sequence Python promises to keep for a seed.
    chance = Random(20_240_517)  # noqa: S311 - rows to look at, not secrets
    customers = list(_customers(chance))
    products = list(_products())
    with connection:
        connection.executescript(_TABLES)
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?)", customers)
        connection.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _orders(chance, products)
        )


def _customers(chance: Random) -> Iterator[tuple[int, str, str, str, str, str]]:
    names = [(first, last) for last in _LAST_NAMES for first in _FIRST_NAMES]
    for i, (first, last) in enumerate(names[:CUSTOMERS], start=1):
        state = _pick(chance, tuple(STATES), skew=1.3)
        city = _pick(chance, CITIES[state])
        since = date(2018, 1, 1) + timedelta(days=int(chance.random() * 2_800))
        email = f"{first}.{last}@example.com".lower()
        yield i, f"{first} {last}", email, city, state, since.isoformat()


def _products() -> Iterator[tuple[int, str, str, float]]:
    rows = [(n, c, price) for c, listed in PRODUCTS.items() for n, price in listed.items()]
    for i, (name, category, price) in enumerate(rows, start=1):
        yield i, name, category, price


def _orders(
    chance: Random, products: Sequence[tuple[int, str, str, float]]
) -> Iterator[tuple[str, int, int, str, int, float, str, str, str]]:
    for i in range(ORDERS):
        product, _, _, price = _pick(chance, products)
        # Later years sell more and discounts differ, so that no two questions have one answer.
        day = FIRST_DAY + timedelta(days=int(DAYS * chance.random() ** 0.8))
        quantity = 1 + int(8 * chance.random() ** 2)
        yield (
            f"ORD{1001 + i}",
            1 + int(CUSTOMERS * chance.random()),
            product,
            day.isoformat(),
            quantity,
            round(price * quantity * (1 - 0.15 * chance.random()), 2),
            _pick(chance, CHANNELS, skew=1.6),
            _pick(chance, PAYMENT_METHODS, skew=1.4),
            _pick(chance, STATUSES, skew=4.0),
        )


def _pick(chance: Random, choices: Sequence[T], *, skew: float = 1.0) -> T:
    """Return one of `choices`; the higher `skew`, the more often an early one."""
    return choices[int(len(choices) * chance.random() ** skew)]
