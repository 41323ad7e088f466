"""Prompts of the demo in the order they are asked, each with SQL that knows its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semcache.demo import queries as sql
from semcache.demo.queries import SalesQuery


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and how to know its answer without semcache."""

    prompt: str
    query: SalesQuery
    values: tuple[str | float, ...] = ()
    """The values of the prompt and of the answers, in the order of the placeholders."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What a person says to the questions that the plan asks, by topic."""


def _case(prompt: str, query: SalesQuery, *values: str | float) -> Case:
    return Case(prompt, query, values)


def _asking(prompt: str, query: SalesQuery, *values: str | float, **answers: str) -> Case:
    """Return the case of a prompt whose plan asks; topics have blanks where names have none."""
    said = {topic.replace("_", " "): answer for topic, answer in answers.items()}
    return Case(prompt, query, values, said)


ONE_STEP: tuple[Case, ...] = (
    # The same question of other years and in other words.
    _case("Show me total sales in 2024 by category", sql.SUM_BY_CATEGORY, "2024"),
    _case("Show me total sales in 2023 by category", sql.SUM_BY_CATEGORY, "2023"),
    _case("show me total sales in 2020 by category.", sql.SUM_BY_CATEGORY, "2020"),
    _case("Total sales by category in 2022", sql.SUM_BY_CATEGORY, "2022"),
    _case("What were the total sales in 2021 for each category?", sql.SUM_BY_CATEGORY, "2021"),
    _case("Sum up sales per category in 2025", sql.SUM_BY_CATEGORY, "2025"),
    _case("Total revenue per category in 2021", sql.SUM_BY_CATEGORY, "2021"),
    _case("Could you please show me total sales in 2022 by category", sql.SUM_BY_CATEGORY, "2022"),
    _case("I would like to see total sales in 2023 by category", sql.SUM_BY_CATEGORY, "2023"),
    _case("What is the total revenue of each category in 2020?", sql.SUM_BY_CATEGORY, "2020"),
    # One word away from them: another group, another aggregate, another measure.
    _case("Show me total sales in 2024 by state", sql.SUM_BY_STATE, "2024"),
    _case("Show me average sales in 2024 by category", sql.AVERAGE_BY_CATEGORY, "2024"),
    _case("Show me average sales in 2023 by state", sql.AVERAGE_BY_STATE, "2023"),
    _case("Show me total quantity in 2024 by category", sql.UNITS_BY_CATEGORY, "2024"),
    _case("Show me the number of sales in 2024 by category", sql.COUNT_BY_CATEGORY, "2024"),
    _case("Show me total sales in 2024 by channel", sql.SUM_BY_CHANNEL, "2024"),
    _case("Show me total sales in 2022 by month", sql.SUM_BY_MONTH, "2022"),
    _case(
        "Show me total sales in 2024 by category and channel",
        sql.SUM_BY_CATEGORY_AND_CHANNEL,
        "2024",
    ),
    _case("Show me total sales in 2022 by state", sql.SUM_BY_STATE, "2022"),
    _case("Total sales by state in 2021", sql.SUM_BY_STATE, "2021"),
    _case("Number of sales by state in 2024", sql.COUNT_BY_STATE, "2024"),
    _case("Show me average sales in 2021 by category", sql.AVERAGE_BY_CATEGORY, "2021"),
    # Sum, average, largest, smallest, how many.
    _case("What were the total sales in 2024?", sql.TOTAL, "2024"),
    _case("What were the average sales in 2024?", sql.AVERAGE, "2024"),
    _case("What was the largest sale in 2024?", sql.LARGEST, "2024"),
    _case("What was the smallest sale in 2024?", sql.SMALLEST, "2024"),
    _case("How many sales were there in 2024?", sql.HOW_MANY, "2024"),
    _case("What were the total sales in 2021?", sql.TOTAL, "2021"),
    _case("What were the average sales in 2020?", sql.AVERAGE, "2020"),
    _case("What was the largest sale in 2022?", sql.LARGEST, "2022"),
    _case("How many sales were there in 2023?", sql.HOW_MANY, "2023"),
    _case("How many orders did we have in 2022?", sql.HOW_MANY, "2022"),
    _case("Number of orders in 2021", sql.HOW_MANY, "2021"),
    _case("What is the biggest sale in 2021?", sql.LARGEST, "2021"),
    _case("What was our average sale in 2023?", sql.AVERAGE, "2023"),
    _case("Total sales in March 2024", sql.TOTAL_IN_MONTH, "2024-03"),
    _case("Total sales in May 2023", sql.TOTAL_IN_MONTH, "2023-05"),
    # Over and under an amount.
    _case("How many sales were over $500 in 2024?", sql.COUNT_OVER, 500, "2024"),
    _case("How many sales were under $500 in 2024?", sql.COUNT_UNDER, 500, "2024"),
    _case("How many sales were over $1,250 in 2023?", sql.COUNT_OVER, 1250, "2023"),
    _case("How many sales were under $25.50 in 2022?", sql.COUNT_UNDER, 25.5, "2022"),
    _case("What were the total sales over $500 in 2024?", sql.TOTAL_OVER, 500, "2024"),
    _case("Find sales over $2000 in California", sql.ORDERS_OVER, 2000, "CA"),
    _case("Find sales under $10 in California", sql.ORDERS_UNDER, 10, "CA"),
    _case("Find sales over $1500 in Texas", sql.ORDERS_OVER, 1500, "TX"),
    _case("Find sales of more than $2500 in Nevada", sql.ORDERS_OVER, 2500, "NV"),
    _case("Find sales above $1000 in Ohio", sql.ORDERS_OVER, 1000, "OH"),
    _case(
        "How many sales were between $100 and $200 in 2024?",
        sql.COUNT_BETWEEN_AMOUNTS,
        100,
        200,
        "2024",
    ),
    _case(
        "How many sales were between $50 and $75 in 2021?",
        sql.COUNT_BETWEEN_AMOUNTS,
        50,
        75,
        "2021",
    ),
    _case("How many sales had a quantity over 5 in 2024?", sql.COUNT_MORE_UNITS, 5, "2024"),
    _case(
        "How many sales had a quantity of at least 5 in 2024?",
        sql.COUNT_AT_LEAST_UNITS,
        5,
        "2024",
    ),
    _case("How many sales had a quantity over 7 in 2022?", sql.COUNT_MORE_UNITS, 7, "2022"),
    # Values that a plan spells otherwise, and codes that are words too.
    _case("Total sales in California in 2024", sql.TOTAL_IN_STATE, "CA", "2024"),
    _case("Total sales in Texas in 2023", sql.TOTAL_IN_STATE, "TX", "2023"),
    _case("Total sales in NY in 2023", sql.TOTAL_IN_STATE, "NY", "2023"),
    _case("Total sales in Indiana in 2022", sql.TOTAL_IN_STATE, "IN", "2022"),
    _case("Total sales in Oregon in 2022", sql.TOTAL_IN_STATE, "OR", "2022"),
    _case("Average sales in California in 2024", sql.AVERAGE_IN_STATE, "CA", "2024"),
    _case("How many sales were there in Ohio in 2024?", sql.COUNT_IN_STATE, "OH", "2024"),
    _case("How many sales were there in New Jersey in 2025?", sql.COUNT_IN_STATE, "NJ", "2025"),
    _case("Total online sales in 2024", sql.TOTAL_BY_CHANNEL_VALUE, "online", "2024"),
    _case("Total retail sales in 2023", sql.TOTAL_BY_CHANNEL_VALUE, "retail", "2023"),
    _case("Total electronics sales in 2024", sql.TOTAL_OF_CATEGORY, "Electronics", "2024"),
    _case("Total furniture sales in 2022", sql.TOTAL_OF_CATEGORY, "Furniture", "2022"),
    _case("Total sales of Books in Florida", sql.TOTAL_OF_CATEGORY_IN_STATE, "Books", "FL"),
    _case("Total sales of Toys in Washington", sql.TOTAL_OF_CATEGORY_IN_STATE, "Toys", "WA"),
    _case("Total sales in Denver in 2024", sql.TOTAL_IN_CITY, "Denver", "2024"),
    _case("Total sales in Seattle in 2021", sql.TOTAL_IN_CITY, "Seattle", "2021"),
    _case("Total sales in Texas or Florida in 2024", sql.TOTAL_IN_TWO_STATES, "TX", "FL", "2024"),
    _case("Total sales in Ohio and Nevada in 2023", sql.TOTAL_IN_TWO_STATES, "OH", "NV", "2023"),
    _case("Total quantity of Yoga Mat in 2024", sql.UNITS_OF_PRODUCT, "Yoga Mat", "2024"),
    _case("Total quantity of Coffee Beans in 2023", sql.UNITS_OF_PRODUCT, "Coffee Beans", "2023"),
    _case(
        "How many returned orders were there in 2024?",
        sql.COUNT_WITH_STATUS,
        "returned",
        "2024",
    ),
    _case(
        "How many cancelled orders were there in 2023?",
        sql.COUNT_WITH_STATUS,
        "cancelled",
        "2023",
    ),
    # Top and bottom.
    _case("Top 5 products by sales in 2024", sql.TOP_PRODUCTS, "2024", 5),
    _case("Top 3 products by sales in 2023", sql.TOP_PRODUCTS, "2023", 3),
    _case("Bottom 5 products by sales in 2024", sql.BOTTOM_PRODUCTS, "2024", 5),
    _case("Bottom 2 products by sales in 2021", sql.BOTTOM_PRODUCTS, "2021", 2),
    _case("Top five products by sales in 2022", sql.TOP_PRODUCTS, "2022", 5),
    _case("Top 5 states by sales in 2024", sql.TOP_STATES, "2024", 5),
    _case("Top 10 customers by sales in 2025", sql.TOP_CUSTOMERS, "2025", 10),
    _case("Top three products by revenue in 2020", sql.TOP_PRODUCTS, "2020", 3),
    _case("Top 5 products by quantity in 2022", sql.TOP_PRODUCTS_BY_UNITS, "2022", 5),
    _case("Which state has the highest sales in 2023?", sql.TOP_STATES, "2023", 1),
    _case("Which state has the lowest sales in 2023?", sql.BOTTOM_STATES, "2023", 1),
    _case("Which state has the highest sales in 2021?", sql.TOP_STATES, "2021", 1),
    _case("Show me the 5 largest sales in 2024", sql.LARGEST_ORDERS, "2024", 5),
    _case("Show me the 3 largest sales in 2022", sql.LARGEST_ORDERS, "2022", 3),
    # Before, after, since, between.
    _case("Total sales before 2022", sql.TOTAL_BEFORE, "2022"),
    _case("Total sales after 2022", sql.TOTAL_AFTER, "2022"),
    _case("Total sales since 2022", sql.TOTAL_SINCE, "2022"),
    _case("Total sales before 2024", sql.TOTAL_BEFORE, "2024"),
    _case("Total sales between 2021 and 2023", sql.TOTAL_BETWEEN, "2021", "2023"),
    _case("Total sales between 2020 and 2022", sql.TOTAL_BETWEEN, "2020", "2022"),
    _case("Total sales from 2021 to 2024", sql.TOTAL_BETWEEN, "2021", "2024"),
    _case("How many sales were there before March 11, 2024?", sql.COUNT_BEFORE_DAY, "2024-03-11"),
    _case("How many sales were there after March 11, 2024?", sql.COUNT_AFTER_DAY, "2024-03-11"),
    _case("How many sales were there before 2023-06-30?", sql.COUNT_BEFORE_DAY, "2023-06-30"),
    _case("How many sales were there on March 11, 2024?", sql.COUNT_ON_DAY, "2024-03-11"),
    _case("How many sales were there on December 31, 2025?", sql.COUNT_ON_DAY, "2025-12-31"),
    _case(
        "How many sales were there between 2024-01-01 and 2024-03-31?",
        sql.COUNT_BETWEEN_DAYS,
        "2024-01-01",
        "2024-03-31",
    ),
    # With, without, excluding.
    _case("Total sales with gift card in 2024", sql.TOTAL_WITH_PAYMENT, "gift card", "2024"),
    _case("Total sales without gift card in 2024", sql.TOTAL_WITHOUT_PAYMENT, "gift card", "2024"),
    _case("Total sales with PayPal in 2023", sql.TOTAL_WITH_PAYMENT, "PayPal", "2023"),
    _case("Total sales without PayPal in 2023", sql.TOTAL_WITHOUT_PAYMENT, "PayPal", "2023"),
    _case("Total sales excluding returns in 2024", sql.TOTAL_WITHOUT_STATUS, "returned", "2024"),
    _case(
        "Total sales excluding returned orders in 2023",
        sql.TOTAL_WITHOUT_STATUS,
        "returned",
        "2023",
    ),
    _case("Total sales in 2021 excluding returns", sql.TOTAL_WITHOUT_STATUS, "returned", "2021"),
    _case("Total sales outside California in 2024", sql.TOTAL_OUTSIDE_STATE, "CA", "2024"),
    _case(
        "Total sales excluding cancellations in 2022",
        sql.TOTAL_WITHOUT_STATUS,
        "cancelled",
        "2022",
    ),
    _case(
        "Total sales excluding Electronics in 2024",
        sql.TOTAL_WITHOUT_CATEGORY,
        "Electronics",
        "2024",
    ),
    _case(
        "Show me total sales in 2024 by state excluding California",
        sql.SUM_BY_STATE_WITHOUT,
        "2024",
        "CA",
    ),
    # Two values that change places.
    _case("Compare sales from 2023 to 2024", sql.CHANGE, "2023", "2024"),
    _case("Compare sales from 2024 to 2023", sql.CHANGE, "2024", "2023"),
    _case("Compare sales from 2020 to 2025", sql.CHANGE, "2020", "2025"),
    _case("Compare sales between 2021 and 2022", sql.CHANGE, "2021", "2022"),
    # One thing by its id, and lists.
    _case("Get order ORD1042", sql.ORDER, "ORD1042"),
    _case("Get order ORD6999", sql.ORDER, "ORD6999"),
    _case("Show me order ORD2077", sql.ORDER, "ORD2077"),
    _case("Fetch order ORD1500", sql.ORDER, "ORD1500"),
    _case("Get customer ada.chen@example.com", sql.CUSTOMER, "ada.chen@example.com"),
    _case("Get customer maria.lopez@example.com", sql.CUSTOMER, "maria.lopez@example.com"),
    _case("List products in Garden", sql.PRODUCTS_OF, "Garden"),
    _case("List products in Toys", sql.PRODUCTS_OF, "Toys"),
    _case("List products in Books up to $25", sql.PRODUCTS_UP_TO, "Books", 25),
    _case("List products in Sports up to $35", sql.PRODUCTS_UP_TO, "Sports", 35),
    _case("List customers in Ohio", sql.CUSTOMERS_IN, "OH"),
    _case("List customers in Virginia", sql.CUSTOMERS_IN, "VA"),
    _case("List customers in Texas since 2023", sql.CUSTOMERS_SINCE, "TX", "2023"),
    _case("List customers in Georgia since 2022", sql.CUSTOMERS_SINCE, "GA", "2022"),
)
"""Prompts that one call answers."""

