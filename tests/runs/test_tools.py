import re
from typing import Any

import pytest

from semcache.canonical import dumps
from semcache.errors import InvalidInput, NotInRun, UnknownTool
from semcache.events import SpawnDecided, SpawnRequested
from semcache.runs.run_context import here, node
from semcache.runs.tools import TOOLS, Introspection
from semcache.testing import RecordingObserver

ABOUT_RUNS: dict[str, dict[str, Any]] = {
    "inspect_current_node": {},
    "read_ancestor_chain": {},
    "list_siblings_children": {"type": "children"},
    "inspect_prior_outputs": {},
    "request_spawn_workflow": {"name": "audit", "description": "look again"},
}


@pytest.fixture
def tools() -> Introspection:
    return Introspection(has=lambda key: key == "known")


def call(tools: Introspection, tool: str, /, **arguments: Any) -> Any:
    return tools.call(tool, arguments)


# specs: B-11
def test_all_six_are_told_to_models_in_the_shapes_of_both_makers() -> None:
    names = [*ABOUT_RUNS, "inspect_cache_status"]
    assert sorted(tool.name for tool in TOOLS) == sorted(names)
    for tool in TOOLS:
        said: Any = tool.to_anthropic()
        assert set(said) == {"name", "description", "input_schema"}
        assert said["input_schema"]["type"] == "object"
        assert set(said["input_schema"]) >= {"properties", "required"}
        other: Any = tool.to_openai()
        assert other["type"] == "function"
        assert other["function"]["parameters"] == said["input_schema"]
    required = {tool.name: tool.input_schema["required"] for tool in TOOLS}
    assert required["request_spawn_workflow"] == ["name", "description"]
    assert required["list_siblings_children"] == ["type"]
    assert required["inspect_cache_status"] == ["promptHash"]
    assert required["inspect_prior_outputs"] == []


# specs: B-11
def test_the_current_node_says_where_it_stands(desk: Any, tools: Introspection) -> None:
    with desk.run("top") as top:
        assert call(tools, "inspect_current_node") == {
            "id": top.id, "name": "top", "status": "running", "childCount": 0, "depth": 0,
        }  # fmt: skip
        with node("plan") as plan, node("ask"):
            said = call(tools, "inspect_current_node")
    assert (said["parentId"], said["parentName"], said["depth"]) == (plan.id, "plan", 2)


# specs: B-11
def test_ancestors_come_nearest_first_and_as_many_as_asked_for(
    desk: Any, tools: Introspection
) -> None:
    with desk.run("top"), node("plan"), node("ask"):
        every = call(tools, "read_ancestor_chain")
        nearest = call(tools, "read_ancestor_chain", maxDepth=1)
        many = call(tools, "read_ancestor_chain", maxDepth=10**9)
    assert [(a["name"], a["depth"]) for a in every["ancestors"]] == [("plan", 1), ("top", 2)]
    assert [a["name"] for a in nearest["ancestors"]] == ["plan"]
    assert every["totalDepth"] == nearest["totalDepth"] == 2
    assert many == every


# specs: B-11
def test_siblings_leave_out_the_node_itself_and_a_root_has_none(
    desk: Any, tools: Introspection
) -> None:
    with desk.run("top"):
        assert call(tools, "list_siblings_children", type="siblings")["nodes"] == []
        with node("first"):
            pass
        with node("second"):
            beside = call(tools, "list_siblings_children", type="siblings")
        below = call(tools, "list_siblings_children", type="children")
    assert (beside["type"], [n["name"] for n in beside["nodes"]]) == ("siblings", ["first"])
    assert [(n["name"], n["status"]) for n in below["nodes"]] == [
        ("first", "completed"), ("second", "completed"),
    ]  # fmt: skip


def test_of_very_many_nodes_the_latest_are_listed_and_the_rest_counted(
    desk: Any, tools: Introspection
) -> None:
    with desk.run("top"):
        for number in range(5000):
            with node(f"part {number}"):
                pass
        below = call(tools, "list_siblings_children", type="children")
        with node("now"):
            outputs = call(tools, "inspect_prior_outputs", count=10**6)
    assert (len(below["nodes"]), below["omitted"]) == (100, 4900)
    assert len(outputs) == 20
    assert len(dumps(below)) < 20_000


# specs: B-11
def test_prior_outputs_are_what_earlier_siblings_gave_and_an_older_node_is_found(
    desk: Any, tools: Introspection
) -> None:
    with desk.run("top"):
        ids = []
        for number in range(5):
            with node(f"part {number}") as part:
                part.gave({"number": number, "api_key": "sk-planted-4711-abc"})
            ids.append(part.id)
        with pytest.raises(ValueError, match="no"), node("failed"):
            raise ValueError("no")
        with node("now"):
            last = call(tools, "inspect_prior_outputs")
            three = call(tools, "inspect_prior_outputs", count=3)
            oldest = call(tools, "inspect_prior_outputs", nodeId=ids[0], count=1)
            nobody = call(tools, "inspect_prior_outputs", nodeId="nobody")
    assert [o["nodeName"] for o in last] == ["part 4"]
    assert [o["nodeName"] for o in three] == ["part 2", "part 3", "part 4"]
    assert (oldest[0]["nodeId"], oldest[0]["output"]["number"]) == (ids[0], 0)
    assert {"nodeId", "nodeName", "status", "events", "output"} == set(oldest[0])
    assert nobody == []
    assert "planted" not in dumps(three)


# specs: B-11
def test_the_status_of_a_key_is_told_outside_a_run_too(tools: Introspection) -> None:
    assert call(tools, "inspect_cache_status", promptHash="known") == {
        "exists": True, "key": "known",
    }  # fmt: skip
    assert call(tools, "inspect_cache_status", promptHash="other")["exists"] is False


