"""What can be wrong with a plan in the routes format: all of it is told at once."""

from typing import Any

import pytest

from semcache import Catalog
from semcache.canonical import Json, JsonObject
from semcache.plans.finding import Finding
from semcache.plans.routes import MAX_NODES, RoutePlan, broken_routes, check_routes

END: JsonObject = {"completed": True}


def found(
    body: JsonObject, catalog: Catalog | None = None, data: frozenset[Any] = frozenset()
) -> list[tuple[str, str]]:
    findings = check_routes(RoutePlan.from_dict(body, data), catalog)
    return [(finding.path, finding.code) for finding in findings]


def plan(**nodes: Json) -> JsonObject:
    return {"start_node": {"route": "a"}, **nodes}


def call(operation: str = "sell", route: Json = "end", **node: Json) -> JsonObject:
    return {"operation": operation, "route": route, **node}


def test_the_plan_of_the_document_has_nothing_wrong_with_it(seed: JsonObject) -> None:
    assert found(seed) == []


# specs: A-9
@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ""),
        ({"a": END}, ""),
        ({"start_node": {"route": "a"}}, ""),
        ({"start_node": "a", "a": END}, "/start_node"),
        ({"start_node": {}, "a": END}, "/start_node/route"),
        ({"start_node": {"route": 5}, "a": END}, "/start_node/route"),
        ({"start_node": {"route": []}, "a": END}, "/start_node/route"),
        ({"start_node": {"route": {"x": "a", "y": "a"}}, "a": END}, "/start_node/route"),
        ({"start_node": {"route": {}}, "a": END}, "/start_node/route"),
        ({"start_node": {"route": {"x": 5}}, "a": END}, "/start_node/route/x"),
        ({"start_node": {"route": [{"condition": "1", "node": "a"}]}, "a": END},
         "/start_node/route/0"),
        ({"start_node": {"route": ["a", "a"]}, "a": END}, "/start_node/route/0"),
        ({"start_node": {"route": [{"node": "a"}, "a"]}, "a": END},
         "/start_node/route/0/condition"),
        ({"start_node": {"route": [{"condition": "1"}, "a"]}, "a": END},
         "/start_node/route/0/node"),
        ({"start_node": {"route": "a", "vars": []}, "a": END}, "/start_node/vars"),
        ({"start_node": {"route": "a", "operation": "sell"}, "a": END}, "/start_node/operation"),
        ({"start_node": {"route": "a", "completed": True}, "a": END}, "/start_node/completed"),
        ({"start_node": {"route": "nodes"}, "nodes": END}, "/nodes"),
        (plan(a="end", end=END), "/a"),
        (plan(a={"route": "end"}, end=END), "/a"),
        (plan(a=call(" "), end=END), "/a"),
        (plan(a=call(input=5), end=END), "/a/input"),
        (plan(a=call(input="text"), end=END), "/a/input"),
        (plan(a={"operation": "sell"}, end=END), "/a/route"),
        (plan(a=call(completed="true"), end=END), "/a/completed"),
        (plan(a={"completed": True, "vars": "$.x"}), "/a/vars"),
        (plan(a={"completed": True, "operation": "sell"}), "/a/operation"),
    ],
)  # fmt: skip
def test_a_malformed_plan_is_told_where_it_is_malformed(body: JsonObject, path: str) -> None:
    assert (path, "shape") in found(body)
    assert broken_routes(RoutePlan.from_dict(body), Catalog()) != ()


def test_a_false_completed_and_a_null_input_and_a_path_as_input_are_fine() -> None:
    first = call(route="b", completed=False, input=None)
    second = call(input="$.a.data")
    assert found(plan(a=first, b=second, end={"completed": True, "route": 5})) == []


# specs: A-8
@pytest.mark.parametrize("route", ["b", {"x": "b"}, ["b"], [{"condition": "1", "node": "b"}, "a"]])
def test_a_target_that_is_not_there_is_told(route: Json) -> None:
    codes = [code for _, code in found({"start_node": {"route": route}, "a": END})]
    assert "target" in codes
    assert "endless" not in codes


