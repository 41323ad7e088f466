"""From JSON to a plan of the right format."""

from typing import Any

import pytest

from semcache import Catalog
from semcache.canonical import JsonObject, dumps
from semcache.errors import InvalidPlan
from semcache.plans.codec import adopt, check_values, decode, not_actionable, refuse
from semcache.plans.document import DocumentPlan
from semcache.plans.finding import Finding
from semcache.plans.routes import RoutePlan


def test_a_start_node_makes_a_routes_plan_from_an_object_or_its_text(seed: JsonObject) -> None:
    assert decode(seed) == decode(dumps(seed)) == RoutePlan.from_dict(seed)


def test_a_plan_stays_as_it_is(seed: JsonObject) -> None:
    plan = RoutePlan.from_dict(seed)
    assert decode(plan) is plan


def test_places_of_data_are_kept(seed: JsonObject) -> None:
    data = frozenset({("start_node", "vars", "year")})
    assert decode(seed, data=data) == RoutePlan.from_dict(seed, data)
    assert adopt({"tasks": []}, data) == DocumentPlan({"tasks": []}, data)


@pytest.mark.parametrize("source", ["", "nonsense", "[]", "5", [], 5, None, {"a": {1, 2}}])
def test_what_is_no_plan_is_refused(source: Any) -> None:
    with pytest.raises(InvalidPlan):
        decode(source)


def test_what_is_no_json_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidPlan, match="/start_node"):
        decode({"start_node": float("nan")})


def final(**task: Any) -> JsonObject:
    return {"tasks": [{"id": "task0", "input": {}}, {"id": "final", **task}]}


# specs: D-10
@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (final(input={"error": "no such service"}), "no such service"),
        (final(input={"error": {"code": 5}}), '{"code":5}'),
        (final(input={}), "the planner gives no reason"),
        (final(), "the planner gives no reason"),
        (final(service="send", input={"error": "x"}), None),
        ({"tasks": [{"id": "task0"}, {"id": "task1", "input": {"error": "x"}}]}, None),
        ({"tasks": "final"}, None),
        ({"tasks": [5]}, None),
        ({}, None),
    ],
)
def test_a_final_task_says_why_nothing_can_be_done(plan: JsonObject, why: str | None) -> None:
    assert not_actionable(decode(plan)) == why


def test_no_findings_are_no_reason_to_refuse() -> None:
    refuse(())


def test_the_message_tells_some_findings_and_the_error_carries_all() -> None:
    findings = tuple(Finding(f"/n{i}", "is bad", "shape") for i in range(25))
    with pytest.raises(InvalidPlan, match="and 15 more") as raised:
        refuse(findings)
    assert raised.value.findings == tuple(f"/n{i}: is bad" for i in range(25))
    assert "/n9: is bad" in str(raised.value)


def test_bound_values_alone_can_be_checked(catalog: Catalog) -> None:
    body: JsonObject = {
        "start_node": {"route": "a"},
        "a": {"operation": "find", "input": {"limit": "$.x"}, "route": "b"},
        "b": {"operation": "find", "input": {"limit": "five"}, "route": "gone"},
        "c": {"operation": "gone", "input": {"limit": "$.x"}},
    }
    data = frozenset({("a", "input", "limit"), ("c", "input", "limit"), ("b", "route")})
    findings = check_values(decode(body, data=data), catalog)
    assert {(finding.path, finding.code) for finding in findings} == {
        ("/b/route", "shape"),
        ("/a/input/limit", "input"),
        ("/b/input/limit", "input"),
    }
    assert check_values(decode(body, data=data)) != ()
    assert check_values(decode({"tasks": 5}), catalog) == ()
