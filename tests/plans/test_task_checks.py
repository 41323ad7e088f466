"""Everything that is wrong with a plan in the tasks format, found at once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidPlan
from semcache.plans.codec import check, check_values, decode, refuse
from semcache.plans.finding import Finding
from semcache.plans.task_checks import broken_tasks, check_task_values, check_tasks
from semcache.plans.tasks import TaskPlan, check_params


def task(name: Json, service: Json = "sell", /, **given: Json) -> JsonObject:
    return {"id": name, "service": service, "input": given}


def plan(*tasks: Json, zero: Json = None, **more: Json) -> TaskPlan:
    constants: Json = {"id": "task0", "input": {"n": 1} if zero is None else zero}
    return TaskPlan.from_dict({"tasks": [constants, *tasks], **more})


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.path, finding.code) for finding in findings]


def test_the_plan_of_the_article_is_well(orra: JsonObject, services: Catalog) -> None:
    assert check(decode(orra)) == check(decode(orra), services) == ()
    assert check_values(decode(orra), services) == ()
    assert broken_tasks(TaskPlan.from_dict(orra), services) == ()


# specs: D-9
def test_all_that_is_wrong_is_told_at_once(services: Catalog) -> None:
    tasks: Json = [
        task("task1", "customer-service", note="For $task0.name", customerId="$task7.id"),
        task("task2", "order-service", orderId="$task2.id"),
        task("task2", "order-system", note="x", color="red"),
        {"id": "a b", "input": []},
    ]
    found = check(decode({"tasks": tasks, "parallel_groups": [["task1", "task3"]]}), services)
    assert told(found) == [
        ("/tasks", "shape"),
        ("/tasks/0/input/customerId", "reference"),
        ("/tasks/1/id", "shape"),
        ("/tasks/1", "endless"),
        ("/tasks/1/service", "operation"),
        ("/tasks/2/input", "input"),
        ("/tasks/2/input", "input"),
        ("/tasks/3/id", "shape"),
        ("/tasks/3/input", "shape"),
        ("/tasks/3", "shape"),
        ("/parallel_groups/0/1", "reference"),
    ]
    with pytest.raises(InvalidPlan, match=r"task7.*order-service"):
        refuse(found)


@pytest.mark.parametrize(
    ("body", "path", "what"),
    [
        ({"tasks": [task("a")]}, "/tasks", "has no 'task0'"),
        ({"tasks": [{"id": "task0", "input": {}}]}, "/tasks", "no task beside 'task0'"),
        ({"tasks": [{"id": "TASK0", "service": "sell"}, task("a")]}, "/tasks/0/service",
         "must only contain constant inputs"),
        ({"tasks": [{"id": "task0", "input": 5}, task("a")]}, "/tasks/0/input", "the number 5"),
        ({"tasks": [{"id": "task0"}, 5, task("a")]}, "/tasks/1", "the number 5; expected a list"),
        ({"tasks": [{"id": "task0"}, {"id": "a", "input": {}}]}, "/tasks/1", "has no service"),
        ({"tasks": [{"id": "task0"}, task("a", "  ")]}, "/tasks/1", "has no service"),
        ({"tasks": [{"id": "task0"}, task("a", 5)]}, "/tasks/1/service", "the number 5"),
        ({"tasks": [{"id": "task0"}, task(7), task("a")]}, "/tasks/1/id", "the number 7"),
        ({"tasks": [{"id": "task0"}, task("1a"), task("a")]}, "/tasks/1/id", "the text '1a'"),
        ({"tasks": [{"id": "task0"}, task("a"), task("a")]}, "/tasks/1/id", "several tasks"),
        ({"tasks": [{"id": "task0"}, {"id": "Task0"}, task("a")]}, "/tasks/0/id", "several"),
        ({"tasks": [{"id": "task0"}, {"id": "final", "input": {"error": "x"}}]}, "/tasks/1",
         "cannot be met"),
        ({"tasks": [{"id": "task0"}, *[task(f"t{i}") for i in range(10_000)]]}, "/tasks",
         "at most 10,000"),
    ],
)  # fmt: skip
def test_a_malformed_plan_is_told_where_and_how(body: JsonObject, path: str, what: str) -> None:
    found = check_tasks(TaskPlan.from_dict(body), None)
    assert any(f.path == path and what in f.what and f.code == "shape" for f in found), found


def test_a_plan_without_a_list_says_so() -> None:
    assert [f.path for f in check_tasks(TaskPlan.from_dict({"tasks": 5}), None)] == ["/tasks"]
    assert check(decode({"a": 1})) == check_values(decode({"a": 1})) == ()


# References -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$b.x", "reads 'b', which is no task; write `$$`"),
        ("$tsk0.n", "did you mean 'task0'?"),
        ("$USD", "write `$$` for a literal `$`"),
        ("$task0.m", "there is no 'm' in an object with 'n'"),
        ("$task0.n.m", "there is no 'm' in a int"),
        ("Order $task0.n", "mixes text and references"),
        ("$task0.n$task0.n", "mixes text and references"),
        ("$Task0.n!", "mixes text and references"),
        ("$task0.{{params.n}}", "mixes text and references"),
        ("$.a", "no reference such as `$task1.field`"),
        ("$a.x", "can never start"),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_a_bad_reference_is_told_at_any_depth(text: str, what: str, *, deep: bool) -> None:
    held: Json = [{"x": text}] if deep else text
    found = check_tasks(plan(task("a", q=held)), None)
    assert len(found) == 1
    assert what in found[0].what


@pytest.mark.parametrize(
    "text", ["$$b.x", "$5.00", "5 $ each", "costs $b.x", "a$task9.b", "${{params.n}}", "$task0"]
)
def test_texts_with_a_dollar_that_are_no_references_are_well(text: str) -> None:
    assert check_tasks(plan(task("a", q=text)), None) == ()


def test_constants_are_never_references() -> None:
    zero: Json = {"n": "$nobody.x", "m": "Order $task0.n"}
    assert check_tasks(plan(task("a", q="$task0.n"), zero=zero), None) == ()


def test_the_tasks_that_wait_for_one_another_are_named() -> None:
    tasks = [task("a", q="$b"), task("b", q="$c.x"), task("c", q=["$a"]), task("d", q="$a.x")]
    found = check_tasks(plan(*tasks), None)
    assert told(found) == [("/tasks/1", "endless")]
    assert found[0].what.endswith("'a', 'b', 'c'")


# Groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "what"),
    [
        (5, "is the number 5; expected a list of lists"),
        ([5], "is the number 5; expected a list of task ids"),
        ([[5]], "is the number 5; expected the id of a task"),
        ([["cc"]], "did you mean 'c'?"),
        ([["a"], ["a"]], "which group 0 has too"),
        ([["a", "b"]], "has 'b' in group 0 and 'a' in group 0, but 'b' reads 'a'"),
        ([["b"], ["a"]], "has 'b' in group 0 and 'a' in group 1"),
        ([["a", "c"]], "'c' reads 'a'"),
    ],
)
def test_groups_that_contradict_the_references_are_told(groups: Json, what: str) -> None:
    tasks = [task("a"), task("b", q="$a.x"), task("c", q="$b.x")]
    found = check_tasks(plan(*tasks, parallel_groups=groups), None)
    assert len(found) == 1
    assert what in found[0].what


@pytest.mark.parametrize("groups", [[], [["a"], ["b"], ["c"]], [["a"], ["c"]], [["task0", "a"]]])
def test_groups_that_say_the_same_are_well(groups: Json) -> None:
    tasks = [task("a"), task("b", q="$a.x"), task("c", q="$b.x")]
    assert check_tasks(plan(*tasks, parallel_groups=groups), None) == ()


# Inputs -----------------------------------------------------------------------------------------


def test_optional_inputs_are_optional_and_required_ones_are_not(services: Catalog) -> None:
    given = check(plan(task("a", "order-system", note="x")), services)
    assert [f.what for f in given] == [
        "breaks the schema of 'order-system': 'orderId' is a required property"
    ]
    assert check(plan(task("a", "order-system", orderId="x")), services) == ()


def test_constants_are_checked_where_they_are_read(catalog: Catalog) -> None:
    reads = task("a", "find", limit="$task0.n")
    assert check(plan(reads, zero={"n": 5}), catalog) == ()
    assert check(plan(reads, zero={"n": "{{params.n}}"}), catalog) == ()
    found = check(plan(reads, zero={"n": "five"}), catalog)
    assert told(found) == [("/tasks/1/input/limit", "input")]
    at = ("tasks", 0, "input", "n")
    bound = TaskPlan(plan(reads, zero={"n": "$$5"}).to_dict(), frozenset({at}))
    assert "'$$5' is not of type 'integer'" in check_values(bound, catalog)[0].what


def test_what_runs_will_tell_is_not_guessed(catalog: Catalog) -> None:
    inside: JsonObject = {"limit": "$a.n", "filters": [{"field": "$a.f"}], "value": ["$a.x"]}
    tasks: list[Json] = [task("a", "sell"), {"id": "b", "service": "find", "input": inside}]
    assert check(plan(*tasks), catalog) == ()
    inside["filters"] = [{"value": "$a.f"}]
    found = check(plan(*tasks), catalog)
    assert [f.what for f in found] == [
        "breaks the schema of 'find': 'field' is a required property"
    ]


def test_inputs_that_an_operation_does_not_list_are_told() -> None:
    schema: JsonObject = {"properties": {"a": {}, "b": {}}}
    catalog = Catalog(
        [Operation("op", "", schema), Operation("open", "", {**schema, "anyOf": [{}]})]
    )
    found = check(plan(task("t", "op", a=1, c=2), task("u", "open", c=2)), catalog)
    assert [str(f) for f in found] == [
        "/tasks/1/input/c: is no input of 'op', which takes 'a', 'b'"
    ]


def test_a_service_is_found_in_lower_case(orra: JsonObject, services: Catalog) -> None:
    orra["tasks"][1]["service"] = "Customer-Service"  # type: ignore[index, call-overload]  # tasks
    assert check(decode(orra), services) == ()


def test_a_compensation_that_the_catalog_lacks_is_told() -> None:
    catalog = Catalog([Operation("pay", "", {}, compensation="refund")])
    found = check(plan(task("a", "pay")), catalog)
    assert [str(f) for f in found] == [
        "/tasks/1/service: operation 'pay' is undone by 'refund', which the catalog lacks"
    ]


# Bound values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [("tasks",), ("tasks", 1, "id"), ("parallel_groups", 0), ()])
def test_data_outside_of_inputs_is_refused(at: Any) -> None:
    bound = TaskPlan(plan(task("a")).to_dict(), frozenset({at}))
    assert len(check_values(bound)) == len(check(bound)) == 1


def test_a_value_without_the_part_that_is_read_is_told() -> None:
    reads = task("a", q="$task0.address.city")
    whole = frozenset({("tasks", 0, "input", "address")})
    counts = []
    addresses: list[Json] = [{"city": "Rome"}, "Rome", {}]
    for address in addresses:
        body = plan(reads, zero={"address": address}).to_dict()
        counts.append(len(check_values(TaskPlan(body, whole))))
    assert counts == [0, 1, 1]
    assert check(plan(reads, zero={"address": "{{params.address}}"})) == ()


def test_a_placeholder_that_is_left_keeps_the_engine_from_starting(catalog: Catalog) -> None:
    left = plan(task("a", q="{{params.q}}"))
    assert told(broken_tasks(left, catalog)) == [("/tasks/1/input/q", "shape")]
    bound = TaskPlan(left.to_dict(), frozenset({("tasks", 1, "input", "q")}))
    assert broken_tasks(bound, catalog) == ()


# Parameters -------------------------------------------------------------------------------------


# specs: D-9
def test_each_parameter_stands_in_task0_under_its_name() -> None:
    body = plan(
        task("a", q="{{params.category}}"),
        zero={
            "order_id": "x",
            "amount": {"operand": 5},
            "who": "{{params.customer}}",
            "query": "gifts with a budget of 50, category: toys",
        },
    )
    names = ["orderId", "amount.operand", "customer"]
    assert check_params(body, names) == check_params(body, []) == ()
    found = check_params(body, [*names, "budget", "category", "color"])
    assert [f.what.split(";")[0] for f in found] == [
        "parameter 'budget' is missing (embedded in /tasks/0/input/query)",
        "parameter 'category' is missing (embedded in /tasks/0/input/query, /tasks/1/input/q)",
        "parameter 'color' is missing",
    ]
    assert check_params(decode({"a": 1}), ["x"]) == ()
    assert check_params(TaskPlan({"tasks": []}), ["x"]) == ()


# Anything ---------------------------------------------------------------------------------------

ANY: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["$task0.n", "$a", "a", "task0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "service", "input", "n"]), inner, max_size=4)
    ),
)


@given(ANY, ANY)
@settings(max_examples=100)
def test_any_json_is_checked_without_a_fault(tasks: Json, groups: Json) -> None:
    catalog = Catalog([Operation("a", "", {"properties": {"n": {"type": "integer"}}})])
    body = TaskPlan.from_dict({"tasks": tasks, "parallel_groups": groups})
    assert len(check_tasks(body, catalog)) >= len(check_task_values(body, catalog))
    assert broken_tasks(body, catalog) or body.tasks
    assert body.refusal() is None
