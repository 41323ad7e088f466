"""Decomposition by patterns."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache import Catalog, Operation, Parameter
from semcache.canonical import Json, JsonObject
from semcache.planners.steps.clauses import PromptClauses
from semcache.planners.steps.intents import Decomposition, Deferred, SubIntent
from semcache.planners.steps.patterns import Pattern, Patterns
from semcache.ports import PlanRequest

STATE: JsonObject = {"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}}
CATALOG = Catalog([Operation(name, "x", STATE) for name in ("list_issues", "cancel_order")])


def decompose(prompt: str, *params: Parameter) -> Decomposition | Deferred:
    return Patterns().decompose(PlanRequest(prompt, None, CATALOG, params))


def taken_apart(prompt: str, *params: Parameter) -> Decomposition:
    found = decompose(prompt, *params)
    assert isinstance(found, Decomposition), found
    return found


def values(step: SubIntent) -> dict[str, Json]:
    return {one.name: one.value for one in step.params}


def outline(found: Decomposition) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.kind, one.topic or one.goal, one.depends_on) for one in found.intents]


@pytest.mark.parametrize(
    ("prompt", "strategy", "steps"),
    [
        (
            "Prompt the user about the state, and then list issues.",
            "user_input_then_action",
            [("user_input", "state", ()), ("api_call", "list issues", ("step1",))],
        ),
        (
            "ask me for the state then list issues",
            "user_input_then_action",
            [("user_input", "state", ()), ("api_call", "list issues", ("step1",))],
        ),
        (
            "get order 17 then cancel it",
            "sequential_actions",
            [("api_call", "get order 17", ()), ("api_call", "cancel it", ("step1",))],
        ),
        (
            "list issues, then get order 17; then count them and print them as json",
            "sequential_actions",
            [
                ("api_call", "list issues", ()),
                ("api_call", "get order 17", ("step1",)),
                ("data_transform", "count them", ("step2",)),
                ("output", "json", ("step3",)),
            ],
        ),
        (
            "list the issues and sort them by created date, and then keep the first 5",
            "action_with_transform",
            [
                ("api_call", "list the issues", ()),
                ("data_transform", "created date", ("step1",)),
                ("data_transform", "first 5", ("step2",)),
            ],
        ),
        (
            "list issues and show them",
            "action_with_output",
            [("api_call", "list issues", ()), ("output", "show them", ("step1",))],
        ),
        ("Could you please list all issues?", "simple_api", [("api_call", "list all issues", ())]),
        ("cancel order 17, thanks!", "simple_api", [("api_call", "cancel order 17", ())]),
        (
            "find the first open issues",
            "simple_api",
            [("api_call", "find the first open issues", ())],
        ),
    ],
)
def test_each_pattern_tells_its_steps(
    prompt: str, strategy: str, steps: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    found = taken_apart(prompt)
    assert found.strategy == f"pattern:{strategy}"
    assert outline(found) == steps


def test_keeping_so_many_is_a_limit_and_keeping_such_ones_is_a_filter() -> None:
    limit = taken_apart("list issues and keep the first 5").intents[1]
    assert (limit.transform, values(limit)) == ("limit", {"number": 5})
    assert taken_apart("list issues and keep only open ones").intents[1].transform == "filter"


def test_a_single_call_is_less_sure_than_two_steps() -> None:
    assert taken_apart("list issues").confidence == 0.7
    assert len(taken_apart("list issues").intents) == 1
    assert taken_apart("list issues then count them").confidence == 0.9


# specs: E-3
@pytest.mark.parametrize(
    "prompt",
    [
        "list issues and pull requests",
        "list issues without label bug",
        "list open or closed issues",
        "list issues if there are any then cancel order 17",
        "for each order get its customer",
        "get order 17 then for each item get its price",
        "list issues sorted by date",
        "list issues with the label asked to the user",
        "list issues for the repo that the user provides",
        "list issues but ask me for the page size and then cancel order 17",
        "list issues but ask me for whatever you think might be of some use here",
        "list issues and filter",
        "list issues, orders",
        "list issues" + " then list issues" * 55,
        "list issues " + "x" * 1000,
        "list issues" + " " * 900 + "then",
    ],
)
def test_a_text_that_is_more_than_the_patterns_is_left_to_others(prompt: str) -> None:
    found = decompose(prompt)
    assert isinstance(found, Deferred)
    assert found.strategy == "patterns"
    assert found.why


def test_too_many_steps_are_not_taken_apart() -> None:
    found = decompose("list a" + " then get b" * 60)
    assert isinstance(found, Deferred)
    assert found.why == "it has 61 steps; a plan has at most 50"


def test_joints_inside_a_value_join_nothing() -> None:
    (call,) = taken_apart('create issue "wash and then dry, if wet"').intents
    assert call.params == (
        Parameter("quoted", "wash and then dry, if wet", '"wash and then dry, if wet"'),
    )


def test_values_keep_the_names_of_the_caller_and_go_to_the_step_that_says_them() -> None:
    first, second = taken_apart(
        "get order 17 then list issues in acme/site",
        Parameter("order_id", 17, "17"),
        Parameter("token", "secret"),
    ).intents
    assert values(first) == {"order_id": 17, "token": "secret"}
    assert values(second) == {"identifier": "acme/site", "token": "secret"}


def test_two_values_of_one_kind_get_names_of_their_own() -> None:
    (call,) = taken_apart("list issues from 2024-01-05 to 2024-02-05").intents
    assert values(call) == {"date": "2024-01-05", "date2": "2024-02-05"}


def test_a_strategy_may_have_patterns_of_its_own() -> None:
    def build(prompt: PromptClauses, match: re.Match[str]) -> list[SubIntent]:
        return [SubIntent(id="step1", goal="sync", kind="api_call", verb="sync")]

    own = Pattern("synced", re.compile(r"list \w+"), build, confidence=0.8)
    found = Patterns([own]).decompose(PlanRequest("list issues", None, CATALOG))
    assert isinstance(found, Decomposition)
    assert (found.strategy, found.confidence) == ("pattern:synced", 0.8)
    assert outline(found) == [("api_call", "sync", ())]


PARTS = st.lists(
    st.sampled_from(
        "list issues|then|and|but ask me for|the page size|filter by|,|;| |count them|it|if|5|"
        'ask user for|"a and b"|mandubian/ccos|print them|\'|please|.|\n|order'.split("|")
    ),
    max_size=12,
)


@given(PARTS | st.lists(st.text(max_size=8), max_size=8))
def test_any_text_is_taken_apart_into_a_graph_of_earlier_steps_or_left(parts: list[str]) -> None:
    prompt = " ".join(parts)
    found = decompose(prompt)
    if isinstance(found, Deferred):
        return
    ids = [one.id for one in found.intents]
    assert len(set(ids)) == len(ids) > 0
    for i, one in enumerate(found.intents):
        assert set(one.depends_on) <= set(ids[:i])
        assert all(parameter.mention in prompt for parameter in one.params if parameter.mention)
