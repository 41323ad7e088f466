"""Literal lifting: what is constant moves into `task0`, and nothing there is overwritten."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, JsonObject
from semcache.plans.tasks.document import TaskPlan
from semcache.plans.tasks.inputs import constants
from semcache.plans.tasks.literals import lifted
from semcache.plans.tasks.references import is_reference, parse, walk

FAST = settings(max_examples=100)


def plan(zero: JsonObject, *inputs: JsonObject) -> JsonObject:
    tasks: list[Json] = [
        {"id": f"task{i}", "service": "s", "input": given} for i, given in enumerate(inputs, 1)
    ]
    return {"tasks": [{"id": "task0", "input": zero}, *tasks]}


def test_constants_move_under_their_own_key_and_equal_ones_share_it() -> None:
    body = plan({"id": 1}, {"id": "$task0.id", "limit": 5}, {"limit": 5, "q": "$task1.x"})
    assert lifted(TaskPlan.from_dict(body)).to_dict() == plan(
        {"id": 1, "limit": 5},
        {"id": "$task0.id", "limit": "$task0.limit"},
        {"limit": "$task0.limit", "q": "$task1.x"},
    )


def test_another_value_never_overwrites_the_one_that_is_there() -> None:
    body = plan({"id": 1, "id_2": 9}, {"id": 2}, {"id": 3}, {"id": 2}, {"id": 1}, {"id": True})
    moved = lifted(TaskPlan.from_dict(body)).to_dict()
    zero: JsonObject = {"id": 1, "id_2": 9, "id_3": 2, "id_4": 3, "id_5": True}
    names = ["id_3", "id_4", "id_3", "id", "id_5"]
    inputs: list[JsonObject] = [{"id": f"$task0.{name}"} for name in names]
    assert moved == plan(zero, *inputs)


def test_what_holds_a_reference_or_has_a_key_with_dots_stays() -> None:
    body = plan({"a": {"b": 1}}, {"q": ["$task0.a.b", 5], "a.b": 2, "r s": 3})
    assert lifted(TaskPlan.from_dict(body)).to_dict() == plan(
        {"a": {"b": 1}, "r s": 3}, {"q": ["$task0.a.b", 5], "a.b": 2, "r s": "$task0['r s']"}
    )


def test_bound_data_stays_data() -> None:
    body = plan({}, {"q": "$task9.x", "r": {"in": ["$$5", "$$5"]}}, {"q": "$$5"}, {"q": "$$5"})
    data = frozenset({
        ("tasks", 1, "input", "q"),
        ("tasks", 1, "input", "r", "in", 1),
        ("tasks", 2, "input", "q"),
    })  # fmt: skip
    moved = lifted(TaskPlan.from_dict(body, data))
    held = constants(moved.tasks[0], moved.data)
    assert held == {"q": "$task9.x", "r": {"in": ["$5", "$$5"]}, "q_2": "$$5", "q_3": "$5"}
    assert [task.input["q"] for task in moved.tasks[1:]] == ["$task0.q", "$task0.q_2", "$task0.q_3"]


def test_a_plan_without_task0_stays_as_it_is() -> None:
    body = TaskPlan.from_dict({"tasks": [{"id": "a", "service": "s", "input": {"q": 1}}, 5]})
    assert lifted(body) is body


KEYS = st.sampled_from(["a", "a_2", "b", "a.b", "x y", "'\""])
VALUES = (
    st.integers(0, 3)
    | st.sampled_from(["$$x", "$", "x", "$5", True, None])
    | st.lists(st.sampled_from(["$$", 1]), max_size=2)
)
INPUTS = st.dictionaries(KEYS, VALUES, max_size=4)


def handed_on(plan: TaskPlan) -> list[Any]:
    """Return what each task is given, references followed."""
    zero = constants(plan.tasks[0], plan.data)

    def value(key: str, raw: Json, at: Any) -> Json:
        path = parse(raw) if isinstance(raw, str) and is_reference(raw) else None
        known = at not in plan.data and path is not None and bool(path.steps)
        if known and path is not None:
            return walk(zero, path.steps)
        return constants(plan.tasks[at[1]], plan.data)[key]

    return [
        {key: value(key, raw, (*task.at, key)) for key, raw in task.input.items()}
        for task in plan.tasks[1:]
    ]


@given(st.lists(INPUTS, min_size=1, max_size=4), st.data())
@FAST
def test_lifting_changes_no_input_and_no_constant(inputs: list[JsonObject], data: Any) -> None:
    body = plan(*inputs)
    places: list[Any] = [
        ("tasks", i, "input", key) for i, given in enumerate(inputs) for key in given
    ]
    bound = data.draw(st.sets(st.sampled_from(places))) if places else set()
    before = TaskPlan.from_dict(body, frozenset(bound))
    after = lifted(before)
    assert handed_on(after) == handed_on(before)
    zero = constants(before.tasks[0], before.data)
    assert {k: constants(after.tasks[0], after.data)[k] for k in zero} == zero
    assert lifted(after) == after
