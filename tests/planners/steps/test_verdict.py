"""Before a plan runs it is looked over; what is found goes back for a bounded number of rounds."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from semcache import Catalog, Operation, Parameter
from semcache.canonical import JsonObject
from semcache.catalog.builtin import ASK_USER, ask_user
from semcache.errors import InvalidSettings
from semcache.planners.steps.intents import Decomposition, SubIntent
from semcache.planners.steps.resolution import DataEdge, NoTool, Referral, Resolution, Resolved
from semcache.planners.steps.verdict import Concern, PlanVerdict, repaired, verify
from semcache.planners.transforms import TRANSFORMS

OPEN: JsonObject = {"type": "object"}
CATALOG = Catalog(
    [
        Operation("list_issues", "List issues.", OPEN, {}, "read"),
        Operation("close_issue", "Close an issue.", OPEN, {}, "write"),
    ]
).with_builtins([*TRANSFORMS, ask_user()])


def call(name: str, goal: str, *needs: str, params: tuple[Parameter, ...] = ()) -> SubIntent:
    return SubIntent(id=name, goal=goal, kind="api_call", depends_on=needs, params=params)


def does(name: str, operation: str, *wires: DataEdge) -> Resolution:
    return Resolution(intent=name, operation=operation, wires=wires)


def verdict(goal: str, steps: Sequence[SubIntent], *found: Resolved) -> PlanVerdict:
    made = Decomposition(goal, tuple(steps), 1.0, "test")
    return verify(made, {one.intent: one for one in found}, CATALOG)


def codes(of: PlanVerdict) -> list[tuple[str, str]]:
    return [(one.code, one.intent) for one in of.findings]


def test_a_plan_that_does_what_was_asked_is_valid() -> None:
    of = verdict("list issues", [call("a", "list issues")], does("a", "list_issues"))
    assert of == PlanVerdict()
    assert (of.runs, of.told) == (True, "")


def test_a_number_that_nobody_said_is_told() -> None:
    found = replace(does("a", "list_issues"), params=(Parameter("year", 1999, None),))
    of = verdict("list issues", [call("a", "list issues")], found)
    assert codes(of) == [("value", "a")]
    assert "'year' is 1999, which nobody said" in of.told


def test_a_value_of_the_caller_that_no_step_takes_keeps_a_plan_from_running() -> None:
    made = Decomposition("list issues", (call("a", "list issues"),), 1.0, "test")
    held = [Parameter("as_of", "2024-05-01")]
    of = verify(made, {"a": does("a", "list_issues")}, CATALOG, params=held)
    assert codes(of) == [("value", "")]
    assert "'as_of' was given, and nothing takes it" in of.told


def test_writing_once_for_each_of_a_list_must_be_said() -> None:
    each = does("b", "close_issue", DataEdge("issue", "a", each=True))
    for goal, runs in (("close issue", False), ("close each of them", True)):
        steps = [call("a", "list issues"), call("b", goal, "a")]
        of = verdict(f"list issues then {goal}", steps, does("a", "list_issues"), each)
        assert of.runs == runs


def test_a_step_that_speaks_of_a_result_and_does_not_use_it_is_told() -> None:
    steps = [call("a", "list issues"), call("b", "close it", "a")]
    of = verdict(
        "list issues then close it",
        steps,
        does("a", "list_issues"),
        does("b", "close_issue"),
    )
    assert codes(of) == [("data_flow", "b")]
    wired = does("b", "close_issue", DataEdge("issue", "a"))
    good = verdict("list issues then close it", steps, does("a", "list_issues"), wired)
    assert good.runs


def test_a_step_that_only_comes_after_another_is_a_warning() -> None:
    steps = [call("a", "list issues"), call("b", "list issues", "a")]
    found = (does("a", "list_issues"), does("b", "list_issues"))
    of = verdict("list issues then list issues", steps, *found)
    assert (codes(of), of.runs) == ([("data_flow", "b")], True)


def test_an_answer_that_no_step_uses_is_told() -> None:
    ask = SubIntent(id="q", goal="Ask user for size", kind="user_input", topic="size")
    of = verdict("list issues", [ask], does("q", ASK_USER))
    assert codes(of)[0] == ("data_flow", "q")


def test_a_value_that_was_said_and_is_given_to_nobody_is_told() -> None:
    said = Parameter("number", 7, "7")
    step = call("a", "list issues 7", params=(said,))
    suggested = replace(does("a", "list_issues"), source="suggested")
    of = verdict("list issues 7", [step], suggested)
    assert ("coverage", "") in codes(of)
    assert "'7' was said, and no step has it" in of.told
    made = Decomposition("list issues 7", (step,), 1.0, "test")
    held = Parameter("page", 7)
    taken = replace(does("a", "list_issues"), params=(held,))
    assert verify(made, {"a": taken}, CATALOG, params=[held]).runs


def test_values_and_words_of_the_goal_that_no_step_has_are_told() -> None:
    steps, found = [call("a", "list issues")], does("a", "list_issues")
    lost = verdict("list issues since 2024-03-11", steps, found)
    assert ("coverage", "") in codes(lost)
    assert "'2024-03-11' was said, and no step has it" in lost.told
    words = verdict("list issues of tenants", steps, found)
    assert codes(words) == [("coverage", "")]
    assert not words.runs
    most = verdict("list cheap flights abroad soon issues", steps, found)
    assert codes(most) == [("coverage", "")]


def test_steps_without_an_operation_keep_a_plan_from_running() -> None:
    steps = [call("a", "list issues"), call("b", "list issues"), call("c", "list issues")]
    question = Referral(intent="a", kind="which", question="Which?")
    of = verdict("list issues", steps, question, NoTool("b", "none fits"))
    assert codes(of) == [("unresolved", one) for one in "abc"]
    assert not of.runs


GRAVE = PlanVerdict((Concern("coverage", "", "lost 7"),))


def test_repairs_are_bounded_and_end_where_nothing_changes() -> None:
    drafts: list[int] = []

    def make(_: str) -> int:
        drafts.append(len(drafts))
        return len(drafts)

    assert repaired(make, lambda _: GRAVE, rounds=5)[1] is GRAVE
    assert len(drafts) == 2
    drafts.clear()
    changing = [PlanVerdict((Concern("value", "", str(n)),)) for n in range(9)]
    repaired(make, lambda n: changing[n], rounds=3)
    assert len(drafts) == 4
    drafts.clear()
    repaired(make, lambda _: GRAVE, rounds=0)
    assert len(drafts) == 1
    with pytest.raises(InvalidSettings, match="rounds is -1"):
        repaired(make, lambda _: GRAVE, rounds=-1)
