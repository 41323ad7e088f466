"""The intent graph: what it holds, how it advances, what it can be asked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache import Parameter
from semcache.errors import InvalidInput, PlanningError
from semcache.planners.intent_graph import Edge, IntentGraph
from semcache.planners.steps.intents import GOAL, Decomposition, DependencyIssue, SubIntent, serves
from semcache.plans.codec import decode


def step(number: int, goal: str = "", needs: tuple[str, ...] = ()) -> SubIntent:
    return SubIntent(
        id=f"step{number}", goal=goal or f"do {number}", kind="api_call", depends_on=needs
    )


def graph(*steps: SubIntent) -> IntentGraph:
    return IntentGraph.of(Decomposition("do it all", steps, 0.9, "pattern:x"))


ASK = SubIntent(id="step1", goal="Ask user for page size", kind="user_input", topic="page size")
LIST = SubIntent(
    id="step2",
    goal="list issues",
    kind="api_call",
    verb="list",
    action="list",
    params=(Parameter("identifier", "a/b", "a/b"), Parameter("nested", {"x": [1, None]})),
    depends_on=("step1",),
)
PLAN = decode(
    {
        "tasks": [
            {"id": "task0", "input": {}},
            {"id": "task1", "service": "ask_user", "intent": "step1", "input": {}},
            {"id": "task2", "service": "list_issues", "intent": "step2", "input": {}},
        ]
    }
)


# specs: E-4
def test_a_graph_has_the_goal_its_steps_and_an_edge_for_each_relation() -> None:
    found = graph(ASK, LIST)
    assert [one.id for one in found.nodes] == [GOAL, "step1", "step2"]
    assert found.edges == (
        Edge("step1", "is_subgoal_of", GOAL),
        Edge("step2", "is_subgoal_of", GOAL),
        Edge("step2", "depends_on", "step1"),
    )
    assert found.knots == ()


# specs: E-4
def test_a_dependency_on_a_later_step_gets_its_edge_and_is_reported() -> None:
    found = graph(step(1, needs=("step2",)), step(2))
    assert found.dependencies("step1") == ("step2",)
    assert found.knots == (
        DependencyIssue("forward", "step1 needs step2, which was said later", ("step1", "step2")),
    )
    assert [one.id for one in found.ordered()] == ["step2", "step1"]


# specs: E-4
def test_every_cycle_is_reported_and_no_order_is_made_up() -> None:
    found = graph(
        step(1, needs=("step2",)),
        step(2, needs=("step1",)),
        step(3, needs=("step3",)),
        step(4),
    )
    cycles = [set(knot.intents) for knot in found.knots if knot.code == "cycle"]
    assert cycles == [{"step1", "step2"}, {"step3"}]
    with pytest.raises(PlanningError, match="a circle"):
        found.ordered()


def test_a_dependency_on_no_step_is_reported_and_keeps_an_order_from_being_made() -> None:
    found = graph(step(1, needs=("step9",)))
    assert found.knots[0].code == "unknown"
    with pytest.raises(PlanningError, match="'step9', which is no step"):
        found.ordered()


def test_two_intents_of_one_id_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two intents have the id 'step1'"):
        graph(step(1), step(1))


def test_statuses_advance_with_planning_and_with_each_node_that_ends() -> None:
    found = graph(ASK, LIST).resolved("step1", "ask_user").resolved("step2", "list_issues")
    assert [one.status for one in found.steps] == ["resolved", "resolved"]
    found = found.planned(PLAN).finished("task1")
    assert [one.status for one in found.nodes] == ["executing", "completed", "resolved"]
    assert [one.status for one in found.finished("task2").nodes] == ["completed"] * 3
    failed = found.finished("task2", error="OperationFailed")
    assert (failed.goal.status, failed.node("step2").note) == ("failed", "OperationFailed")


def test_a_node_that_serves_nothing_changes_nothing() -> None:
    found = graph(ASK, LIST).planned(PLAN)
    assert found.finished("task9") is found


# specs: E-12
def test_why_something_was_called_leads_back_to_the_goal() -> None:
    found = graph(ASK, LIST).resolved("step1", "ask_user").planned(PLAN)
    for called in ("ask_user", "task1", "step1"):
        (way,) = found.why(called)
        assert [one.id for one in way.nodes] == ["step1", "step2", GOAL]
    assert found.why("ask_user")[0].text == (
        "ask_user serves step1, 'Ask user for page size'; needed by step2, 'list issues'; "
        "for the goal 'do it all'"
    )
    assert found.why("delete_everything") == ()


def test_why_ends_on_a_graph_with_more_ways_than_anyone_would_read() -> None:
    steps = [step(i, needs=(f"step{i - 1}", f"step{i - 2}")[: i - 1]) for i in range(1, 60)]
    assert len(graph(*steps).why("step1")) == 20


def test_a_way_back_ends_in_a_circle_too() -> None:
    found = graph(step(1, needs=("step2",)), step(2, needs=("step1",)))
    assert [one.id for one in found.why("step1")[0].nodes] == ["step1", "step2", GOAL]


# specs: E-13
def test_a_graph_comes_back_from_json_as_it_was() -> None:
    found = graph(ASK, LIST, step(3, needs=("step3",))).resolved("step1", "ask_user").planned(PLAN)
    found = replace(found, params=(Parameter("repo", "a/b", "a/b"),), reasons=("because",))
    assert IntentGraph.from_json(found.to_json()) == found


NOBODY = {"id": GOAL, "name": "Goal", "goal": "x"}
STEP = {"id": "step1", "goal": "x", "kind": "output"}


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"nodes": 3, "edges": []},
        {"nodes": [{"id": 1}]},
        {"nodes": [], "edges": []},
        {"nodes": [NOBODY, NOBODY], "edges": []},
        {"nodes": [NOBODY, {**NOBODY, "id": "step2", "intent": STEP}], "edges": []},
    ],
)
def test_what_is_no_graph_is_refused_by_name(told: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="the intent graph"):
        IntentGraph.from_json(told)  # type: ignore[arg-type]  # read from a file


def test_a_file_cannot_say_that_a_circle_is_none() -> None:
    told = graph(step(1, needs=("step2",)), step(2, needs=("step1",))).to_json()
    assert told.pop("knots")
    with pytest.raises(PlanningError, match="cannot be put in order"):
        IntentGraph.from_json(told).ordered()


def test_plans_of_each_format_tell_which_intent_a_node_serves() -> None:
    routes = {
        "start_node": {"route": "a"},
        "a": {"operation": "x", "intent": "step1", "input": {}, "route": "end"},
        "end": {"completed": True},
    }
    program = {"instructions": [{"seq_no": 0, "type": "assign", "intent": "step1"}]}
    assert serves(decode(routes)) == {"a": "step1"}
    assert serves(PLAN) == {"task1": "step1", "task2": "step2"}
    assert serves(decode(program)) == {"0": "step1"}


NEEDS = st.lists(
    st.lists(st.integers(1, 12).map("step{}".format), max_size=3).map(tuple), min_size=1, max_size=9
)


@given(NEEDS)
def test_an_order_puts_each_step_after_what_it_needs_or_says_why_not(
    needs: list[tuple[str, ...]],
) -> None:
    found = graph(*(step(i, needs=others) for i, others in enumerate(needs, 1)))
    assert IntentGraph.from_json(found.to_json()) == found
    try:
        order = [one.id for one in found.ordered()]
    except PlanningError:
        assert any(knot.code != "forward" for knot in found.knots)
        return
    for i, others in enumerate(needs, 1):
        assert all(order.index(other) < order.index(f"step{i}") for other in others)


# specs: E-12
def test_the_trace_tells_what_happened_in_order() -> None:
    found = graph(ASK, LIST).resolved("step1", "ask_user").resolved("step2", "list_issues")
    found = found.planned(PLAN).finished("task1").finished("task2", error="OperationFailed")
    assert [(one.what, one.intent, one.detail) for one in found.trace] == [
        ("decomposed", GOAL, "2 by pattern:x, 0.90 sure"),
        ("intent_created", "step1", "Ask user for page size"),
        ("intent_created", "step2", "list issues"),
        ("edge_created", "step1", "is_subgoal_of goal"),
        ("edge_created", "step2", "is_subgoal_of goal"),
        ("edge_created", "step2", "depends_on step1"),
        ("resolved", "step1", "ask_user"),
        ("resolved", "step2", "list_issues"),
        ("planned", GOAL, "2 nodes"),
        ("advanced", "step1", "completed"),
        ("advanced", "step2", "failed OperationFailed"),
    ]
