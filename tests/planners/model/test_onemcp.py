"""The document of OneMCP end to end: its schema and plan through a model, a server, a store."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from semcache import Catalog, Operation, SemCache, Settings
from semcache.canonical import JsonObject
from semcache.errors import PlanningError
from semcache.models.openai import OpenAIModel
from tests.conftest import OpenAIServer
from tests.planners.conftest import Open

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
YEAR_2023: JsonObject = {"year": "2023", "amount": {"aggregate": "sum"}}
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
def open_(
    openai_server: OpenAIServer, catalog: Catalog, open_semcache: Open
) -> Iterator[Callable[..., SemCache]]:
    """Open a SemCache that asks a server that speaks the protocol of OpenAI."""
    with closing(OpenAIModel("gpt-x", base_url=openai_server.base_url, max_retries=0)) as model:
        yield lambda **more: open_semcache(catalog, model=model, settings=Settings(**more))


def called(year: str, function: str = "sum") -> JsonObject:
    return {
        "filter": [{"field": "date.year", "operator": "equals", "value": year}],
        "aggregates": [{"field": "sale.amount", "function": function}],
    }


# specs
def test_schema_and_plan_of_the_document_run_and_serve_the_next_year(
    openai_server: OpenAIServer, open_: Callable[..., SemCache], asked: list[JsonObject]
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
    openai_server: OpenAIServer, open_: Callable[..., SemCache], asked: list[JsonObject]
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
    openai_server: OpenAIServer, open_: Callable[..., SemCache], asked: list[JsonObject]
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


KEY = "summarize-sale-amount_year-group_category"


# specs: A-13
@pytest.mark.parametrize("written", [PLAN, json.dumps(PLAN)])
def test_the_plan_file_of_the_document_is_read_and_no_planner_is_asked(
    openai_server: OpenAIServer,
    open_: Callable[..., SemCache],
    asked: list[JsonObject],
    tmp_path: Path,
    written: JsonObject | str,
) -> None:
    told = {"psk": KEY, "created_at": "2025-01-15T10:00:00Z", "plan": written}
    (tmp_path / f"{KEY}.json").write_text(json.dumps(told), encoding="utf-8")
    openai_server.says(json.dumps(SCHEMA))
    semcache = open_(plan_files=str(tmp_path))
    assert semcache.run(PROMPT).planned
    assert asked == [called("2024")]
    assert semcache.run(PROMPT.replace("2024", "2023")).tier == "template"
    assert len(openai_server.requests) == 1


# specs: A-13
def test_a_new_plan_is_written_as_the_document_has_it_and_serves_another_cache(
    openai_server: OpenAIServer,
    open_: Callable[..., SemCache],
    asked: list[JsonObject],
    tmp_path: Path,
) -> None:
    openai_server.says(json.dumps(SCHEMA), json.dumps(PLAN))
    open_(plan_files=str(tmp_path)).run(PROMPT)
    told = json.loads((tmp_path / f"{KEY}.json").read_text(encoding="utf-8"))
    assert (told["psk"], told["created_at"]) == (KEY, "2023-11-14T22:13:20Z")
    assert told["plan"]["query_sales"]["input"]["filter"][0]["value"] == "{{params.year}}"
    openai_server.says(json.dumps({**SCHEMA, "params": {**YEAR_2023}}))
    open_(plan_files=str(tmp_path)).run(PROMPT.replace("2024", "2023"))
    assert asked == [called("2024"), called("2023")]
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEY}.json"]


# specs: A-13
@pytest.mark.parametrize("text", ["{", '{"psk": "other", "plan": {}}', '{"plan": 5}', ""])
def test_a_plan_file_that_is_broken_is_set_aside_and_the_prompt_is_planned(
    openai_server: OpenAIServer, open_: Callable[..., SemCache], tmp_path: Path, text: str
) -> None:
    (tmp_path / f"{KEY}.json").write_text(text, encoding="utf-8")
    openai_server.says(json.dumps(SCHEMA), json.dumps(PLAN))
    assert open_(plan_files=str(tmp_path)).run(PROMPT).planned
    assert (tmp_path / f"{KEY}.broken").read_text(encoding="utf-8") == text
    assert openai_server.unused == 0


# specs
def test_a_plan_file_for_another_shape_under_the_same_key_does_not_fit(
    openai_server: OpenAIServer, open_: Callable[..., SemCache], tmp_path: Path
) -> None:
    told = {"psk": KEY, "created_at": "2025-01-15T10:00:00Z", "plan": PLAN}
    (tmp_path / f"{KEY}.json").write_text(json.dumps(told), encoding="utf-8")
    over: JsonObject = {"year": "2024", "amount": {"operator": ">", "operand": 500}}
    schema = json.dumps({**SCHEMA, "params": over, "mentions": {"amount.operand": "500"}})
    openai_server.says(schema, json.dumps({"not_actionable": "no filter on amounts"}))
    with pytest.raises(PlanningError, match="does not fit"):
        open_(plan_files=str(tmp_path)).run("sales over 500 in 2024 by category")
