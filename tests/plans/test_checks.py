"""Checks of a plan of any format."""

import pytest

from semcache import Catalog
from semcache.canonical import JsonObject
from semcache.errors import InvalidPlan
from semcache.plans.codec import check_values, decode, refuse
from semcache.plans.finding import Finding


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
