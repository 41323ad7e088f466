"""The document of OneMCP end to end: its schema and plan through a model, a server, a store."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.models.openai import OpenAIModel
from semcache.semcache import SemCache
from semcache.testing import FakeClock, HashEmbedder

if TYPE_CHECKING:
    from tests.conftest import OpenAIServer

PROMPT = "Show me total sales in 2024 by category"
SCHEMA: JsonObject = {
    "action": "summarize",
    "entities": ["sale"],
    "groupBy": ["category"],
    "params": {"year": "2024", "amount": {"aggregate": "sum"}},
    "cacheKey": "summarize-sale-amount_year-group_category",
}
PLAN: JsonObject = {
    "start_node": {"vars": {"year": "{{params.year}}"}, "route": "query_sales"},
    "query_sales": {
        "operation": "querySalesData",
        "input": {
            "filter": [
                {"field": "date.year", "operator": "equals", "value": "{{params.year}}"},
            ],
            "aggregates": [
                {"field": "sale.amount", "function": "{{params.amount.aggregate}}"},
            ],
        },
        "route": "summary",
    },
    "summary": {"completed": True, "vars": {"answer": "$.query_sales.data"}},
}  # fmt: skip
FIELDS = ["date.year", "sale.amount", "product.category"]
INPUT: JsonObject = {
    "type": "object",
    "properties": {
        "filter": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"enum": [*FIELDS]},
                    "operator": {"enum": ["equals", "greater_than"]},
                    "value": {"type": "string"},
                },
            },
        },
        "aggregates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"enum": [*FIELDS]},
                    "function": {"enum": ["sum", "avg"]},
                },
            },
        },
    },
}


@pytest.fixture
def asked() -> list[JsonObject]:
    """What `querySalesData` was called with."""
    return []


@pytest.fixture
def catalog(asked: list[JsonObject]) -> Catalog:
    def query(given: JsonObject) -> JsonObject:
        asked.append(given)
        return {"success": True, "data": [{"total_revenue": 5640255.26}]}

    operation = Operation("querySalesData", "Query sales.", INPUT, effect="read", call=query)
    return Catalog([operation])


@pytest.fixture
def open_(openai_server: "OpenAIServer", catalog: Catalog) -> Iterator[Callable[[], SemCache]]:
    """Open a SemCache that asks a server that speaks the protocol of OpenAI."""
    model = OpenAIModel("gpt-x", base_url=openai_server.base_url, max_retries=0)
    opened: list[SemCache] = []

    def open_semcache() -> SemCache:
        opened.append(
            SemCache.open(catalog=catalog, model=model, embedder=HashEmbedder(), clock=FakeClock())
        )
        return opened[-1]

    yield open_semcache
    for each in opened:
        each.close()
    model.close()


def called(year: str, function: str = "sum") -> JsonObject:
    return {
        "filter": [{"field": "date.year", "operator": "equals", "value": year}],
        "aggregates": [{"field": "sale.amount", "function": function}],
    }


# specs
def test_schema_and_plan_of_the_document_run_and_serve_the_next_year(
    openai_server: "OpenAIServer", open_: Callable[[], SemCache], asked: list[JsonObject]
) -> None:
    openai_server.says(json.dumps(SCHEMA), json.dumps(PLAN))
    semcache = open_()
    first = semcache.run(PROMPT)
    second = semcache.run(PROMPT.replace("2024", "2023"))
    assert first.planned
    assert json.loads(first.text) == [{"total_revenue": 5640255.26}]
    assert (second.tier, second.planned) == ("template", False)
    assert asked == [called("2024"), called("2023")]
    assert len(openai_server.requests) == 2


# specs
def test_another_aggregate_is_another_plan(
    openai_server: "OpenAIServer", open_: Callable[[], SemCache], asked: list[JsonObject]
) -> None:
    average: JsonObject = {"year": "2024", "amount": {"aggregate": "avg"}}
    openai_server.says(
        json.dumps(SCHEMA), json.dumps(PLAN), json.dumps({"choice": None}),
        json.dumps({**SCHEMA, "params": average}), json.dumps(PLAN),
    )  # fmt: skip
    semcache = open_()
    semcache.run(PROMPT)
    assert semcache.run(PROMPT.replace("total", "average")).planned
    assert asked == [called("2024"), called("2024", "avg")]


# specs: A-7
def test_a_prompt_in_other_words_with_the_same_schema_is_a_hit_without_planning(
    openai_server: "OpenAIServer", open_: Callable[[], SemCache], asked: list[JsonObject]
) -> None:
    params: JsonObject = {"year": "2023", "amount": {"aggregate": "sum"}}
    openai_server.says(
        json.dumps(SCHEMA), json.dumps(PLAN), json.dumps({**SCHEMA, "params": params})
    )
    semcache = open_()
    semcache.run(PROMPT)
    answer = semcache.run("What did each category bring in, all sales of 2023 added up?")
    assert (answer.tier, answer.planned) == ("schema", False)
    assert asked[-1] == called("2023")
    assert openai_server.unused == 0
