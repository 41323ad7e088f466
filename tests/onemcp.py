"""The plan of the document of OneMCP, to the letter: the schema tells what it is filled with."""

from semcache.canonical import JsonObject


def onemcp() -> JsonObject:
    """Return the plan with its placeholders."""
    return {
        "start_node": {"vars": {"year": "{{params.year}}"}, "route": "query_sales"},
        "query_sales": {
            "operation": "querySalesData",
            "input": {
                "filter": [
                    {"field": "date.year", "operator": "equals", "value": "{{params.year}}"}
                ],
                "aggregates": [{"field": "sale.amount", "function": "{{params.amount.aggregate}}"}],
            },
            "route": "summary",
        },
        "summary": {"completed": True, "vars": {"answer": "$.query_sales.data"}},
    }