def test_a_missing_target_is_told_with_a_node_near_it() -> None:
    body = RoutePlan.from_dict(plan(a=call(route="summery"), summary=END))
    findings = check_routes(body, None)
    assert [finding.code for finding in findings] == ["target", "unreachable"]
    assert "did you mean 'summary'?" in findings[0].what


def test_a_route_back_to_the_start_is_told() -> None:
    body = plan(a=call(route=[{"condition": "$.a.again", "node": "start_node"}, "end"]), end=END)
    assert found(body) == [("/a/route/0/node", "target")]


def test_circles_without_an_exit_are_told_once() -> None:
    body = plan(a=call(route="b"), b=call(route="a"), end=END)
    assert found(body) == [("/start_node", "endless"), ("/end", "unreachable")]


def test_a_circle_with_an_exit_is_fine() -> None:
    way: Json = [{"condition": "$.a.more", "node": "a"}, "end"]
    assert found(plan(a=call(route=way, input={"x": "$.a.next"}), end=END)) == []


@pytest.mark.parametrize("text", ["$.", "$task0.x", "$.a.first()"])
def test_expressions_that_cannot_be_read_are_told(text: str) -> None:
    ways: Json = [{"condition": text, "node": "end"}, "end"]
    body = plan(a=call(input={"x": [text]}, route=ways), end=END)
    assert found(body) == [("/a/input/x/0", "expression"), ("/a/route/0/condition", "expression")]


def test_a_condition_need_not_begin_with_a_path() -> None:
    ways: Json = [{"condition": "!($.a.n == 5)", "node": "end"}, "end"]
    assert found(plan(a=call(route=ways), end=END)) == []


def test_a_placeholder_inside_an_expression_is_told_with_a_way_out() -> None:
    body = plan(a=call(input={"x": "$.a[?(@.y > {{params.z}})]"}), end=END)
    (finding, *_) = check_routes(RoutePlan.from_dict(body), None)
    assert finding.code == "expression"
    assert "$.start_node.<name>" in finding.what


@pytest.mark.parametrize(
    "place", [("a",), ("a", "route"), ("a", "route", 0, "condition"), ("a", "operation"), ()]
)
def test_bound_data_where_the_plan_itself_is_expected_is_told(place: tuple[Any, ...]) -> None:
    ways: Json = [{"condition": "$.secret", "node": "end"}, "end"]
    body = plan(a=call(route=ways), end=END)
    data = frozenset({place})
    assert "shape" in [code for _, code in found(body, None, data)]
    assert broken_routes(RoutePlan(body, data), Catalog()) != ()


def test_bound_data_is_neither_an_expression_nor_a_placeholder(catalog: Catalog) -> None:
    body = plan(a=call(input={"x": "$.", "y": {"z": "{{params.q}}"}}), end=END)
    data = frozenset({("a", "input", "x"), ("a", "input", "y")})
    assert found(body, catalog, data) == []
    assert broken_routes(RoutePlan(body, data), catalog) == ()


def test_a_placeholder_without_a_value_keeps_the_engine_from_starting(
    seed: JsonObject, catalog: Catalog
) -> None:
    body = plan(a=call(input={"x": "of {{params.year}}"}), end=END)
    (finding,) = broken_routes(RoutePlan.from_dict(body), catalog)
    assert (finding.path, finding.code) == ("/a/input/x", "shape")


@pytest.mark.parametrize(
    ("reader", "text"),
    [("b", "$.nowhere.x"), ("a", "$.b.x"), ("b", "$.end.x"), ("b", "$.b.x"), ("b", "$.lost.x")],
)
def test_references_to_what_cannot_have_run_are_told(reader: str, text: str) -> None:
    nodes: Any = {"a": call(route="b"), "b": call(), "end": END, "lost": call(route="b")}
    nodes[reader]["input"] = {"x": text}
    ready: Any = [pair for pair in found(plan(**nodes)) if pair[1] != "unreachable"]
    expected = [] if text == "$.lost.x" else [(f"/{reader}/input/x", "reference")]
    assert ready == expected