# specs: B-11
@pytest.mark.parametrize("name", ABOUT_RUNS)
def test_outside_a_run_the_other_five_say_so(name: str, tools: Introspection) -> None:
    with pytest.raises(NotInRun, match="Not in workflow context - "):
        tools.call(name, ABOUT_RUNS[name])


# specs: B-11
def test_a_tool_of_an_unknown_name_is_refused(tools: Introspection) -> None:
    with pytest.raises(UnknownTool, match="Unknown introspection tool: 'drop_tables'"):
        tools.call("drop_tables")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_ancestor_chain", {"maxDepth": 0}),
        ("read_ancestor_chain", {"maxDepth": "1"}),
        ("list_siblings_children", {}),
        ("list_siblings_children", {"type": "cousins"}),
        ("inspect_prior_outputs", {"count": -1}),
        ("inspect_cache_status", {}),
        ("request_spawn_workflow", {"name": "x"}),
        ("request_spawn_workflow", {"name": "x" * 201, "description": "y"}),
        ("inspect_current_node", {"tenant": "initech"}),
    ],
)
def test_arguments_that_do_not_fit_are_told(
    desk: Any, tools: Introspection, name: str, arguments: Any
) -> None:
    with desk.run("top"), pytest.raises(InvalidInput, match=f"the arguments of {name}"):
        tools.call(name, arguments)


def test_a_node_of_another_tenant_is_not_found(desk: Any, tools: Introspection) -> None:
    with desk.run("theirs", tenant="initech"), node("secret") as secret:
        secret.gave("their figures")
    with desk.run("ours", tenant="acme"):
        assert call(tools, "inspect_prior_outputs", nodeId=secret.id) == []


# Runs that are asked for ──────────────────────────────────────────────────────────────────────────


# specs: B-12
def test_a_request_is_recorded_and_nothing_runs(desk: Any, tools: Introspection) -> None:
    with desk.run("top"):
        said = call(tools, "request_spawn_workflow", name="audit", description="look again")
    assert re.fullmatch(r"spawn-\d{13}-[0-9a-z]{6}", said["requestId"])
    assert said == {
        "name": "audit", "description": "look again", "requestId": said["requestId"],
        "status": "pending",
    }  # fmt: skip
    assert [n.name for n in desk.runs.latest()] == ["top"]
    (waiting,) = tools.spawns.pending()
    assert waiting.id == said["requestId"]


# specs: B-12
def test_an_accepted_request_runs_under_the_node_that_asked(
    desk: Any, tools: Introspection
) -> None:
    heard = RecordingObserver()

    def emit(event: Any) -> None:
        desk.runs(event)
        heard(event)

    with desk.run("top", emit=emit), node("think"):
        said = call(tools, "request_spawn_workflow", name="audit", description="look again")
    assert tools.spawns.accept(said["requestId"], lambda request: request.description) == (
        "look again"
    )
    (audit,) = desk.runs.latest().named("audit")
    assert (audit.parent.name, audit.kind, audit.status) == ("think", "run", "completed")
    assert tools.spawns.pending() == ()
    assert [e.id for e in heard.of(SpawnRequested)] == [said["requestId"]]
    assert [e.accepted for e in heard.of(SpawnDecided)] == [True]
    with pytest.raises(InvalidInput, match="waits for a decision"):
        tools.spawns.accept(said["requestId"], lambda _: None)


# specs: B-12
def test_a_refused_request_comes_to_nothing(desk: Any, tools: Introspection) -> None:
    with desk.run("top"):
        said = call(tools, "request_spawn_workflow", name="audit", description="look again")
    refused = tools.spawns.refuse(said["requestId"], "not today")
    assert (refused.status, refused.reason) == ("refused", "not today")
    assert len(desk.runs.latest().nodes()) == 1


def test_requests_of_another_tenant_are_out_of_reach(desk: Any, tools: Introspection) -> None:
    with desk.run("top", tenant="acme"):
        said = call(tools, "request_spawn_workflow", name="audit", description="look again")
    assert tools.spawns.get(said["requestId"], tenant="initech") is None
    for decide in (tools.spawns.refuse, lambda i, **t: tools.spawns.accept(i, str, **t)):
        with pytest.raises(InvalidInput, match="of tenant 'initech'"):
            decide(said["requestId"], tenant="initech")
    assert len(tools.spawns.pending(tenant="acme")) == 1


def test_requests_that_wait_are_bounded_a_tenant(desk: Any, tools: Introspection) -> None:
    def ask() -> None:
        call(tools, "request_spawn_workflow", name="audit", description="again and again")

    with desk.run("top", tenant="acme"):
        for _ in range(32):
            ask()
        with pytest.raises(InvalidInput, match="32 requests of the tenant wait already"):
            ask()
    with desk.run("top", tenant="initech"):
        ask()


def test_a_run_eight_deep_may_ask_for_no_more(desk: Any, tools: Introspection) -> None:
    def nest(levels: int) -> None:
        with desk.run(f"level {levels}"):
            if levels > 1:
                nest(levels - 1)
            else:
                standing = here()
                assert standing is not None
                assert standing.runs == 8
                call(tools, "request_spawn_workflow", name="more", description="more")

    with pytest.raises(InvalidInput, match="8 runs stand one in the other"):
        nest(8)


def test_secrets_in_a_request_are_not_kept(desk: Any, tools: Introspection) -> None:
    with desk.run("top"):
        call(tools, "request_spawn_workflow", name="x", description="use sk-planted-4711-abc")
    (waiting,) = tools.spawns.pending()
    assert "planted" not in waiting.description
