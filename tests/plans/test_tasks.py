"""The tasks format: what a plan is, and what it tells."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject
from semcache.plans.codec import decode, spelled
from semcache.plans.document import Reference
from semcache.plans.tasks import TaskPlan

FAST = settings(max_examples=100)


@pytest.mark.parametrize(
    "tasks",
    [[], ["buy milk"], [{"name": "x"}], [{"id": 1, "input": {}}], [{"id": "a", "tool": "b"}]],
)
def test_other_lists_of_tasks_are_documents(tasks: Json) -> None:
    assert decode({"tasks": tasks}).format == "document"


def test_a_plan_names_its_operations_and_references(orra: JsonObject) -> None:
    plan = TaskPlan.from_dict(orra)
    assert plan.operations() == ("customer-service", "order-system")
    assert plan.references() == (
        Reference(("tasks", 1, "input", "customerId"), "task0", "$task0.customerId"),
        Reference(("tasks", 2, "input", "orderId"), "task0", "$task0.orderId"),
    )
    assert plan.reads() == {"task1": (), "task2": ()}


def test_tasks_wait_for_what_they_read_at_any_depth() -> None:
    inner: Json = {
        "who": ["$a.x", {"b": "$b", "a": "$a.y"}],
        "c": "$$a",
        "d": "$5",
        "e": "$TASK0.x",
    }
    plan = TaskPlan.from_dict({
        "tasks": [
            {"id": "task0", "input": {"x": "$a.x"}},
            {"id": "a", "service": "s"},
            {"id": "b", "service": "s", "input": {}},
            {"id": "c", "service": "s", "input": {"q": inner}},
        ]
    })  # fmt: skip
    assert plan.reads() == {"a": (), "b": (), "c": ("a", "b")}
    assert [reference.target for reference in plan.references()] == ["a", "b", "a", "task0"]


def test_bound_data_is_never_a_reference(orra: JsonObject) -> None:
    at = ("tasks", 1, "input", "customerId")
    plan = TaskPlan.from_dict(orra, frozenset({at}))
    assert [reference.at for reference in plan.references()] == [("tasks", 2, "input", "orderId")]
    assert plan != TaskPlan.from_dict(orra)


def test_services_have_no_case_but_the_catalog_decides() -> None:
    catalog = Catalog([Operation(name, "", {}) for name in ("order-system", "getUser", "getuser")])
    tasks: Json = [
        {"id": f"t{i}", "service": name, "input": {}}
        for i, name in enumerate(["Order-System", "getUser", "GETUSER", "Nobody"])
    ]
    plan = TaskPlan.from_dict({"tasks": tasks, "parallel_groups": []})
    named = spelled(plan, catalog)
    assert named.operations() == ("Nobody", "getUser", "getuser", "order-system")
    assert plan.operations() == ("GETUSER", "Nobody", "Order-System", "getUser")
    assert spelled(named, catalog) is named
    assert spelled(plan, None) is plan


# Binding ----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["customerId", "year", "q", "limit", "a b"])
SCALARS: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | st.integers(-3, 3000) | st.text(max_size=5)
    | st.sampled_from(["CUST789", "$task0.year", "$task1", "$x", "../..", "2024"])
)  # fmt: skip
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@given(VALUES)
@FAST
def test_no_value_of_a_prompt_is_interpreted(value: Json) -> None:
    plan: JsonObject = {
        "tasks": [
            {"id": "task0", "input": {"year": "{{params.year}}"}},
            {"id": "task1", "service": "s", "input": {"q": "{{params.year}}"}},
        ]
    }
    bound = bind(generalize(plan, {"year": 2024}), {"year": value})
    decoded = decode(bound.plan, data=bound.data)
    assert decoded.references() == ()
    assert decoded.to_dict()["tasks"] == [
        {"id": "task0", "input": {"year": value}},
        {"id": "task1", "service": "s", "input": {"q": value}},
    ]
