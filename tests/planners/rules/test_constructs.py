import pytest

from semcache.canonical import Json
from tests.planners.conftest import Ask


@pytest.mark.parametrize(
    ("prompt", "field", "aggregate"),
    [
        ("total sales", "amount", "sum"),
        ("sum of sales", "amount", "sum"),
        ("sales totals", "amount", "sum"),
        ("how much revenue", "amount", "sum"),
        ("show me the revenue", "amount", "sum"),
        ("total sales amount", "amount", "sum"),
        ("total quantity of sales", "quantity", "sum"),
        ("how many units", "quantity", "sum"),
        ("average sales", "amount", "avg"),
        ("mean sale", "amount", "avg"),
        ("average transaction", "amount", "avg"),
        ("what is the average price", "price", "avg"),
        ("how many sales were there", "amount", "count"),
        ("number of transactions", "amount", "count"),
        ("total number of sales", "amount", "count"),
        ("sales count", "amount", "count"),
        ("maximum sale", "amount", "max"),
        ("what was the largest sale", "amount", "max"),
        ("what was the highest price", "price", "max"),
        ("what was the smallest sale", "amount", "min"),
    ],
)
def test_an_aggregate_is_read_with_its_noun(
    ask: Ask, prompt: str, field: str, aggregate: str
) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.action == "summarize"
    assert schema.params == {field: {"aggregate": aggregate}}


