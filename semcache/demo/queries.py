"""What the prompts of the demo ask, as SQL over the base tables.

It is written by hand from the prompts, and shares nothing with the plans or the operations; only
its column names are those that the operations promise. Values stand in the order of placeholders.
"""

from dataclasses import dataclass
from typing import Literal

Shape = Literal["number", "groups", "ranking", "records", "record"]
"""What an answer looks like: one figure; a row for each group, in any order; groups in the order
asked for; rows of which only the columns of the SQL are compared, in any order; one such row."""


@dataclass(frozen=True, slots=True)
class SalesQuery:
    """A question to the base tables."""

    shape: Shape
    sql: str
    """Placeholders are `?`; columns are named as in the answer."""


SUM_BY_CATEGORY = SalesQuery(
    "groups",
    "SELECT p.category, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
AVERAGE_BY_CATEGORY = SalesQuery(
    "groups",
    "SELECT p.category, avg(o.amount) AS avg_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
UNITS_BY_CATEGORY = SalesQuery(
    "groups",
    "SELECT p.category, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
COUNT_BY_CATEGORY = SalesQuery(
    "groups",
    "SELECT p.category, count(o.id) AS count FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
SUM_BY_STATE = SalesQuery(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
AVERAGE_BY_STATE = SalesQuery(
    "groups",
    "SELECT c.state, avg(o.amount) AS avg_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
SUM_BY_CHANNEL = SalesQuery(
    "groups",
    "SELECT channel, sum(amount) AS sum_amount FROM orders WHERE strftime('%Y', date) = ?"
    " GROUP BY channel",
)
SUM_BY_MONTH = SalesQuery(
    "groups",
    "SELECT CAST(strftime('%m', date) AS INTEGER) AS month, sum(amount) AS sum_amount FROM orders"
    " WHERE strftime('%Y', date) = ? GROUP BY month",
)
SUM_BY_CATEGORY_AND_CHANNEL = SalesQuery(
    "groups",
    "SELECT p.category, o.channel, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category, o.channel",
)

TOTAL = SalesQuery("number", "SELECT sum(amount) FROM orders WHERE strftime('%Y', date) = ?")
AVERAGE = SalesQuery("number", "SELECT avg(amount) FROM orders WHERE strftime('%Y', date) = ?")
LARGEST = SalesQuery("number", "SELECT max(amount) FROM orders WHERE strftime('%Y', date) = ?")
SMALLEST = SalesQuery("number", "SELECT min(amount) FROM orders WHERE strftime('%Y', date) = ?")
HOW_MANY = SalesQuery("number", "SELECT count(*) FROM orders WHERE strftime('%Y', date) = ?")

COUNT_OVER = SalesQuery(
    "number", "SELECT count(*) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
COUNT_UNDER = SalesQuery(
    "number", "SELECT count(*) FROM orders WHERE amount < ? AND strftime('%Y', date) = ?"
)
TOTAL_OVER = SalesQuery(
    "number", "SELECT sum(amount) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
ORDERS_OVER = SalesQuery(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount > ? AND c.state = ?",
)
ORDERS_UNDER = SalesQuery(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount < ? AND c.state = ?",
)

TOTAL_IN_STATE = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
AVERAGE_IN_STATE = SalesQuery(
    "number",
    "SELECT avg(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
COUNT_IN_STATE = SalesQuery(
    "number",
    "SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_BY_CHANNEL_VALUE = SalesQuery(
    "number", "SELECT sum(amount) FROM orders WHERE channel = ? AND strftime('%Y', date) = ?"
)
TOTAL_OF_CATEGORY = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.category = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_OF_CATEGORY_IN_STATE = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " JOIN customers c ON c.id = o.customer_id WHERE p.category = ? AND c.state = ?",
)

TOP_PRODUCTS = SalesQuery(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
BOTTOM_PRODUCTS = SalesQuery(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
TOP_STATES = SalesQuery(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
TOP_CUSTOMERS = SalesQuery(
    "ranking",
    "SELECT c.name AS customer, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)

TOTAL_BEFORE = SalesQuery("number", "SELECT sum(amount) FROM orders WHERE date < ? || '-01-01'")
TOTAL_AFTER = SalesQuery("number", "SELECT sum(amount) FROM orders WHERE date > ? || '-12-31'")
TOTAL_SINCE = SalesQuery("number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01'")
TOTAL_BETWEEN = SalesQuery(
    "number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01' AND date <= ? || '-12-31'"
)
COUNT_BEFORE_DAY = SalesQuery("number", "SELECT count(*) FROM orders WHERE date < ?")
COUNT_AFTER_DAY = SalesQuery("number", "SELECT count(*) FROM orders WHERE date > ?")

TOTAL_WITH_PAYMENT = SalesQuery(
    "number", "SELECT sum(amount) FROM orders WHERE payment_method = ? AND strftime('%Y', date) = ?"
)
TOTAL_WITHOUT_PAYMENT = SalesQuery(
    "number",
    "SELECT sum(amount) FROM orders WHERE NOT payment_method = ? AND strftime('%Y', date) = ?",
)
TOTAL_WITHOUT_STATUS = SalesQuery(
    "number", "SELECT sum(amount) FROM orders WHERE NOT status = ? AND strftime('%Y', date) = ?"
)
TOTAL_WITHOUT_CATEGORY = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE NOT p.category = ? AND strftime('%Y', o.date) = ?",
)
SUM_BY_STATE_WITHOUT = SalesQuery(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? AND NOT c.state = ?"
    " GROUP BY c.state",
)

CHANGE = SalesQuery(
    "record",
    "SELECT sum(CASE strftime('%Y', date) WHEN ?1 THEN amount ELSE 0 END) AS first_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount ELSE 0 END) AS second_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount WHEN ?1 THEN -amount ELSE 0 END) AS change"
    " FROM orders",
)
ORDER = SalesQuery(
    "record", "SELECT id AS order_id, date, quantity, amount, status FROM orders WHERE id = ?"
)
CUSTOMER = SalesQuery("record", "SELECT name, city, state, since FROM customers WHERE email = ?")
PRODUCTS_OF = SalesQuery("records", "SELECT name, price FROM products WHERE category = ?")
CUSTOMERS_IN = SalesQuery("records", "SELECT name, email FROM customers WHERE state = ?")
TOTAL_IN_MONTH = SalesQuery(
    "number",
    "SELECT sum(amount) FROM orders WHERE strftime('%Y-%m', date) = ?",
)
TOTAL_IN_CITY = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.city = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_IN_TWO_STATES = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE (c.state = ? OR c.state = ?) AND strftime('%Y', o.date) = ?",
)
TOTAL_OUTSIDE_STATE = SalesQuery(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE NOT c.state = ? AND strftime('%Y', o.date) = ?",
)
UNITS_OF_PRODUCT = SalesQuery(
    "number",
    "SELECT sum(o.quantity) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.name = ? AND strftime('%Y', o.date) = ?",
)
COUNT_WITH_STATUS = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE status = ? AND strftime('%Y', date) = ?",
)
COUNT_MORE_UNITS = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE quantity > ? AND strftime('%Y', date) = ?",
)
COUNT_AT_LEAST_UNITS = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE quantity >= ? AND strftime('%Y', date) = ?",
)
COUNT_BETWEEN_AMOUNTS = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE amount >= ? AND amount <= ? AND strftime('%Y', date) = ?",
)
COUNT_ON_DAY = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE date = ?",
)
COUNT_BETWEEN_DAYS = SalesQuery(
    "number",
    "SELECT count(*) FROM orders WHERE date >= ? AND date <= ?",
)
TOP_PRODUCTS_BY_UNITS = SalesQuery(
    "ranking",
    "SELECT p.name AS product, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.quantity) DESC LIMIT ?",
)
BOTTOM_STATES = SalesQuery(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
COUNT_BY_STATE = SalesQuery(
    "groups",
    "SELECT c.state, count(o.id) AS count FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
LARGEST_ORDERS = SalesQuery(
    "records",
    "SELECT id AS order_id, amount FROM orders WHERE strftime('%Y', date) = ?"
    " ORDER BY amount DESC LIMIT ?",
)
PRODUCTS_UP_TO = SalesQuery(
    "records",
    "SELECT name, price FROM products WHERE category = ? AND price <= ?",
)
CUSTOMERS_SINCE = SalesQuery(
    "records",
    "SELECT name, since FROM customers WHERE state = ? AND since >= ? || '-01-01'",
)

CUSTOMER_OF = SalesQuery(
    "record",
    "SELECT c.name, c.email, c.city, c.state, c.since FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE o.id = ?",
)
CHEAPEST = SalesQuery(
    "ranking",
    "SELECT name, category, price FROM products WHERE category = ? ORDER BY price LIMIT ?",
)
COUNT_CUSTOMERS = SalesQuery("number", "SELECT count(*) FROM customers WHERE state = ?")
CUSTOMERS_BY_CITY = SalesQuery(
    "groups", "SELECT city, count(*) AS count FROM customers WHERE state = ? GROUP BY city"
)
AVERAGE_PRICE = SalesQuery("number", "SELECT avg(price) FROM products WHERE category = ?")
