"""A plan that breaks when it runs: what the demo heals."""

from typing import Any

from semcache.demo.prompts import Case, SalesQuery
from semcache.semcache import SemCache

CASE = Case(
    "Show me total sales in 2024 by payment method",
    SalesQuery(
        "groups",
        "SELECT payment_method, sum(amount) AS sum_amount FROM orders"
        " WHERE strftime('%Y', date) = ? GROUP BY payment_method",
    ),
    ("2024",),
)
"""The prompt, and how to know its answer."""

PLAN: dict[str, Any] = {
    "start_node": {"route": "sales"},
    "sales": {
        "operation": "query_sales",
        "input": {
            "filters": [{"field": "year", "value": 2024}],
            "aggregates": [{"field": "amount", "function": "sum"}],
            "group_by": ["payment_method"],
        },
        "route": "order",
    },
    "order": {
        "operation": "get_order",
        "input": {"order_id": "$.sales[0].order_of_this_group"},
        "route": "end",
    },
    "end": {"completed": True, "vars": {"answer": "$.order"}},
}
"""Looks well, and reads what no row has: `get_order` is called with null."""


def plant(semcache: SemCache, *, tenant: str) -> None:
    """Store the plan for its prompt, as if a planner had made it."""
    semcache.cache.store(CASE.prompt, PLAN, params={"year": 2024}, tenant=tenant)