@pytest.mark.parametrize(
    "prompt",
    [
        "total transactions",  # how many, or how much?
        "total and average sales",
        "how many customers",  # of the sales, each once
        "number of distinct customers",
        "average state",
        "total year",
        "median sales",  # the operation computes none
        "average customer",
        "top 5 states by variance of sales",
        "show me the largest sale",  # the row or the figure?
        "what were the largest sales",
        "what was the highest revenue",
        "average sales per month in 2024",  # of the sales, or of the monthly totals?
        "the sale with the highest amount",
        "total revenue over $500",
        "how much was the average sale",
    ],
)
def test_an_aggregate_that_could_mean_two_things_is_not_taken(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


def test_two_figures_of_different_fields_are_two_aggregates(ask: Ask) -> None:
    schema = ask("total amount and average quantity of sales by state")
    assert not schema.partial
    assert schema.params == {"amount": {"aggregate": "sum"}, "quantity": {"aggregate": "avg"}}


def test_a_bound_and_an_aggregate_of_one_field_go_together(ask: Ask) -> None:
    assert ask("how many sales were over $500").params == {
        "amount": {"operator": ">", "operand": 500, "aggregate": "count"}
    }


@pytest.mark.parametrize(
    ("prompt", "groups"),
    [
        ("total sales by state", ("state",)),
        ("sales per state", ("state",)),
        ("total sales for each state", ("state",)),
        ("total sales grouped by customer state", ("state",)),
        ("total sales by category and state", ("category", "state")),
        ("total sales by state, category and product", ("state", "category", "product")),
        ("total sales by category and by state", ("category", "state")),
        ("total sales by year", ("year",)),
        ("number of sales by payment method", ("payment_method",)),
    ],
)
def test_groups_are_read_in_their_order(ask: Ask, prompt: str, groups: tuple[str, ...]) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.group_by == groups


@pytest.mark.parametrize(
    "prompt",
    [
        "transactions by state",  # how many, or how much?
        "total sales by amount",
        "total sales by state over $500",  # bounds the sales or the totals?
        "total sales by state where amount is over 500",
        "states with sales over $500",
        "sales by customers",
        "total sales across states",
        "total sales by state by state",
    ],
)
def test_a_group_that_could_mean_two_things_is_not_taken(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


Ranked = dict[str, Json]


@pytest.mark.parametrize(
    ("prompt", "ranked"),
    [
        ("top 5 states by sales", {"amount": "sum", "order": "desc", "limit": 5}),
        ("top five states by revenue", {"amount": "sum", "order": "desc", "limit": 5}),
        ("bottom 5 states by sales", {"amount": "sum", "order": "asc", "limit": 5}),
        ("top 3 states by number of sales", {"amount": "count", "order": "desc", "limit": 3}),
        ("top 3 states by average sales", {"amount": "avg", "order": "desc", "limit": 3}),
        ("top 3 states by units", {"quantity": "sum", "order": "desc", "limit": 3}),
        ("which state had the highest revenue", {"amount": "sum", "order": "desc", "limit": 1}),
        ("which state had the lowest revenue", {"amount": "sum", "order": "asc", "limit": 1}),
        ("which state had the most transactions", {"amount": "count", "order": "desc", "limit": 1}),
        ("which 4 states had the most units", {"quantity": "sum", "order": "desc", "limit": 4}),
    ],
)
def test_groups_are_ranked_by_a_figure(ask: Ask, prompt: str, ranked: Ranked) -> None:
    schema = ask(prompt)
    (field, aggregate), *_ = ranked.items()
    assert not schema.partial
    assert schema.group_by == ("state",)
    assert schema.params == {
        field: {"aggregate": aggregate},
        "sort_by": field,
        "order": ranked["order"],
        "limit": ranked["limit"],
    }


@pytest.mark.parametrize(
    ("prompt", "sort_by", "order", "limit"),
    [
        ("top 5 sales", "amount", "desc", 5),
        ("top 5 sales by quantity", "quantity", "desc", 5),
        ("5 largest sales", "amount", "desc", 5),
        ("5 smallest sales", "amount", "asc", 5),
        ("latest sale", "date", "desc", 1),
        ("last 5 sales", "date", "desc", 5),
        ("5 most recent sales", "date", "desc", 5),
        ("first 5 sales", "date", "asc", 5),
        ("oldest 2 sales", "date", "asc", 2),
    ],
)
def test_rows_are_ranked_by_a_field(
    ask: Ask, prompt: str, sort_by: str, order: str, limit: int
) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.action == "search"
    assert schema.params == {"sort_by": sort_by, "order": order, "limit": limit}


@pytest.mark.parametrize(
    "prompt",
    [
        "top states by revenue",  # how many?
        "which states had the highest revenue",
        "which state had the most sales",  # how many, or how much?
        "top 5 states",
        "top 5 products by price",
        "top 5 products by state",
        "top 5 products by sales in each state",
        "top 3 and bottom 3 states by sales",
        "last sales",
        "last 5 states by sales",
        "which state",
        "best state by revenue",
        "the state with the lowest revenue",
    ],
)
def test_a_rank_that_could_mean_two_things_is_not_taken(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


def test_an_order_is_read_with_its_direction(ask: Ask) -> None:
    up, down = ask("sales sorted by date"), ask("sales sorted by date in descending order")
    assert up.params == {"sort_by": "date", "order": "asc"}
    assert down.params == {"sort_by": "date", "order": "desc"}
    assert ask("sales sorted by date newest first").params["order"] == "desc"


@pytest.mark.parametrize(
    "prompt",
    [
        "total sales sorted by amount",
        "total sales by state sorted by product",
        "total sales by state, highest first",  # by which figure?
        "sales in Texas, newest first",
        "total sales by state ascending",  # by the state, or by the total?
    ],
)
def test_an_order_needs_something_to_order(ask: Ask, prompt: str) -> None:
    assert ask(prompt).partial


def test_a_number_before_the_noun_limits_how_many(ask: Ask) -> None:
    schema = ask("show me 10 electronics sales in Texas")
    assert schema.params == {"category": "Electronics", "state": "TX", "limit": 10}
    assert schema.mentions["limit"] == "10"


def test_without_a_limit_an_operation_is_not_asked_for_so_many(fly: Ask) -> None:
    assert fly("show me 5 flights from Boston to Denver").partial


def test_an_operation_that_only_lists_neither_counts_nor_sorts(track: Ask) -> None:
    assert track("how many issues in acme/web-app").partial
    assert track("latest issue in acme/web-app").partial
    assert track("issues by label in acme/web-app").partial