SEVERAL_STEPS: tuple[Case, ...] = (
    _case("Get order ORD1042, then get its customer", sql.CUSTOMER_OF, "ORD1042"),
    _case("Get order ORD1500, then get its customer", sql.CUSTOMER_OF, "ORD1500"),
    _case(
        "List products in Garden, then sort by price and keep the first 3",
        sql.CHEAPEST,
        "Garden",
        3,
    ),
    _case(
        "List products in Toys, then sort by price and keep the first 2",
        sql.CHEAPEST,
        "Toys",
        2,
    ),
    _case("List customers in Ohio and count them", sql.COUNT_CUSTOMERS, "OH"),
    _case("List customers in Texas and count them", sql.COUNT_CUSTOMERS, "TX"),
    _case("List customers in Ohio and count them by city", sql.CUSTOMERS_BY_CITY, "OH"),
    _case("List customers in Nevada and count them by city", sql.CUSTOMERS_BY_CITY, "NV"),
    _case("List products in Toys and average the price", sql.AVERAGE_PRICE, "Toys"),
    _asking(
        "List products in Garden but ask me for the max price",
        sql.PRODUCTS_UP_TO,
        "Garden",
        30,
        max_price="30",
    ),
    _asking(
        "List products in Clothing but ask me for the max price",
        sql.PRODUCTS_UP_TO,
        "Clothing",
        100,
        max_price="100",
    ),
)
"""Prompts of several steps: a call that needs another's result, what is done to a result, and
questions to a person."""

CASES: tuple[Case, ...] = (*ONE_STEP, *SEVERAL_STEPS)
"""Asked one after the other of one cache, so that later ones meet the plans of earlier ones."""
