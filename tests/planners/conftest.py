"""Three catalogs that share nothing: sales as a query, an issue tracker, flights."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest

from semcache import Catalog, Operation, PromptSchema, SemCache, catalog_from, operation
from semcache.canonical import JsonObject
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.testing import FakeClock, HashEmbedder

Ask = Callable[[str], PromptSchema]
Open = Callable[..., SemCache]


@pytest.fixture
def open_semcache() -> Iterator[Open]:
    """Open a SemCache over a catalog, with the arguments given beside it; closed with the test."""
    with ExitStack() as opened:

        def open_(catalog: Catalog, **more: Any) -> SemCache:
            arguments: dict[str, Any] = {"embedder": HashEmbedder(), "clock": FakeClock(), **more}
            return opened.enter_context(SemCache.open(catalog=catalog, **arguments))

        yield open_


FIELDS = [
    "order_id", "date", "year", "quarter", "month", "customer", "state", "category", "product",
    "quantity", "price", "amount", "payment_method", "status",
]  # fmt: skip
QUERY: JsonObject = {
    "type": "object",
    "properties": {
        "filter": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"enum": [*FIELDS]},
                    "operator": {
                        "enum": [
                            "equals", "not_equals", "less_than", "less_than_or_equal",
                            "greater_than", "greater_than_or_equal", "in", "not_in", "between",
                        ]
                    },
                    "value": {},
                },
            },
        },
        "aggregates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"enum": [*FIELDS], "default": "amount"},
                    "function": {"enum": ["sum", "average", "min", "max", "count"]},
                },
            },
        },
        "groupBy": {"type": "array", "items": {"enum": [*FIELDS]}},
        "orderBy": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"enum": [*FIELDS]},
                    "direction": {"enum": ["ASC", "DESC"]},
                },
            },
        },
        "limit": {"type": "integer"},
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def sales() -> Catalog:
    """The operation of OneMCP's document: everything is asked of one query."""
    query = Operation(
        name="querySalesData",
        summary="Query sales.",
        input_schema=QUERY,
        output_schema={"type": "object", "properties": {"data": {"type": "array"}}},
        effect="read",
    )
    return Catalog(
        [query],
        closed={
            "category": ["Electronics", "Furniture", "Toys"],
            "state": ["CA", "TX", "OH", "IN", "OR"],
            "payment_method": ["credit card", "gift card"],
            "status": ["completed", "returned"],
        },
        synonyms={
            "California": "CA",
            "Texas": "TX",
            "Ohio": "OH",
            "sales": "amount",
            "revenue": "amount",
            "units": "quantity",
            "transaction": "sale",
            "returns": "returned",
            "customer state": "state",
        },
    )


def list_issues(
    *,
    repository: str,
    state: Literal["open", "closed"] | None = None,
    labels: list[Literal["bug", "docs"]] | None = None,
    limit: int | None = None,
) -> list[str]:
    """List issues of a repository."""
    return [f"{repository} {state} {labels} {limit}"]


def get_issue(*, repository: str, number: int) -> str:
    """Get one issue."""
    return f"{repository} {number}"


def create_issue(*, repository: str, title: str) -> str:
    """Create an issue."""
    return f"{repository} {title}"


def list_repositories(*, owner: str | None = None) -> list[str]:
    """List repositories."""
    return [str(owner)]


@pytest.fixture(scope="session")
def issues() -> Catalog:
    """An issue tracker, from functions."""
    reads = (list_issues, get_issue, list_repositories)
    return catalog_from(
        create_issue,
        *(operation(read, effect="read") for read in reads),
        synonyms={"ticket": "issue", "repo": "repository"},
    )


City = Literal["Boston", "Denver", "New York"]


def search_flights(
    *,
    origin: City,
    destination: City,
    date: str | None = None,
    max_price: float | None = None,
    min_price: float | None = None,
) -> list[str]:
    """Search flights."""
    return [f"{origin} {destination} {date} {min_price} {max_price}"]


def delete_flight(*, flight_id: str) -> None:
    """Delete a flight."""


def get_weather(*, city: City) -> str:
    """Get the weather of a city."""
    return city


@pytest.fixture(scope="session")
def flights() -> Catalog:
    """Flights and weather, from functions."""
    return catalog_from(
        delete_flight, *(operation(read, effect="read") for read in (search_flights, get_weather))
    )


@pytest.fixture(scope="session")
def rules() -> RuleNormalizer:
    """One normalizer for all catalogs."""
    return RuleNormalizer()


@pytest.fixture
def ask(rules: RuleNormalizer, sales: Catalog) -> Ask:
    """The schema of a prompt about sales."""
    return lambda prompt: rules.normalize(prompt, catalog=sales)


@pytest.fixture
def track(rules: RuleNormalizer, issues: Catalog) -> Ask:
    """The schema of a prompt about issues."""
    return lambda prompt: rules.normalize(prompt, catalog=issues)


@pytest.fixture
def fly(rules: RuleNormalizer, flights: Catalog) -> Ask:
    """The schema of a prompt about flights."""
    return lambda prompt: rules.normalize(prompt, catalog=flights)
