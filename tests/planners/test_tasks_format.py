"""The model planner, asked for plans in the tasks format."""

import json

import pytest

from semcache import Catalog, Operation, Parameter, SemCache
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidJson, NotActionable, PlanningError
from semcache.planners.model.planner import ModelPlanner
from semcache.ports import PlanRequest
from semcache.runs.dialog import json_object
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel


def takes(name: str, kind: str) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": kind}, "note": {"type": "string"}},
        "required": [name],
        "additionalProperties": False,
    }


CATALOG = Catalog([
    Operation("customer-service", "Find a customer.", takes("customerId", "string"),
              effect="read", call=lambda given: {"customer": given["customerId"]}),
    Operation("order-system", "Find an order.", takes("orderId", "integer"),
              effect="read", call=lambda given: {"order": given["orderId"]}),
])  # fmt: skip
PARAMS = (Parameter("customerId", "CUST789", "CUST789"), Parameter("orderId", 456, "456"))


def plan(zero: JsonObject | None = None, **orders: Json) -> JsonObject:
    constants: JsonObject = {
        "customerId": "{{params.customerId}}",
        "orderId": "{{params.orderId}}",
    }
    return {
        "tasks": [
            {"id": "task0", "input": constants if zero is None else zero},
            {
                "id": "task1",
                "service": "customer-service",
                "input": {"customerId": "$task0.customerId"},
            },
            {
                "id": "task2",
                "service": "order-system",
                "input": {"orderId": "$task0.orderId"},
                **orders,
            },
        ],
        "parallel_groups": [["task1", "task2"]],
    }


REQUEST = PlanRequest(
    prompt="order 456 of customer CUST789", schema=None, catalog=CATALOG, params=PARAMS
)


def ask(*answers: str) -> tuple[ModelPlanner, ScriptedModel]:
    model = ScriptedModel(answers, fingerprint="m")
    return ModelPlanner(model, plan_format="tasks"), model


def test_the_model_is_told_the_format_and_its_plan_is_taken() -> None:
    planner, model = ask(json.dumps(plan()))
    planned = planner.plan(REQUEST)
    assert planned.plan.format == "tasks"
    assert planned.plan.to_dict() == plan()
    assert planned.planner == "m/plan-2/format_tasks-1"
    assert '"$task1.customer.email"' in model.calls[0][0].content


# specs: D-11
def test_reasoning_and_words_around_the_fence_are_stripped() -> None:
    answer = f"<think>task0 {{first}}</think>Here:\n```json\n{json.dumps(plan())}\n```\nDone."
    planner, _ = ask(answer)
    assert planner.plan(REQUEST).plan.to_dict() == plan()


# specs: D-11
@pytest.mark.parametrize("answer", ["``````", "```json```", "```json\n{\n```", "plain words"])
def test_an_answer_without_an_object_is_an_error(answer: str) -> None:
    with pytest.raises(InvalidJson):
        json_object(answer)


# specs: D-11
def test_of_two_fences_the_first_counts() -> None:
    answer = '```json\n{"tasks": [1]}\n```\nor\n```json\n{"tasks": [2]}\n```'
    assert json_object(answer) == {"tasks": [1]}


# specs: D-9
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (plan({"orderId": "{{params.orderId}}"}), "parameter 'customerId' is missing"),
        (plan(input={"orderId": "Order $task0.orderId"}), "mixes text and references"),
        (plan(service="order-service"), "no operation is named 'order-service'"),
        (plan(input={"note": "x"}), "'orderId' is a required property"),
        (plan(input={"orderId": "$task0.orderId", "color": "red"}), "'color' was unexpected"),
        (plan(input={"orderId": "$task2.order"}), "these wait for one another: 'task2'"),
        (plan({"customerId": "x", "orderId": "none"}), "'none' is not of type 'integer'"),
        ({"tasks": []}, "not in the format 'tasks'"),
    ],
)
def test_what_is_wrong_is_told_in_the_next_prompt(bad: JsonObject, told: str) -> None:
    planner, model = ask(json.dumps(bad), json.dumps(plan()))
    assert planner.plan(REQUEST).plan.to_dict() == plan()
    assert told in model.calls[1][-1].content


SAID = {"customerId": "CUST789", "orderId": 456}


# specs: D-2
def test_without_a_model_a_prompt_for_two_services_is_refused_and_not_answered_by_one() -> None:
    with SemCache.open(catalog=CATALOG, embedder=HashEmbedder(), clock=FakeClock()) as semcache:
        with pytest.raises(PlanningError, match="no property for 'CUST789'"):
            semcache.run(REQUEST.prompt, params=SAID)
        assert semcache.cache.stats().entries == 0


# specs: D-10
def test_a_final_task_says_that_it_cannot_be_done() -> None:
    final: Json = {"id": "final", "input": {"error": "no weather here"}}
    planner, model = ask(json.dumps({"tasks": [{"id": "task0", "input": {}}, final]}))
    with pytest.raises(NotActionable, match="no weather here"):
        planner.plan(REQUEST)
    assert len(model.calls) == 1


def test_services_are_named_as_the_catalog_has_them() -> None:
    planner, _ = ask(json.dumps(plan(service="Order-System")))
    assert planner.plan(REQUEST).plan.operations() == ("customer-service", "order-system")


def test_a_value_takes_the_type_of_the_input_that_it_goes_to_by_way_of_task0() -> None:
    planner, _ = ask(json.dumps(plan()))
    said = (PARAMS[0], Parameter("orderId", "456", "456"))
    request = PlanRequest(prompt=REQUEST.prompt, schema=None, catalog=CATALOG, params=said)
    planned = planner.plan(request)
    with SemCache.open(catalog=CATALOG, embedder=HashEmbedder(), clock=FakeClock()) as semcache:
        semcache.store(REQUEST.prompt, planned)
        answer = semcache.run("order 457 of customer CUST111")
    assert answer.nodes[0].output == {"customerId": "CUST111", "orderId": 457}
