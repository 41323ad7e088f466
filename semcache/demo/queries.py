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
class Query:
    """A question to the base tables."""

    shape: Shape
    sql: str
    """Placeholders are `?`; columns are named as in the answer."""


SUM_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
AVERAGE_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, avg(o.amount) AS avg_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
UNITS_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
COUNT_BY_CATEGORY = Query(
    "groups",
    "SELECT p.category, count(o.id) AS count FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category",
)
SUM_BY_STATE = Query(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
AVERAGE_BY_STATE = Query(
    "groups",
    "SELECT c.state, avg(o.amount) AS avg_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
SUM_BY_CHANNEL = Query(
    "groups",
    "SELECT channel, sum(amount) AS sum_amount FROM orders WHERE strftime('%Y', date) = ?"
    " GROUP BY channel",
)
SUM_BY_MONTH = Query(
    "groups",
    "SELECT CAST(strftime('%m', date) AS INTEGER) AS month, sum(amount) AS sum_amount FROM orders"
    " WHERE strftime('%Y', date) = ? GROUP BY month",
)
SUM_BY_CATEGORY_AND_CHANNEL = Query(
    "groups",
    "SELECT p.category, o.channel, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.category, o.channel",
)

TOTAL = Query("number", "SELECT sum(amount) FROM orders WHERE strftime('%Y', date) = ?")
AVERAGE = Query("number", "SELECT avg(amount) FROM orders WHERE strftime('%Y', date) = ?")
LARGEST = Query("number", "SELECT max(amount) FROM orders WHERE strftime('%Y', date) = ?")
SMALLEST = Query("number", "SELECT min(amount) FROM orders WHERE strftime('%Y', date) = ?")
HOW_MANY = Query("number", "SELECT count(*) FROM orders WHERE strftime('%Y', date) = ?")

COUNT_OVER = Query(
    "number", "SELECT count(*) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
COUNT_UNDER = Query(
    "number", "SELECT count(*) FROM orders WHERE amount < ? AND strftime('%Y', date) = ?"
)
TOTAL_OVER = Query(
    "number", "SELECT sum(amount) FROM orders WHERE amount > ? AND strftime('%Y', date) = ?"
)
ORDERS_OVER = Query(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount > ? AND c.state = ?",
)
ORDERS_UNDER = Query(
    "records",
    "SELECT o.id AS order_id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.amount < ? AND c.state = ?",
)

TOTAL_IN_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
AVERAGE_IN_STATE = Query(
    "number",
    "SELECT avg(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
COUNT_IN_STATE = Query(
    "number",
    "SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.state = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_BY_CHANNEL_VALUE = Query(
    "number", "SELECT sum(amount) FROM orders WHERE channel = ? AND strftime('%Y', date) = ?"
)
TOTAL_OF_CATEGORY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.category = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_OF_CATEGORY_IN_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " JOIN customers c ON c.id = o.customer_id WHERE p.category = ? AND c.state = ?",
)

TOP_PRODUCTS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
BOTTOM_PRODUCTS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.amount) AS sum_amount FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
TOP_STATES = Query(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)
TOP_CUSTOMERS = Query(
    "ranking",
    "SELECT c.name AS customer, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.name"
    " ORDER BY sum(o.amount) DESC LIMIT ?",
)

TOTAL_BEFORE = Query("number", "SELECT sum(amount) FROM orders WHERE date < ? || '-01-01'")
TOTAL_AFTER = Query("number", "SELECT sum(amount) FROM orders WHERE date > ? || '-12-31'")
TOTAL_SINCE = Query("number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01'")
TOTAL_BETWEEN = Query(
    "number", "SELECT sum(amount) FROM orders WHERE date >= ? || '-01-01' AND date <= ? || '-12-31'"
)
COUNT_BEFORE_DAY = Query("number", "SELECT count(*) FROM orders WHERE date < ?")
COUNT_AFTER_DAY = Query("number", "SELECT count(*) FROM orders WHERE date > ?")

TOTAL_WITH_PAYMENT = Query(
    "number", "SELECT sum(amount) FROM orders WHERE payment_method = ? AND strftime('%Y', date) = ?"
)
TOTAL_WITHOUT_PAYMENT = Query(
    "number",
    "SELECT sum(amount) FROM orders WHERE NOT payment_method = ? AND strftime('%Y', date) = ?",
)
TOTAL_WITHOUT_STATUS = Query(
    "number", "SELECT sum(amount) FROM orders WHERE NOT status = ? AND strftime('%Y', date) = ?"
)
TOTAL_WITHOUT_CATEGORY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE NOT p.category = ? AND strftime('%Y', o.date) = ?",
)
SUM_BY_STATE_WITHOUT = Query(
    "groups",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? AND NOT c.state = ?"
    " GROUP BY c.state",
)

CHANGE = Query(
    "record",
    "SELECT sum(CASE strftime('%Y', date) WHEN ?1 THEN amount ELSE 0 END) AS first_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount ELSE 0 END) AS second_amount,"
    " sum(CASE strftime('%Y', date) WHEN ?2 THEN amount WHEN ?1 THEN -amount ELSE 0 END) AS change"
    " FROM orders",
)
ORDER = Query(
    "record", "SELECT id AS order_id, date, quantity, amount, status FROM orders WHERE id = ?"
)
CUSTOMER = Query("record", "SELECT name, city, state, since FROM customers WHERE email = ?")
PRODUCTS_OF = Query("records", "SELECT name, price FROM products WHERE category = ?")
CUSTOMERS_IN = Query("records", "SELECT name, email FROM customers WHERE state = ?")
TOTAL_IN_MONTH = Query(
    "number",
    "SELECT sum(amount) FROM orders WHERE strftime('%Y-%m', date) = ?",
)
TOTAL_IN_CITY = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE c.city = ? AND strftime('%Y', o.date) = ?",
)
TOTAL_IN_TWO_STATES = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE (c.state = ? OR c.state = ?) AND strftime('%Y', o.date) = ?",
)
TOTAL_OUTSIDE_STATE = Query(
    "number",
    "SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE NOT c.state = ? AND strftime('%Y', o.date) = ?",
)
UNITS_OF_PRODUCT = Query(
    "number",
    "SELECT sum(o.quantity) FROM orders o JOIN products p ON p.id = o.product_id"
    " WHERE p.name = ? AND strftime('%Y', o.date) = ?",
)
COUNT_WITH_STATUS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE status = ? AND strftime('%Y', date) = ?",
)
COUNT_MORE_UNITS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE quantity > ? AND strftime('%Y', date) = ?",
)
COUNT_AT_LEAST_UNITS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE quantity >= ? AND strftime('%Y', date) = ?",
)
COUNT_BETWEEN_AMOUNTS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE amount >= ? AND amount <= ? AND strftime('%Y', date) = ?",
)
COUNT_ON_DAY = Query(
    "number",
    "SELECT count(*) FROM orders WHERE date = ?",
)
COUNT_BETWEEN_DAYS = Query(
    "number",
    "SELECT count(*) FROM orders WHERE date >= ? AND date <= ?",
)
TOP_PRODUCTS_BY_UNITS = Query(
    "ranking",
    "SELECT p.name AS product, sum(o.quantity) AS sum_quantity FROM orders o JOIN products p"
    " ON p.id = o.product_id WHERE strftime('%Y', o.date) = ? GROUP BY p.name"
    " ORDER BY sum(o.quantity) DESC LIMIT ?",
)
BOTTOM_STATES = Query(
    "ranking",
    "SELECT c.state, sum(o.amount) AS sum_amount FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state"
    " ORDER BY sum(o.amount) ASC LIMIT ?",
)
COUNT_BY_STATE = Query(
    "groups",
    "SELECT c.state, count(o.id) AS count FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE strftime('%Y', o.date) = ? GROUP BY c.state",
)
LARGEST_ORDERS = Query(
    "records",
    "SELECT id AS order_id, amount FROM orders WHERE strftime('%Y', date) = ?"
    " ORDER BY amount DESC LIMIT ?",
)
PRODUCTS_UP_TO = Query(
    "records",
    "SELECT name, price FROM products WHERE category = ? AND price <= ?",
)
CUSTOMERS_SINCE = Query(
    "records",
    "SELECT name, since FROM customers WHERE state = ? AND since >= ? || '-01-01'",
)

CUSTOMER_OF = Query(
    "record",
    "SELECT c.name, c.email, c.city, c.state, c.since FROM orders o JOIN customers c"
    " ON c.id = o.customer_id WHERE o.id = ?",
)
CHEAPEST = Query(
    "ranking",
    "SELECT name, category, price FROM products WHERE category = ? ORDER BY price LIMIT ?",
)
COUNT_CUSTOMERS = Query("number", "SELECT count(*) FROM customers WHERE state = ?")
CUSTOMERS_BY_CITY = Query(
    "groups", "SELECT city, count(*) AS count FROM customers WHERE state = ? GROUP BY city"
)
AVERAGE_PRICE = Query("number", "SELECT avg(price) FROM products WHERE category = ?")
