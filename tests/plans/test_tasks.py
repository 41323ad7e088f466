"""The tasks format: what a plan is, and what it tells."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject, dumps, leaves, same
from semcache.errors import BindingError
from semcache.plans.codec import decode, not_actionable, spelled
from semcache.plans.document import DocumentPlan, Reference
from semcache.plans.tasks import TaskPlan

FAST = settings(max_examples=100)


def test_a_plan_with_tasks_is_a_tasks_plan(orra: JsonObject) -> None:
    plan = decode(orra)
    assert plan == decode(dumps(orra)) == TaskPlan.from_dict(orra)
    assert plan == TaskPlan.from_json(dumps(orra))
    assert plan.format == "tasks"
    assert hash(plan) == hash(TaskPlan.from_dict(orra))
    assert plan != DocumentPlan.from_dict(orra)


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


# specs: D-10
def test_a_final_task_without_a_service_refuses_and_one_with_a_service_works() -> None:
    task0: Json = {"id": "task0", "input": {}}
    refusal: Json = {"id": "final", "input": {"error": "no weather here"}}
    assert not_actionable(decode({"tasks": [task0, refusal]})) == "no weather here"
    work: Json = {"id": "final", "service": "send", "input": {"error": "x"}}
    assert not_actionable(decode({"tasks": [task0, work]})) is None


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
INPUTS = st.dictionaries(NAMES, VALUES, max_size=4)


@st.composite
def task_plans(draw: st.DrawFn) -> JsonObject:
    inputs = draw(st.lists(INPUTS, min_size=1, max_size=4))
    tasks: list[Json] = [{"id": "task0", "input": inputs[0]}]
    tasks += [
        {"id": f"task{i}", "service": "s", "input": given} for i, given in enumerate(inputs[1:], 1)
    ]
    return {"tasks": tasks, "parallel_groups": [["task1"]]}


@given(task_plans(), st.data())
@FAST
def test_binding_the_same_values_gives_the_plan_back(plan: JsonObject, data: Any) -> None:
    inside = [leaf for _, leaf in leaves(plan)]
    names = data.draw(st.lists(NAMES, unique=True, max_size=3))
    params = {name: data.draw(st.sampled_from(inside) | VALUES) for name in names}
    try:
        template = generalize(plan, params)
    except BindingError as error:
        assert error.reason == "reference"  # noqa: PT017 - the only way out
        return
    assert template.format == "tasks"
    assert same(bind(template, params).plan, plan)


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
