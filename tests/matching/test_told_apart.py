"""What must be told apart, and what must be matched, in plain English, with the real embedder."""

from collections.abc import Callable

import pytest

from semcache import Hit, PlanCache
from semcache.canonical import Json, JsonObject
from semcache.models.minilm import MiniLMEmbedder
from tests.calling import calling

Open = Callable[[float | None], PlanCache]


def plan(what: str, **values: Json) -> JsonObject:
    """Return a plan that does `what` with some values."""
    return calling("shop.query", what=what, **values)


@pytest.fixture
def opened(minilm: MiniLMEmbedder) -> Open:
    return lambda max_wrong: PlanCache.open(embedder=minilm, max_wrong=max_wrong)


APART = [
    ("orders that were returned", "orders that were not returned"),
    ("customers with an account", "customers without an account"),
    (
        "include cancelled orders in the sales total",
        "exclude cancelled orders from the sales total",
    ),
    ("orders over $500", "orders under $500"),
    ("products with at least 5 reviews", "products with more than 5 reviews"),
    ("orders placed before March 2024", "orders placed after March 2024"),
    ("orders placed since 2021", "orders placed until 2021"),
    ("the first order of the customer", "the last order of the customer"),
    ("top 5 products by revenue", "bottom 5 products by revenue"),
    ("products sorted by price ascending", "products sorted by price descending"),
    ("total sales in 2024", "average sales in 2024"),
    ("highest price of a product", "lowest price of a product"),
    ("how many customers live in Texas", "which customers live in Texas"),
    ("customers from Texas and Nevada", "customers from Texas or Nevada"),
    ("emails from Ada to Grace", "emails to Ada from Grace"),
    ("songs written by the singer", "songs written about the singer"),
    ("convert dollars to euros", "convert euros to dollars"),
    ("unpaid orders in 2024", "unpaid orders by new customers in 2024"),
    ("the address of the customer", "the birthday of the customer"),
    ("sales by state", "sales by category"),
    ("the manager of the supplier", "the supplier of the manager"),
    ("all orders of the current month", "only orders of the current month"),
    ("the current price of the product", "the previous price of the product"),
    ("the capital of the largest state", "the largest capital of the state"),
    (
        "What was the first invoice of the last customer?",
        "What was the last invoice of the first customer?",
    ),
    ("orders that were paid but not shipped", "orders that were shipped but not paid"),
    ("are all the invoices paid", "list all the paid invoices"),
    ("does the store sell red shoes", "which red shoes does the store sell"),
    ("Is the warehouse open on Sunday?", "when is the warehouse open on Sunday"),
]


@pytest.mark.parametrize("max_wrong", [None, 0.02])
@pytest.mark.parametrize(("known", "asked"), APART)
def test_another_question_is_never_served(
    opened: Open, known: str, asked: str, max_wrong: float | None
) -> None:
    with opened(max_wrong) as cache:
        cache.store(known, plan(known))
        assert not cache.lookup(asked)
        cache.store(asked, plan(asked))
        again = cache.lookup(known)
        assert isinstance(again, Hit)
        assert again.plan.to_dict() == plan(known)


MATCHED = [
    ("total sales by state", "Could you please show me the total sales by state?"),
    ("orders in 2024", "list the orders in 2023"),
    ("What is the number of customers?", "how many customers are there"),
    ("sales in March by state", "SALES in March by state?"),
    ("products sorted by price ascending", "products sorted by price from low to high"),
    ("list the unpaid invoices", "do you have the unpaid invoices"),
    ("show me the open tickets", "Can I see the open tickets please?"),
]


@pytest.mark.parametrize("max_wrong", [None, 0.02])
@pytest.mark.parametrize(("known", "asked"), MATCHED)
def test_the_same_question_in_another_dress_is_served(
    opened: Open, known: str, asked: str, max_wrong: float | None
) -> None:
    year = {"year": 2024} if "2024" in known else {}
    with opened(max_wrong) as cache:
        cache.store(known, plan("known", **year), params=year)
        assert cache.lookup(asked)
