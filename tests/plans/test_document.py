"""Plans of no known format."""

import pytest

from semcache.canonical import JsonObject
from semcache.errors import InvalidPlan
from semcache.plans.document import DocumentPlan, copied, read_object
from semcache.plans.plan import ExecutionPlan

TASKS: JsonObject = {"tasks": [{"id": "task0", "input": {"a": [1, None]}}]}


def test_any_object_is_a_plan_without_known_operations() -> None:
    plan = DocumentPlan.from_dict(TASKS)
    assert isinstance(plan, ExecutionPlan)
    assert plan.format == "document"
    assert (plan.operations(), plan.references()) == ((), ())
    assert plan.to_dict() == TASKS


def test_plans_are_equal_by_content_and_places_of_data() -> None:
    plan = DocumentPlan.from_dict(TASKS)
    assert plan == DocumentPlan.from_dict(plan.to_dict())
    assert hash(plan) == hash(DocumentPlan.from_dict(TASKS))
    assert plan != DocumentPlan.from_dict({})
    assert plan != DocumentPlan.from_dict(TASKS, frozenset({("tasks",)}))
    assert plan != TASKS


@pytest.mark.parametrize("source", ["", "5", "[1]", 5, None, {"a": {1}}, {1: 2}])
def test_what_is_no_json_object_is_refused(source: object) -> None:
    with pytest.raises(InvalidPlan):
        read_object(source)


def test_a_copy_shares_nothing() -> None:
    copy = copied(TASKS)
    assert copy == TASKS
    assert isinstance(copy, dict)
    assert copy["tasks"] is not TASKS["tasks"]
