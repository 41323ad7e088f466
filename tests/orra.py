"""The plan of the article of orra: two services that read the constants of task0."""

from semcache.canonical import Json, JsonObject

IDS: dict[str, Json] = {"customerId": "CUST789", "orderId": "ORD456"}


def two_services(**task0: Json) -> JsonObject:
    """Return the plan with the constants `task0`."""
    return {
        "tasks": [
            {"id": "task0", "input": task0},
            {
                "id": "task1",
                "service": "customer-service",
                "input": {"customerId": "$task0.customerId"},
            },
            {"id": "task2", "service": "order-system", "input": {"orderId": "$task0.orderId"}},
        ],
        "parallel_groups": [["task1", "task2"]],
    }


ORRA = two_services(**IDS)
