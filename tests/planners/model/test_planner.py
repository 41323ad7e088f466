import json

import pytest

from semcache import Catalog, Operation, Parameter, PromptSchema
from semcache.canonical import JsonObject
from semcache.errors import (
    InvalidParameter,
    InvalidSettings,
    NotActionable,
    PlanningError,
)
from semcache.planners.model.planner import ModelPlanner
from semcache.ports import PlanRequest
from semcache.testing import ScriptedModel
from tests.calling import calling

SALES = Catalog([
    Operation(
        "query_sales",
        "Total and filter sales.",
        {
            "type": "object",
            "properties": {"year": {"type": "integer"}, "limit": {"type": "integer"}},
            "required": ["year"],
            "additionalProperties": False,
        },
        effect="read",
    )
])  # fmt: skip
YEAR = Parameter("year", 2024, "2024")


GOOD = calling("query_sales", year="{{params.year}}")


def request(*params: Parameter, failure: str = "") -> PlanRequest:
    known = params or (YEAR,)
    return PlanRequest(
        prompt="sales in 2024", schema=None, catalog=SALES, params=known, failure=failure
    )


def test_a_plan_with_placeholders_is_taken_as_it_is() -> None:
    model = ScriptedModel([json.dumps(GOOD)], fingerprint="gpt-x")
    planned = ModelPlanner(model).plan(request())
    assert planned.plan.to_dict() == GOOD
    assert planned.plan.format == "routes"
    assert planned.params == (YEAR,)
    assert planned.planner == "gpt-x/plan-2/format_routes-1"


# specs: A-16
def test_a_literal_that_can_be_bound_is_as_good_as_a_placeholder() -> None:
    model = ScriptedModel([json.dumps(calling("query_sales", year=2024))])
    assert ModelPlanner(model).plan(request()).plan.to_dict() == calling("query_sales", year=2024)
    assert len(model.calls) == 1


# specs: A-16
def test_a_value_that_another_prompt_could_not_replace_is_held_against_a_plan() -> None:
    model = ScriptedModel([json.dumps(calling("query_sales", year=1999)), json.dumps(GOOD)])
    assert ModelPlanner(model).plan(request()).plan.to_dict() == GOOD
    told = model.calls[1][-1].content
    assert "Parameter 'year' (2024) is not used as '{{params.year}}'" in told


# specs: A-16
def test_a_plan_that_never_uses_a_value_is_taken_in_the_end_for_that_value_alone() -> None:
    stubborn = json.dumps(calling("query_sales", year=1999))
    model = ScriptedModel([stubborn, "no", stubborn])
    assert ModelPlanner(model).plan(request()).plan.to_dict() == calling("query_sales", year=1999)
    assert len(model.calls) == 3


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("I would call query_sales.", "no JSON object was found"),
        (json.dumps(calling("delete_sales", year="{{params.year}}")), "delete_sales"),
        (json.dumps(calling("query_sales", year="{{params.month}}")), "params.month"),
        (
            json.dumps(calling("query_sales", year="{{params.year}}", limit="five")),
            "/call/input/limit",
        ),
        (json.dumps(calling("query_sales", limit="{{params.year}}")), "year"),
        (json.dumps({**GOOD, "start_node": {"route": "nowhere"}}), "nowhere"),
        (json.dumps({"tasks": [{"id": "task0", "input": {}}]}), "not in the format 'routes'"),
        (json.dumps({"nodes": {}}), "not in the format 'routes'"),
    ],
)
def test_what_is_wrong_with_a_plan_is_told_to_the_model(answer: str, told: str) -> None:
    model = ScriptedModel([answer, json.dumps(GOOD)])
    assert ModelPlanner(model).plan(request()).plan.to_dict() == GOOD
    assert told in model.calls[1][-1].content


def test_all_findings_are_told_at_once() -> None:
    broken = calling("delete_sales", year="{{params.year}}") | {"start_node": {"route": "nowhere"}}
    model = ScriptedModel([json.dumps(broken), json.dumps(GOOD)])
    ModelPlanner(model).plan(request())
    told = model.calls[1][-1].content
    assert "delete_sales" in told
    assert "nowhere" in told


def test_an_invalid_plan_is_never_used_after_three_attempts() -> None:
    model = ScriptedModel([json.dumps(calling("delete_sales"))] * 4)
    with pytest.raises(PlanningError, match=r"'sales in 2024' after 3 attempt.*delete_sales"):
        ModelPlanner(model).plan(request())
    assert len(model.unused) == 1


# specs: D-10
@pytest.mark.parametrize(
    "answer",
    [
        {"not_actionable": "no weather here"},
        {
            "tasks": [
                {"id": "task0", "input": {}},
                {"id": "final", "input": {"error": "no weather here"}},
            ]
        },
        {
            "start_node": {"route": "end"},
            "end": {"completed": True, "vars": {"message": "no weather here"}},
        },
    ],
)
def test_a_refusal_is_not_actionable_and_not_asked_again(answer: JsonObject) -> None:
    model = ScriptedModel([json.dumps(answer), json.dumps(GOOD)])
    with pytest.raises(NotActionable, match="no weather here"):
        ModelPlanner(model).plan(request())
    assert len(model.calls) == 1


def test_a_plan_that_calls_nothing_is_not_actionable() -> None:
    idle: JsonObject = {"start_node": {"route": "end"}, "end": {"completed": True}}
    with pytest.raises(NotActionable, match="calls no operation"):
        ModelPlanner(ScriptedModel([json.dumps(idle)])).plan(request())


def test_an_empty_catalog_asks_no_model() -> None:
    with pytest.raises(NotActionable, match="catalog is empty"):
        ModelPlanner(ScriptedModel()).plan(PlanRequest("sales", None, Catalog()))


def test_the_model_sees_catalog_schema_values_and_prompt() -> None:
    schema = PromptSchema("search", ("sale",), params={"year": 2024}, mentions={"year": "2024"})
    model = ScriptedModel([json.dumps(GOOD)])
    planned = ModelPlanner(model).plan(PlanRequest("sales in\n2024", schema, SALES))
    assert planned.params == (YEAR,)
    system, user = (message.content for message in model.calls[0])
    assert '"additionalProperties": false' in system
    assert "start_node" in system
    assert "{{params.year}}" in system
    assert '"search-sale-year"' not in system
    assert '"action": "search"' in user
    assert '"year": 2024' in user
    assert '"sales in\\n2024"' in user
    assert "failed" not in user


def test_the_last_failure_is_told_on_the_first_attempt() -> None:
    model = ScriptedModel([json.dumps(GOOD)])
    ModelPlanner(model).plan(request(failure="no such column: colour"))
    assert "no such column: colour" in model.calls[0][-1].content


def test_a_value_that_looks_like_a_path_or_a_placeholder_stays_data() -> None:
    catalog = SALES.with_(
        Operation("find", "Find.", {"type": "object", "properties": {"q": {"type": "string"}}})
    )
    for value in ("$.secret", "{{params.q}}", "<<format>>"):
        model = ScriptedModel([json.dumps(calling("find", q="{{params.q}}"))])
        asked = PlanRequest("find it", None, catalog, (Parameter("q", value),))
        assert ModelPlanner(model).plan(asked).params[0].value == value


def test_parameters_that_differ_only_in_spelling_are_the_callers_fault() -> None:
    model = ScriptedModel()
    with pytest.raises(InvalidParameter, match="differ only in spelling"):
        ModelPlanner(model).plan(request(Parameter("orderId", 1), Parameter("order_id", 2)))


def test_a_format_without_instructions_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="format_poem"):
        ModelPlanner(ScriptedModel(), plan_format="poem")
