from typing import Any

import pytest

from semcache import SemCache
from semcache.canonical import dumps
from semcache.errors import (
    InvalidInput,
    NotAllowed,
    NotInRun,
    OperationRefused,
    UnknownLookup,
)
from semcache.runs.tools import TOOLS
from semcache.server.calls import Calls
from semcache.server.tokens import Right

GIVEN = {"prompt": "yearly visits to Bergen", "params": {"town": "Bergen"}}


def call(calls: Calls, tool: str, tenant: str = "acme", /, **arguments: Any) -> Any:
    return calls.call(tool, arguments, tenant=tenant)


def test_ask_answers_and_its_run_can_be_looked_at(calls: Calls) -> None:
    answer = call(calls, "ask", **GIVEN)
    assert (answer["value"]["answer"], answer["tier"]) == (6, "template")
    node = call(calls, "inspect_current_node", runId=answer["run"])
    shown = [node[name] for name in ("name", "status", "depth")]
    assert shown == ["yearly visits to Bergen", "completed", 0]
    latest = call(calls, "list_siblings_children", type="children")
    execute = latest["nodes"][-1]
    assert [n["name"] for n in latest["nodes"]] == ["lookup", "execute"]
    inner = call(calls, "list_siblings_children", type="children", standAt=execute["id"])
    assert [n["name"] for n in inner["nodes"]] == ["start_node", "call", "end"]
    (output,) = call(calls, "inspect_prior_outputs", nodeId=inner["nodes"][1]["id"])
    assert output["output"] == 6


def test_lookup_runs_nothing_and_explain_says_why(calls: Calls, semcache: SemCache) -> None:
    found = call(calls, "lookup", **GIVEN)
    assert found["plan"]["call"]["input"] == {"town": "Bergen"}
    assert semcache.runs.latest(tenant="acme") is None
    looked_up = semcache.cache.stats(tenant="acme").lookups
    assert "template" in call(calls, "explain", **GIVEN)
    assert semcache.cache.stats(tenant="acme").lookups == looked_up


def test_nothing_of_another_tenant_can_be_reached(calls: Calls, semcache: SemCache) -> None:
    given = {"prompt": "yearly visits to Trondheim", "params": {"town": "Trondheim"}}
    answer = call(calls, "ask", "initech", **given)
    found = call(calls, "lookup", "initech", **GIVEN)
    with pytest.raises(InvalidInput, match="nothing that you were given"):
        call(calls, "feedback", found=found["id"], right=False)
    with pytest.raises(InvalidInput, match="you have no run"):
        call(calls, "inspect_current_node", runId=answer["run"])
    with pytest.raises(NotInRun):
        call(calls, "inspect_current_node")
    node = semcache.runs.latest(tenant="initech").nodes()[-1]  # type: ignore[union-attr]  # it ran
    call(calls, "ask", **GIVEN)
    assert call(calls, "inspect_prior_outputs", nodeId=node.id) == []
    with pytest.raises(InvalidInput, match="has no node"):
        call(calls, "inspect_current_node", standAt=node.id)
    theirs = semcache.cache.entries(tenant="initech")[0].id
    ours = semcache.cache.entries(tenant="acme")[0].id
    assert call(calls, "inspect_cache_status", promptHash=ours)["exists"] is True
    assert call(calls, "inspect_cache_status", promptHash=theirs)["exists"] is (ours == theirs)


@pytest.mark.parametrize("tool", ["ask", "lookup", "explain", "statistics", "inspect_current_node"])
def test_no_call_takes_a_tenant(calls: Calls, tool: str) -> None:
    call(calls, "ask", **GIVEN)
    with pytest.raises(InvalidInput, match="do not fit"):
        calls.call(tool, {**GIVEN, "tenant": "initech"}, tenant="acme")
    shown = dumps([t.input_schema for t in calls.tools()])
    assert "tenant" not in shown


def test_a_request_for_a_run_waits_for_the_application(calls: Calls, semcache: SemCache) -> None:
    call(calls, "ask", **GIVEN)
    asked = {"name": "audit", "description": "look again"}
    said = call(calls, "request_spawn_workflow", **asked)
    assert said["status"] == "pending"
    spawns = semcache.introspection.spawns
    assert [r.id for r in spawns.pending(tenant="acme")] == [said["requestId"]]
    assert spawns.pending(tenant="initech") == ()
    assert spawns.accept(said["requestId"], lambda r: r.name, tenant="acme") == "audit"
    run = semcache.runs.latest(tenant="acme")
    assert run is not None
    assert [n.name for n in run][-1] == "audit"


@pytest.mark.parametrize(
    ("rights", "served"),
    [
        ({"read"}, {"lookup", "explain", "statistics"}),
        ({"write"}, {"store", "feedback", "invalidate"}),
        ({"ask"}, {"ask", "answer", "feedback", "request_spawn_workflow"}),
        ({"metrics"}, set()),
    ],
)
def test_a_caller_is_shown_and_served_what_his_rights_cover(
    calls: Calls, rights: set[Right], served: set[str]
) -> None:
    shown = {tool.name for tool in calls.tools(frozenset(rights))}
    assert shown - {tool.name for tool in TOOLS} | shown & {"request_spawn_workflow"} == served
    for tool in calls.tools():
        if tool.name not in shown:
            with pytest.raises(NotAllowed, match=f"{tool.name} needs the right"):
                calls.call(tool.name, {}, tenant="acme", rights=frozenset(rights))


def test_the_oldest_lookups_are_forgotten(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.server.lookup_history.MAX_KEPT", 2)
    first, *others = (call(calls, "lookup", **GIVEN)["id"] for _ in range(3))
    with pytest.raises(UnknownLookup):
        calls.recent.get("acme", first)
    assert [one["id"] for one in calls.recent.newest("acme", 5)] == others[::-1]
    assert len(calls.recent.newest("acme", 1)) == 1


def test_callers_from_outside_write_only_where_the_application_says_so(semcache: SemCache) -> None:
    prompt = {"prompt": "Order a trip to town 'Oslo'"}
    with pytest.raises(OperationRefused, match="writes are not allowed"):
        call(Calls(semcache), "ask", **prompt)
    assert call(Calls(semcache, allow_writes=True), "ask", **prompt)["value"]["answer"] == "Oslo"