def test_a_route_may_read_the_result_of_its_own_node_and_the_variables_of_the_start() -> None:
    ways: Json = [{"condition": "$.a.n > $.start_node.n", "node": "end"}, "end"]
    body = plan(a=call(route=ways), end=END)
    body["start_node"] = {"vars": {"n": 5}, "route": "a"}
    assert found(body) == []


def test_the_start_cannot_read_itself() -> None:
    body = plan(a=END)
    body["start_node"] = {"vars": {"n": "$.start_node.m", "m": 1}, "route": "a"}
    assert found(body) == [("/start_node/vars/n", "reference")]


# specs: A-11
def test_an_operation_that_the_catalog_lacks_is_told_with_one_near_it(catalog: Catalog) -> None:
    (finding,) = check_routes(RoutePlan.from_dict(plan(a=call("sel"), end=END)), catalog)
    assert (finding.path, finding.code) == ("/a/operation", "operation")
    assert "'sel'" in finding.what
    assert "'sell'" in finding.what


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"limit": 5}, []),
        ({"limit": "5"}, ["/a/input/limit"]),
        ({"limit": "$.start_node.n"}, []),
        ({"limit": "{{params.n}}"}, []),
        ({"limit": 0, "other": 1}, ["/a/input", "/a/input/limit"]),
        ({}, ["/a/input"]),
        ({"filters": [{"value": "{{params.x}}"}], "limit": 1}, ["/a/input/filters/0"]),
        ({"filters": [{"field": "{{params.x}}"}], "limit": 1}, []),
        ({"value": ["{{params.x}}"], "limit": 1}, []),
        ({"value": ["x"], "limit": 1}, ["/a/input/value"]),
    ],
)
def test_literal_input_must_fit_the_schema_of_its_operation(
    catalog: Catalog, given: JsonObject, paths: list[str]
) -> None:
    expected = [(path, "input") for path in paths]
    assert found(plan(a=call("find", input=given), end=END), catalog) == expected


def test_bound_data_must_fit_the_schema_even_if_it_looks_like_a_path(catalog: Catalog) -> None:
    body = plan(a=call("find", input={"limit": "$.start_node.n"}), end=END)
    data = frozenset({("a", "input", "limit")})
    assert found(body, catalog, data) == [("/a/input/limit", "input")]


def test_all_findings_come_at_once_in_the_order_of_the_nodes(catalog: Catalog) -> None:
    body: JsonObject = {
        "lost": END,
        "b": call("nothing", input={"x": "$."}, route="gone"),
        "start_node": {"route": "b"},
        "b/c": call("sell", route=[]),
    }
    assert found(body, catalog) == [
        ("/lost", "unreachable"),
        ("/b/route", "target"),
        ("/b/operation", "operation"),
        ("/b/input/x", "expression"),
        ("/b~1c/route", "shape"),
        ("/b~1c", "unreachable"),
    ]


def test_a_long_plan_is_checked_without_recursion(catalog: Catalog) -> None:
    count = MAX_NODES - 2
    nodes: dict[str, Json] = {
        f"n{i}": call(route=f"n{i + 1}", input={"x": f"$.n{max(0, i - 1)}.y"}) for i in range(count)
    }
    body: JsonObject = {"start_node": {"route": "n0"}, **nodes, f"n{count}": END}
    assert found(body) == [("/n0/input/x", "reference")]


def test_a_plan_of_a_hundred_thousand_nodes_is_refused_as_a_whole(catalog: Catalog) -> None:
    body: JsonObject = {f"n{i}": END for i in range(100_000)}
    for findings in (
        check_routes(RoutePlan(body), catalog),
        broken_routes(RoutePlan(body), catalog),
    ):
        assert [(finding.path, finding.code) for finding in findings] == [("", "shape")]


def test_a_finding_reads_as_a_place_and_what_is_wrong_there() -> None:
    assert str(Finding("/a", "is bad", "shape")) == "/a: is bad"
    assert str(Finding("", "is bad", "shape")) == "/: is bad"
