"""What holds for a plan of any format, and of none that is known."""

from copy import deepcopy
from typing import Any

import pytest

from semcache.canonical import JsonObject, dumps
from semcache.plans.codec import decode
from semcache.plans.document import DocumentPlan, ExecutionPlan

FORMATS: dict[str, JsonObject] = {
    "routes": {"start_node": {"route": "a"}, "a": {"completed": True, "vars": {"x": [1]}}},
    "tasks": {"tasks": [{"id": "task0", "input": {}}, {"id": "a", "service": "s", "input": {}}]},
    "program": {"plan": [{"seq_no": 1, "type": "assign", "parameters": {"final_answer": 1}}]},
    "document": {"steps": [{"a": [1, None]}]},
}
TASKS: JsonObject = {"tasks": [{"id": "task0", "input": {"a": [1, None]}}]}


def test_any_object_is_a_plan_without_known_operations() -> None:
    plan = DocumentPlan.from_dict(TASKS)
    assert isinstance(plan, ExecutionPlan)
    assert plan.format == "document"
    assert (plan.operations(), plan.references()) == ((), ())
    assert plan.to_dict() == TASKS


@pytest.mark.parametrize("name", FORMATS)
def test_plans_are_equal_by_content_and_places_of_data(name: str) -> None:
    body = FORMATS[name]
    plan = decode(body)
    assert plan.format == name
    assert plan == decode(dumps(body)) == decode(plan)
    assert (hash(plan), plan.fingerprint) == (hash(decode(body)), decode(body).fingerprint)
    assert plan != decode(body, data=frozenset({(next(iter(body)),)}))
    same_words: object = body
    assert plan != same_words
    assert len({decode(other) for other in FORMATS.values()}) == len(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_plan_does_not_change_with_what_it_was_made_from_or_gave_out(name: str) -> None:
    body: Any = deepcopy(FORMATS[name])
    plan = decode(body)
    given_out: Any = plan.to_dict()
    for changed in (body, given_out):
        inner = changed[next(iter(changed))]
        inner.clear()
    assert plan.to_dict() == FORMATS[name]
    assert plan == decode(FORMATS[name])
