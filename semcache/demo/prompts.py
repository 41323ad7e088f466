"""Prompts of the demo in the order they are asked, each with SQL that knows its answer.

The SQL is written by hand from the prompt, on the base tables, and shares nothing with the plans or
the operations; only its column names are those that the operations promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Shape = Literal["number", "groups", "ranking", "records", "record"]
"""What an answer looks like: one figure; a row for each group, in any order; groups in the order
asked for; rows of which only the columns of the SQL are compared, in any order; one such row."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the base tables."""

    shape: Shape
    sql: str
    """Placeholders are `?`; columns are named as in the answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and how to know its answer without semcache."""

    prompt: str
    query: Query
    values: tuple[str | float, ...] = ()
    """The values of the prompt and of the answers, in the order of the placeholders."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What a person says to the questions that the plan asks, by topic."""


def _case(prompt: str, query: Query, *values: str | float) -> Case:
    return Case(prompt, query, values)


def _asking(prompt: str, query: Query, *values: str | float, **answers: str) -> Case:
    """Return the case of a prompt whose plan asks; topics have blanks where names have none."""
    said = {topic.replace("_", " "): answer for topic, answer in answers.items()}
    return Case(prompt, query, values, said)


_SUM_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
_AVERAGE_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, avg(o.amount) AS avg_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
_UNITS_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
_COUNT_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, count(o.id) AS count FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
_SUM_BY_STATE = Query(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
_AVERAGE_BY_STATE = Query(
    "groups",
    "SELECT c.state, avg(o.amount) AS avg_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
_SUM_BY_CHANNEL = Query(
    "groups",
    "SELECT channel, sum(amount) AS sum_amount FROM orders WHERE strftime('%Y', date) = ?"
    " GROUP BY channel",
)
_SUM_BY_MONTH = Query(
    "groups",
    "SELECT CAST(strftime('%m', date) AS INTEGER) AS month, sum(amount) AS sum_amount FROM orders"
    " WHERE strftime('%Y', date) = ? GROUP BY month",
)
_SUM_BY_CATEGORY_AND_CHANNEL = Query(
    "groups",
    "SELECT p.category, o.channel, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category, o.channel",
)

_TOTAL = Query("number", "SELECT sum(amount) FROM orders WHERE strftime('%Y', date) = ?")
_AVERAGE = Query("number", "SELECT avg(amount) FROM orders WHERE strftime('%Y', date) = ?")
_LARGEST = Query("number", "SELECT max(amount) FROM orders WHERE strftime('%Y', date) = ?")
_SMALLEST = Query("number", "SELECT min(amount) FROM orders WHERE strftime('%Y', date) = ?")
_HOW_MANY = Query("number", "SELECT count(*) FROM orders WHERE strftime('%Y', date) = ?")

_COUNT_OVER = Query(
    "number", "SELECT count(*) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
_COUNT_UNDER = Query(
    "number", "SELECT count(*) FROM orders WHERE amount < ? AND strftime('%Y', date) = ?"
)
_TOTAL_OVER = Query(
    "number", "SELECT sum(amount) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
_ORDERS_OVER = Query(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount > ? AND c.state = ?",
)
_ORDERS_UNDER = Query(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount < ? AND c.state = ?",
)

_TOTAL_IN_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
_AVERAGE_IN_STATE = Query(
    "number",
    "SELECT avg(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
_COUNT_IN_STATE = Query(
    "number",
    "SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
_TOTAL_BY_CHANNEL_VALUE = Query(
    "number", "SELECT sum(amount) FROM orders WHERE channel = ? AND strftime('%Y', date) = ?"
)
_TOTAL_OF_CATEGORY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.category = ? AND strftime('%Y', o.date) = ?",
)
_TOTAL_OF_CATEGORY_IN_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " JOIN customers c ON c.id = o.customer_id WHERE p.category = ? AND c.state = ?",
)

_TOP_PRODUCTS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
_BOTTOM_PRODUCTS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
_TOP_STATES = Query(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
_TOP_CUSTOMERS = Query(
    "ranking",
    "SELECT c.name AS customer, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)

_TOTAL_BEFORE = Query("number", "SELECT sum(amount) FROM orders WHERE date < ? || '-01-01'")
_TOTAL_AFTER = Query("number", "SELECT sum(amount) FROM orders WHERE date > ? || '-12-31'")
_TOTAL_SINCE = Query("number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01'")
_TOTAL_BETWEEN = Query(
    "number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01' AND date <= ? || '-12-31'"
)
_COUNT_BEFORE_DAY = Query("number", "SELECT count(*) FROM orders WHERE date < ?")
_COUNT_AFTER_DAY = Query("number", "SELECT count(*) FROM orders WHERE date > ?")

_TOTAL_WITH_PAYMENT = Query(
    "number", "SELECT sum(amount) FROM orders WHERE payment_method = ? AND strftime('%Y', date) = ?"
)
_TOTAL_WITHOUT_PAYMENT = Query(
    "number",
    "SELECT sum(amount) FROM orders WHERE NOT payment_method = ? AND strftime('%Y', date) = ?",
)
_TOTAL_WITHOUT_STATUS = Query(
    "number", "SELECT sum(amount) FROM orders WHERE NOT status = ? AND strftime('%Y', date) = ?"
)
_TOTAL_WITHOUT_CATEGORY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE NOT p.category = ? AND strftime('%Y', o.date) = ?",
)
_SUM_BY_STATE_WITHOUT = Query(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? AND NOT c.state = ?"
    " GROUP BY c.state",
)

_CHANGE = Query(
    "record",
    "SELECT sum(CASE strftime('%Y', date) WHEN ?1 THEN amount ELSE 0 END) AS first_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount ELSE 0 END) AS second_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount WHEN ?1 THEN -amount ELSE 0 END) AS change"
    " FROM orders",
)
_ORDER = Query(
    "record", "SELECT id AS order_id, date, quantity, amount, status FROM orders WHERE id = ?"
)
_CUSTOMER = Query("record", "SELECT name, city, state, since FROM customers WHERE email = ?")
_PRODUCTS_OF = Query("records", "SELECT name, price FROM products WHERE category = ?")
_CUSTOMERS_IN = Query("records", "SELECT name, email FROM customers WHERE state = ?")
_TOTAL_IN_MONTH = Query(
    "number",
    "SELECT sum(amount) FROM orders WHERE strftime('%Y-%m', date) = ?",
)
_TOTAL_IN_CITY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.city = ? AND strftime('%Y', o.date) = ?",
)
_TOTAL_IN_TWO_STATES = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE (c.state = ? OR c.state = ?) AND strftime('%Y', o.date) = ?",
)
_TOTAL_OUTSIDE_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE NOT c.state = ? AND strftime('%Y', o.date) = ?",
)
_UNITS_OF_PRODUCT = Query(
    "number",
    "SELECT sum(o.quantity) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.name = ? AND strftime('%Y', o.date) = ?",
)
_COUNT_WITH_STATUS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE status = ? AND strftime('%Y', date) = ?",
)
_COUNT_MORE_UNITS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE quantity > ? AND strftime('%Y', date) = ?",
)
_COUNT_AT_LEAST_UNITS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE quantity >= ? AND strftime('%Y', date) = ?",
)
_COUNT_BETWEEN_AMOUNTS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE amount >= ? AND amount <= ? AND strftime('%Y', date) = ?",
)
_COUNT_ON_DAY = Query(
    "number",
    "SELECT count(*) FROM orders WHERE date = ?",
)
_COUNT_BETWEEN_DAYS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE date >= ? AND date <= ?",
)
_TOP_PRODUCTS_BY_UNITS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.quantity) DESC LIMIT ?",
)
_BOTTOM_STATES = Query(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
_COUNT_BY_STATE = Query(
    "groups",
    "SELECT c.state, count(o.id) AS count FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
_LARGEST_ORDERS = Query(
    "records",
    "SELECT id AS order_id, amount FROM orders WHERE strftime('%Y', date) = ?"
    " ORDER BY amount DESC LIMIT ?",
)
_PRODUCTS_UP_TO = Query(
    "records",
    "SELECT name, price FROM products WHERE category = ? AND price <= ?",
)
_CUSTOMERS_SINCE = Query(
    "records",
    "SELECT name, since FROM customers WHERE state = ? AND since >= ? || '-01-01'",
)

_CUSTOMER_OF = Query(
    "record",
    "SELECT c.name, c.email, c.city, c.state, c.since FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE o.id = ?",
)
_CHEAPEST = Query(
    "ranking",
    "SELECT name, category, price FROM products WHERE category = ? ORDER BY price LIMIT ?",
)
_COUNT_CUSTOMERS = Query("number", "SELECT count(*) FROM customers WHERE state = ?")
_CUSTOMERS_BY_CITY = Query(
    "groups", "SELECT city, count(*) AS count FROM customers WHERE state = ? GROUP BY city"
)
_AVERAGE_PRICE = Query("number", "SELECT avg(price) FROM products WHERE category = ?")

ONE_STEP: tuple[Case, ...] = (
    # The same question of other years and in other words.
    _case("Show me total sales in 2024 by category", _SUM_BY_CATEGORY, "2024"),
    _case("Show me total sales in 2023 by category", _SUM_BY_CATEGORY, "2023"),
    _case("show me total sales in 2020 by category.", _SUM_BY_CATEGORY, "2020"),
    _case("Total sales by category in 2022", _SUM_BY_CATEGORY, "2022"),
    _case("What were the total sales in 2021 for each category?", _SUM_BY_CATEGORY, "2021"),
    _case("Sum up sales per category in 2025", _SUM_BY_CATEGORY, "2025"),
    _case("Total revenue per category in 2021", _SUM_BY_CATEGORY, "2021"),
    _case("Could you please show me total sales in 2022 by category", _SUM_BY_CATEGORY, "2022"),
    _case("I would like to see total sales in 2023 by category", _SUM_BY_CATEGORY, "2023"),
    _case("What is the total revenue of each category in 2020?", _SUM_BY_CATEGORY, "2020"),
    # One word away from them: another group, another aggregate, another measure.
    _case("Show me total sales in 2024 by state", _SUM_BY_STATE, "2024"),
    _case("Show me average sales in 2024 by category", _AVERAGE_BY_CATEGORY, "2024"),
    _case("Show me average sales in 2023 by state", _AVERAGE_BY_STATE, "2023"),
    _case("Show me total quantity in 2024 by category", _UNITS_BY_CATEGORY, "2024"),
    _case("Show me the number of sales in 2024 by category", _COUNT_BY_CATEGORY, "2024"),
    _case("Show me total sales in 2024 by channel", _SUM_BY_CHANNEL, "2024"),
    _case("Show me total sales in 2022 by month", _SUM_BY_MONTH, "2022"),
    _case(
        "Show me total sales in 2024 by category and channel", _SUM_BY_CATEGORY_AND_CHANNEL, "2024"
    ),
    _case("Show me total sales in 2022 by state", _SUM_BY_STATE, "2022"),
    _case("Total sales by state in 2021", _SUM_BY_STATE, "2021"),
    _case("Number of sales by state in 2024", _COUNT_BY_STATE, "2024"),
    _case("Show me average sales in 2021 by category", _AVERAGE_BY_CATEGORY, "2021"),
    # Sum, average, largest, smallest, how many.
    _case("What were the total sales in 2024?", _TOTAL, "2024"),
    _case("What were the average sales in 2024?", _AVERAGE, "2024"),
    _case("What was the largest sale in 2024?", _LARGEST, "2024"),
    _case("What was the smallest sale in 2024?", _SMALLEST, "2024"),
    _case("How many sales were there in 2024?", _HOW_MANY, "2024"),
    _case("What were the total sales in 2021?", _TOTAL, "2021"),
    _case("What were the average sales in 2020?", _AVERAGE, "2020"),
    _case("What was the largest sale in 2022?", _LARGEST, "2022"),
    _case("How many sales were there in 2023?", _HOW_MANY, "2023"),
    _case("How many orders did we have in 2022?", _HOW_MANY, "2022"),
    _case("Number of orders in 2021", _HOW_MANY, "2021"),
    _case("What is the biggest sale in 2021?", _LARGEST, "2021"),
    _case("What was our average sale in 2023?", _AVERAGE, "2023"),
    _case("Total sales in March 2024", _TOTAL_IN_MONTH, "2024-03"),
    _case("Total sales in May 2023", _TOTAL_IN_MONTH, "2023-05"),
    # Over and under an amount.
    _case("How many sales were over $500 in 2024?", _COUNT_OVER, 500, "2024"),
    _case("How many sales were under $500 in 2024?", _COUNT_UNDER, 500, "2024"),
    _case("How many sales were over $1,250 in 2023?", _COUNT_OVER, 1250, "2023"),
    _case("How many sales were under $25.50 in 2022?", _COUNT_UNDER, 25.5, "2022"),
    _case("What were the total sales over $500 in 2024?", _TOTAL_OVER, 500, "2024"),
    _case("Find sales over $2000 in California", _ORDERS_OVER, 2000, "CA"),
    _case("Find sales under $10 in California", _ORDERS_UNDER, 10, "CA"),
    _case("Find sales over $1500 in Texas", _ORDERS_OVER, 1500, "TX"),
    _case("Find sales of more than $2500 in Nevada", _ORDERS_OVER, 2500, "NV"),
    _case("Find sales above $1000 in Ohio", _ORDERS_OVER, 1000, "OH"),
    _case(
        "How many sales were between $100 and $200 in 2024?",
        _COUNT_BETWEEN_AMOUNTS,
        100,
        200,
        "2024",
    ),
    _case(
        "How many sales were between $50 and $75 in 2021?", _COUNT_BETWEEN_AMOUNTS, 50, 75, "2021"
    ),
    _case("How many sales had a quantity over 5 in 2024?", _COUNT_MORE_UNITS, 5, "2024"),
    _case("How many sales had a quantity of at least 5 in 2024?", _COUNT_AT_LEAST_UNITS, 5, "2024"),
    _case("How many sales had a quantity over 7 in 2022?", _COUNT_MORE_UNITS, 7, "2022"),
    # Values that a plan spells otherwise, and codes that are words too.
    _case("Total sales in California in 2024", _TOTAL_IN_STATE, "CA", "2024"),
    _case("Total sales in Texas in 2023", _TOTAL_IN_STATE, "TX", "2023"),
    _case("Total sales in NY in 2023", _TOTAL_IN_STATE, "NY", "2023"),
    _case("Total sales in Indiana in 2022", _TOTAL_IN_STATE, "IN", "2022"),
    _case("Total sales in Oregon in 2022", _TOTAL_IN_STATE, "OR", "2022"),
    _case("Average sales in California in 2024", _AVERAGE_IN_STATE, "CA", "2024"),
    _case("How many sales were there in Ohio in 2024?", _COUNT_IN_STATE, "OH", "2024"),
    _case("How many sales were there in New Jersey in 2025?", _COUNT_IN_STATE, "NJ", "2025"),
    _case("Total online sales in 2024", _TOTAL_BY_CHANNEL_VALUE, "online", "2024"),
    _case("Total retail sales in 2023", _TOTAL_BY_CHANNEL_VALUE, "retail", "2023"),
    _case("Total electronics sales in 2024", _TOTAL_OF_CATEGORY, "Electronics", "2024"),
    _case("Total furniture sales in 2022", _TOTAL_OF_CATEGORY, "Furniture", "2022"),
    _case("Total sales of Books in Florida", _TOTAL_OF_CATEGORY_IN_STATE, "Books", "FL"),
    _case("Total sales of Toys in Washington", _TOTAL_OF_CATEGORY_IN_STATE, "Toys", "WA"),
    _case("Total sales in Denver in 2024", _TOTAL_IN_CITY, "Denver", "2024"),
    _case("Total sales in Seattle in 2021", _TOTAL_IN_CITY, "Seattle", "2021"),
    _case("Total sales in Texas or Florida in 2024", _TOTAL_IN_TWO_STATES, "TX", "FL", "2024"),
    _case("Total sales in Ohio and Nevada in 2023", _TOTAL_IN_TWO_STATES, "OH", "NV", "2023"),
    _case("Total quantity of Yoga Mat in 2024", _UNITS_OF_PRODUCT, "Yoga Mat", "2024"),
    _case("Total quantity of Coffee Beans in 2023", _UNITS_OF_PRODUCT, "Coffee Beans", "2023"),
    _case("How many returned orders were there in 2024?", _COUNT_WITH_STATUS, "returned", "2024"),
    _case("How many cancelled orders were there in 2023?", _COUNT_WITH_STATUS, "cancelled", "2023"),
    # Top and bottom.
    _case("Top 5 products by sales in 2024", _TOP_PRODUCTS, "2024", 5),
    _case("Top 3 products by sales in 2023", _TOP_PRODUCTS, "2023", 3),
    _case("Bottom 5 products by sales in 2024", _BOTTOM_PRODUCTS, "2024", 5),
    _case("Bottom 2 products by sales in 2021", _BOTTOM_PRODUCTS, "2021", 2),
    _case("Top five products by sales in 2022", _TOP_PRODUCTS, "2022", 5),
    _case("Top 5 states by sales in 2024", _TOP_STATES, "2024", 5),
    _case("Top 10 customers by sales in 2025", _TOP_CUSTOMERS, "2025", 10),
    _case("Top three products by revenue in 2020", _TOP_PRODUCTS, "2020", 3),
    _case("Top 5 products by quantity in 2022", _TOP_PRODUCTS_BY_UNITS, "2022", 5),
    _case("Which state has the highest sales in 2023?", _TOP_STATES, "2023", 1),
    _case("Which state has the lowest sales in 2023?", _BOTTOM_STATES, "2023", 1),
    _case("Which state has the highest sales in 2021?", _TOP_STATES, "2021", 1),
    _case("Show me the 5 largest sales in 2024", _LARGEST_ORDERS, "2024", 5),
    _case("Show me the 3 largest sales in 2022", _LARGEST_ORDERS, "2022", 3),
    # Before, after, since, between.
    _case("Total sales before 2022", _TOTAL_BEFORE, "2022"),
    _case("Total sales after 2022", _TOTAL_AFTER, "2022"),
    _case("Total sales since 2022", _TOTAL_SINCE, "2022"),
    _case("Total sales before 2024", _TOTAL_BEFORE, "2024"),
    _case("Total sales between 2021 and 2023", _TOTAL_BETWEEN, "2021", "2023"),
    _case("Total sales between 2020 and 2022", _TOTAL_BETWEEN, "2020", "2022"),
    _case("Total sales from 2021 to 2024", _TOTAL_BETWEEN, "2021", "2024"),
    _case("How many sales were there before March 11, 2024?", _COUNT_BEFORE_DAY, "2024-03-11"),
    _case("How many sales were there after March 11, 2024?", _COUNT_AFTER_DAY, "2024-03-11"),
    _case("How many sales were there before 2023-06-30?", _COUNT_BEFORE_DAY, "2023-06-30"),
    _case("How many sales were there on March 11, 2024?", _COUNT_ON_DAY, "2024-03-11"),
    _case("How many sales were there on December 31, 2025?", _COUNT_ON_DAY, "2025-12-31"),
    _case(
        "How many sales were there between 2024-01-01 and 2024-03-31?",
        _COUNT_BETWEEN_DAYS,
        "2024-01-01",
        "2024-03-31",
    ),
    # With, without, excluding.
    _case("Total sales with gift card in 2024", _TOTAL_WITH_PAYMENT, "gift card", "2024"),
    _case("Total sales without gift card in 2024", _TOTAL_WITHOUT_PAYMENT, "gift card", "2024"),
    _case("Total sales with PayPal in 2023", _TOTAL_WITH_PAYMENT, "PayPal", "2023"),
    _case("Total sales without PayPal in 2023", _TOTAL_WITHOUT_PAYMENT, "PayPal", "2023"),
    _case("Total sales excluding returns in 2024", _TOTAL_WITHOUT_STATUS, "returned", "2024"),
    _case(
        "Total sales excluding returned orders in 2023", _TOTAL_WITHOUT_STATUS, "returned", "2023"
    ),
    _case("Total sales in 2021 excluding returns", _TOTAL_WITHOUT_STATUS, "returned", "2021"),
    _case("Total sales outside California in 2024", _TOTAL_OUTSIDE_STATE, "CA", "2024"),
    _case(
        "Total sales excluding cancellations in 2022", _TOTAL_WITHOUT_STATUS, "cancelled", "2022"
    ),
    _case(
        "Total sales excluding Electronics in 2024", _TOTAL_WITHOUT_CATEGORY, "Electronics", "2024"
    ),
    _case(
        "Show me total sales in 2024 by state excluding California",
        _SUM_BY_STATE_WITHOUT,
        "2024",
        "CA",
    ),
    # Two values that change places.
    _case("Compare sales from 2023 to 2024", _CHANGE, "2023", "2024"),
    _case("Compare sales from 2024 to 2023", _CHANGE, "2024", "2023"),
    _case("Compare sales from 2020 to 2025", _CHANGE, "2020", "2025"),
    _case("Compare sales between 2021 and 2022", _CHANGE, "2021", "2022"),
    # One thing by its id, and lists.
    _case("Get order ORD1042", _ORDER, "ORD1042"),
    _case("Get order ORD6999", _ORDER, "ORD6999"),
    _case("Show me order ORD2077", _ORDER, "ORD2077"),
    _case("Fetch order ORD1500", _ORDER, "ORD1500"),
    _case("Get customer ada.chen@example.com", _CUSTOMER, "ada.chen@example.com"),
    _case("Get customer maria.lopez@example.com", _CUSTOMER, "maria.lopez@example.com"),
    _case("List products in Garden", _PRODUCTS_OF, "Garden"),
    _case("List products in Toys", _PRODUCTS_OF, "Toys"),
    _case("List products in Books up to $25", _PRODUCTS_UP_TO, "Books", 25),
    _case("List products in Sports up to $35", _PRODUCTS_UP_TO, "Sports", 35),
    _case("List customers in Ohio", _CUSTOMERS_IN, "OH"),
    _case("List customers in Virginia", _CUSTOMERS_IN, "VA"),
    _case("List customers in Texas since 2023", _CUSTOMERS_SINCE, "TX", "2023"),
    _case("List customers in Georgia since 2022", _CUSTOMERS_SINCE, "GA", "2022"),
)
"""Prompts that one call answers."""

SEVERAL_STEPS: tuple[Case, ...] = (
    _case("Get order ORD1042, then get its customer", _CUSTOMER_OF, "ORD1042"),
    _case("Get order ORD1500, then get its customer", _CUSTOMER_OF, "ORD1500"),
    _case(
        "List products in Garden, then sort by price and keep the first 3", _CHEAPEST, "Garden", 3
    ),
    _case("List products in Toys, then sort by price and keep the first 2", _CHEAPEST, "Toys", 2),
    _case("List customers in Ohio and count them", _COUNT_CUSTOMERS, "OH"),
    _case("List customers in Texas and count them", _COUNT_CUSTOMERS, "TX"),
    _case("List customers in Ohio and count them by city", _CUSTOMERS_BY_CITY, "OH"),
    _case("List customers in Nevada and count them by city", _CUSTOMERS_BY_CITY, "NV"),
    _case("List products in Toys and average the price", _AVERAGE_PRICE, "Toys"),
    _asking(
        "List products in Garden but ask me for the max price",
        _PRODUCTS_UP_TO,
        "Garden",
        30,
        max_price="30",
    ),
    _asking(
        "List products in Clothing but ask me for the max price",
        _PRODUCTS_UP_TO,
        "Clothing",
        100,
        max_price="100",
    ),
)
"""Prompts of several steps: a call that needs another's result, what is done to a result, and
questions to a person."""

CASES: tuple[Case, ...] = (*ONE_STEP, *SEVERAL_STEPS)
"""Asked one after the other of one cache, so that later ones meet the plans of earlier ones."""
