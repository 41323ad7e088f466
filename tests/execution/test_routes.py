"""The engine of the routes format."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Hit, Operation, PlanCache
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    DeadlineExceeded,
    ExecutionError,
    ExpressionError,
    InvalidPlan,
    OutputTooLarge,
    StepLimitExceeded,
)
from semcache.events import NodeFinished
from semcache.execution.routes import RoutesEngine
from semcache.plans.routes import RoutePlan
from semcache.ports import Outcome
from semcache.testing import FakeClock, RecordingObserver
from tests.executing import executed
from tests.onemcp import onemcp

Execute = Callable[..., Outcome]


def call(operation: str, route: Json = "end", **given: Json) -> JsonObject:
    return {"operation": operation, "input": given, "route": route}


def plan(first: Json, end: Json = None, **nodes: Json) -> JsonObject:
    last: Json = {"completed": True, "vars": end} if end else {"completed": True}
    return {"start_node": {"route": "a"}, "a": first, **nodes, "end": last}


# specs: A-6
def test_the_plan_of_the_document_answers_with_the_data_of_its_query() -> None:
    asked: list[JsonObject] = []

    def query(given: JsonObject) -> JsonObject:
        asked.append(given)
        return {"success": True, "data": [{"total_revenue": 5640255.26}]}

    params: JsonObject = {"year": "2024", "amount": {"aggregate": "sum"}}
    with PlanCache.open() as cache:
        cache.store("Show me total sales in 2023", onemcp(), params={**params, "year": "2023"})
        found = cache.lookup("Show me total sales in 2024", params=params)
    assert isinstance(found, Hit)
    outcome = executed(
        RoutesEngine(),
        found.plan,
        Catalog([Operation("querySalesData", "Query.", {}, effect="read", call=query)]),
    )
    assert outcome.value == {"answer": [{"total_revenue": 5640255.26}]}
    assert outcome.text == '[{"total_revenue":5640255.26}]'
    assert asked == [
        {
            "filter": [{"field": "date.year", "operator": "equals", "value": "2024"}],
            "aggregates": [{"field": "sale.amount", "function": "sum"}],
        }
    ]


# specs: A-10
def test_results_flow_from_node_to_node(execute: Execute) -> None:
    outcome = execute(
        plan(
            call("echo", "op2", greet="hello"),
            {"final": "$.op2.msg"},
            op2=call("echo", msg="$.a.greet"),
        )
    )
    assert outcome.value == {"final": "hello"}
    assert outcome.text == '{\n  "final": "hello"\n}'


# specs: A-8
@pytest.mark.parametrize(
    ("route", "flag", "taken"),
    [
        ("x", True, "x"),
        ({"next": "x"}, True, "x"),
        ([{"condition": "$.seed.flag", "node": "x"}, "y"], True, "x"),
        ([{"condition": "$.seed.flag", "node": "x"}, "y"], False, "y"),
        ([{"condition": "$.seed.flag", "node": "x"}, "y"], [], "y"),
        ([{"condition": "$.seed.gone", "node": "y"}, {"condition": "1 < 2", "node": "x"}, "y"],
         0, "x"),
        (["x"], None, "x"),
    ],
)  # fmt: skip
def test_routes_lead_where_their_conditions_say(
    execute: Execute, route: Json, flag: Json, taken: str
) -> None:
    body: JsonObject = {
        "start_node": {"route": "seed"},
        "seed": {"operation": "echo", "input": {"flag": flag}, "route": route},
        "x": {"completed": True, "vars": {"at": "x"}},
        "y": {"completed": True, "vars": {"at": "y"}},
    }
    assert execute(body).value == {"at": taken}


def test_the_start_routes_by_its_own_variables(execute: Execute) -> None:
    body = plan({"completed": True})
    ways: Json = [{"condition": "$.start_node.n > 4", "node": "end"}, "a"]
    body["start_node"] = {"vars": {"n": 5}, "route": ways}
    assert [node.node for node in execute(body).nodes] == ["start_node", "end"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([{"total_revenue": 5640255.26}], {"total": 5640255.26}),
        ([], {"message": "No sales data found"}),
    ],
)
def test_a_result_without_rows_can_be_told_apart(
    execute: Execute, data: Json, expected: Json
) -> None:
    condition = "$.['n'].['success'] == true && $.['n'].['data'].size() > 0"
    body: JsonObject = {
        "start_node": {"route": "n"},
        "n": {
            "operation": "echo",
            "input": {"success": True, "data": data},
            "route": [{"condition": condition, "node": "good"}, "bad"],
        },
        "good": {"completed": True, "vars": {"total": "$.n.data[0].total_revenue"}},
        "bad": {"completed": True, "vars": {"message": "No sales data found"}},
    }
    assert execute(body).value == expected


def test_an_end_without_variables_gives_an_empty_object(execute: Execute) -> None:
    assert execute(plan({"completed": True})).value == {}


def test_a_node_without_input_is_called_with_an_empty_object(execute: Execute) -> None:
    body = plan({"operation": "echo", "input": None, "route": "end"}, {"x": "$.a"})
    assert execute(body).value == {"x": {}}


def test_a_whole_input_can_be_a_path(execute: Execute) -> None:
    first = call("echo", "b", limit=5)
    second: Json = {"operation": "echo", "input": "$.a", "route": "end"}
    assert execute(plan(first, {"x": "$.b.limit"}, b=second)).value == {"x": 5}


def test_an_operation_that_returns_nothing_leaves_null(execute: Execute) -> None:
    assert execute(plan(call("nothing"), {"x": "$.a"})).value == {"x": None}


def test_old_plans_may_read_the_last_result(execute: Execute) -> None:
    assert execute(plan(call("echo", n=1), {"x": "$._lstt.n"})).value == {"x": 1}


# specs: A-17
@pytest.mark.parametrize("value", ["$.secret.key", "$", "$$x", "{{params.x}}", "$.["])
def test_a_bound_value_that_looks_like_a_path_reaches_the_operation_as_it_is(
    execute: Execute, calls: list[JsonObject], value: str
) -> None:
    body = plan(call("note", name=value, many=[{"deep": value}]), {"said": value})
    data = {("a", "input", "name"), ("a", "input", "many"), ("end", "vars", "said")}
    outcome = execute(body, data=frozenset(data))
    assert calls == [{"name": value, "many": [{"deep": value}]}]
    assert outcome.value == {"said": value}


# specs: A-17
def test_a_result_that_looks_like_a_path_is_never_read_as_one(
    execute: Execute, calls: list[JsonObject]
) -> None:
    body = plan(call("echo", "b", x="$$.a"), b=call("note", y="$.a.x"))
    execute(body)
    assert calls == [{"y": "$.a"}]


# specs: A-9
@pytest.mark.parametrize("body", [{}, {"start_node": "a"}, {"start_node": {"route": []}, "a": {}}])
def test_a_malformed_plan_is_refused_with_all_findings(execute: Execute, body: JsonObject) -> None:
    with pytest.raises(InvalidPlan, match="the plan cannot run") as raised:
        execute(body)
    assert raised.value.findings


# specs: A-12
def test_a_plan_that_goes_in_circles_stops_at_its_step_budget(
    execute: Execute, calls: list[JsonObject]
) -> None:
    with pytest.raises(StepLimitExceeded, match="100 steps") as raised:
        execute(plan(call("note", "b"), b=call("note", "a")))
    assert raised.value.node == "b"
    assert len(calls) == 99


def test_a_circle_may_be_left_and_each_visit_overwrites_the_result(execute: Execute) -> None:
    again: Json = [{"condition": "$.a.noted < 5", "node": "a"}, "end"]
    outcome = execute(plan(call("note", again), {"n": "$.a.noted"}))
    assert outcome.value == {"n": 5}
    assert [node.node for node in outcome.nodes] == ["start_node", *"aaaaa", "end"]


def test_variables_that_are_nested_too_deeply_are_an_error_of_their_node(execute: Execute) -> None:
    deep: Json = 1
    for _ in range(90):
        deep = [deep]
    body = plan(call("echo", x=deep), {"y": [[[[[[[[["$.a"]]]]]]]]]})
    with pytest.raises(ExecutionError, match="deeper than 100 levels") as raised:
        execute(body)
    assert raised.value.node == "end"


def test_an_operation_cannot_change_the_plan_or_the_results(execute: Execute) -> None:
    body = plan(call("echo", "b", x=[1]), {"x": "$.a.x"}, b={**call("spoil"), "input": "$.a"})
    assert execute(body).value == {"x": [1]}


def test_an_expression_that_looks_at_too_much_is_an_error_of_its_node(execute: Execute) -> None:
    body = plan(call("echo", x=list(range(1500))), {"y": "$.a.x[?($.a.x[*])]"})
    with pytest.raises(ExpressionError, match=r"node 'end': .*1,000,000") as raised:
        execute(body)
    assert raised.value.node == "end"


def test_every_node_is_reported_with_its_step_and_seconds(
    execute: Execute, observer: RecordingObserver
) -> None:
    outcome = execute(plan(call("wait", seconds=2)))
    assert observer.events == [
        NodeFinished(run="run-1", node="start_node", operation="", step=1, seconds=0.0),
        NodeFinished(run="run-1", node="a", operation="wait", step=2, seconds=2.0),
        NodeFinished(run="run-1", node="end", operation="", step=3, seconds=0.0),
    ]
    assert [(node.operation, node.input, node.output) for node in outcome.nodes] == [
        ("", None, {}),
        ("wait", {"seconds": 2}, None),
        ("", None, {}),
    ]


NAMES = st.sampled_from(["a", "b", "c", "end"])
TEXTS = st.sampled_from(["$.a", "$.b.x", "$..x", "$.c.size()", "$", "$$", "text", "$.a.x == 1"])
INPUTS = st.dictionaries(st.sampled_from("xy"), TEXTS | st.integers() | st.lists(TEXTS, max_size=2))
ROUTES = (
    NAMES
    | NAMES.map(lambda name: {"next": name})
    | st.tuples(TEXTS.filter(lambda text: text.startswith("$.")), NAMES, NAMES).map(
        lambda way: [{"condition": way[0], "node": way[1]}, way[2]]
    )
)
CALLS = st.builds(
    lambda operation, given, route: {"operation": operation, "input": given, "route": route},
    st.sampled_from(["echo", "fail", "nothing", "unjson"]),
    INPUTS,
    ROUTES,
)
PLANS = st.builds(
    lambda first, nodes: {"start_node": {"route": first}, **nodes, "end": {"completed": True}},
    NAMES,
    st.dictionaries(st.sampled_from("abc"), CALLS),
)


@settings(max_examples=60)
@given(PLANS)
def test_any_plan_ends_with_an_outcome_or_a_typed_error(body: dict[str, Any]) -> None:
    def fail(_: JsonObject) -> None:
        raise ValueError

    catalog = Catalog([
        Operation("echo", "", {}, effect="read", call=lambda given: given),
        Operation("fail", "", {}, effect="read", call=fail),
        Operation("nothing", "", {}, effect="read", call=lambda _: None),
        Operation("unjson", "", {}, effect="read", call=lambda _: {1}),
    ])  # fmt: skip
    try:
        outcome = executed(
            RoutesEngine(),
            RoutePlan.from_dict(body),
            catalog,
            max_steps=15,
            max_output_bytes=10_000,
        )
    except (ExecutionError, InvalidPlan):
        return
    assert outcome.nodes[-1].node == "end"


def test_expressions_are_replaced_at_any_depth_and_read_the_latest_results(
    execute: Execute,
) -> None:
    deep: Json = {"x": [{"y": "$.a.noted"}], "z": "$$.a", "n": 1, "nowhere": "$.nowhere"}
    again: Json = [{"condition": "$.a.none", "node": "end"},
                   {"condition": "$._lstt.noted < 2", "node": "a"}, "end"]  # fmt: skip
    assert execute(plan(call("note", again), deep)).value == {
        "x": [{"y": 2}], "z": "$.a", "n": 1, "nowhere": None,
    }  # fmt: skip


class TickingClock(FakeClock):
    """A clock on which each look takes a hundredth of a second."""

    def monotonic(self) -> float:
        self.advance(0.01)
        return super().monotonic()


def test_the_deadline_is_looked_at_inside_an_expression(catalog: Catalog) -> None:
    rows: Json = [{"x": x} for x in range(400)]
    body = plan(call("echo", rows=rows), {"all": "$.a.rows[?($.a.rows.size() > @.x)]"})
    body["a"] = call("echo", "b", rows=rows)
    body["b"] = call("echo", slow="$.a.rows[?($.a.rows[?(@.x > 5)].size() > @.x)]")
    with pytest.raises(DeadlineExceeded, match="in an expression of 'b'") as raised:
        executed(
            RoutesEngine(), RoutePlan.from_dict(body), catalog, timeout_s=1, clock=TickingClock()
        )
    assert raised.value.node == "b"


def test_parts_of_a_text_are_refused_before_they_are_one_value(execute: Execute) -> None:
    body = plan(call("much", bytes=900), {str(i): "$.a.limit(899)" for i in range(3)})
    with pytest.raises(OutputTooLarge, match="'end' reads over 1,000 bytes"):
        execute(body, max_output_bytes=1000)


def test_the_results_of_a_run_are_bounded_together(execute: Execute) -> None:
    loop = plan(call("much", "a", bytes=900))
    with pytest.raises(OutputTooLarge, match="results of this run are over 8,000 bytes") as raised:
        execute(loop, max_output_bytes=1000)
    assert raised.value.node == "a"
