"""The model planner, asked for a program."""

import json

import pytest

from semcache import Catalog, Operation, Parameter
from semcache.canonical import JsonObject
from semcache.errors import InvalidJson
from semcache.planners.model.planner import ModelPlanner
from semcache.plans.codec import check, decode
from semcache.ports import Planned, PlanRequest
from semcache.runs.dialog import json_object
from semcache.runs.texts import load
from semcache.testing import ScriptedModel
from tests.plans.programs import step

ORDERS = Catalog([
    Operation(
        "list_orders",
        "List the orders of a customer.",
        {
            "type": "object",
            "properties": {"customer": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["customer"],
            "additionalProperties": False,
        },
        effect="read",
    )
])  # fmt: skip
PARAMS = (Parameter("customer", "Acme", "Acme"), Parameter("limit", 5, "5"))


def steps(customer: str = "{{params.customer}}", target: int = 2) -> list[JsonObject]:
    given: JsonObject = {"customer": customer, "limit": "{{params.limit}}"}
    return [
        step(0, "calling", tool_name="list_orders", tool_params=given, output_vars=["orders"]),
        step(1, "jmp", target_seq=target),
        step(2, "assign", final_answer="${orders}"),
    ]


GOOD = json.dumps(steps())


def planned(*replies: str) -> tuple[Planned, ScriptedModel]:
    model = ScriptedModel(replies, fingerprint="gpt-x")
    request = PlanRequest("the last 5 orders of Acme", None, ORDERS, PARAMS)
    return ModelPlanner(model, plan_format="program").plan(request), model


# specs: C-12
@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"instructions": steps()}),
        json.dumps({"plan": steps()}),
        GOOD,
        f"<think>First [{{...}}] then.</think><answer>\n```json\n{GOOD}\n```\n</answer>",
        f"Here is the plan:\n```\n{GOOD}\n```\nIt lists orders.",
        f"```json\n{GOOD}",
        GOOD.replace('"assign", ', '"assign",\n').replace("}]", "},]"),
    ],
)
def test_a_program_is_taken_from_whatever_surrounds_it(reply: str) -> None:
    found, model = planned(reply)
    assert found.plan.format == "program"
    (listed,) = found.plan.to_dict().values()
    assert listed == steps()
    assert len(model.calls) == 1
    assert found.planner.endswith("/format_program-1")


# specs: C-12
@pytest.mark.parametrize("reply", [json.dumps(steps()[0]), '{"steps": []}', "[1, 2]", GOOD[:-9]])
def test_what_is_no_list_of_instructions_is_rejected(reply: str) -> None:
    found, model = planned(reply, GOOD)
    assert len(model.calls) == 2
    assert found.plan == decode(steps())


# specs: C-5
def test_the_model_is_told_what_is_wrong_with_its_program() -> None:
    found, model = planned(json.dumps(steps(target=9)), json.dumps(steps("Globex")), GOOD)
    assert found.plan == decode(steps())
    assert "is 9, the `seq_no` of no instruction" in model.calls[1][-1].content
    assert "Parameter 'customer' ('Acme') is not used" in model.calls[2][-1].content


def test_the_example_of_the_instructions_is_a_valid_program() -> None:
    text = load("format_program").fill("format")
    example = decode(text[text.rindex('{"instructions"') :])
    operation = Operation("list_orders", "List.", {}, effect="read")
    assert check(example, Catalog([operation])) == ()


def test_only_who_asks_for_a_list_gets_one() -> None:
    assert json_object('[{"a": 1}]', listed="all") == {"all": [{"a": 1}]}
    assert json_object('{"a": [{"b": 1}]}', listed="all") == {"a": [{"b": 1}]}
    with pytest.raises(InvalidJson):
        json_object('[{"a": 1}, {"b": 2}]')
