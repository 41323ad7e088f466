"""Properties of generalize and bind over any JSON plan."""

from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from semcache.binding.bind import bind
from semcache.binding.codecs import alike
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject, leaves, same
from semcache.errors import BindingError
from tests.binding.back import gives_back

KEYS = st.sampled_from(["year", "city", "value", "order_id", "n", "field", "a b", "end"])
SCALARS: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3000)
    | st.sampled_from(
        [
            "a",
            "Paris",
            "New York",
            "ORD456",
            "2024",
            "0",
            "$.x",
            "$x",
            "$task0.year",
            "../..",
            "true",
        ]
    )
    | st.text(max_size=6)
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def one_call(inputs: JsonObject) -> JsonObject:
    return {
        "start_node": {"route": "call"},
        "call": {"operation": "op", "input": inputs, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.call"}},
    }


def tasks(inputs: list[JsonObject]) -> JsonObject:
    listed: list[Json] = [
        {"id": f"task{i}", "service": "s", "input": given} if i else {"id": "task0", "input": given}
        for i, given in enumerate(inputs)
    ]
    return {"tasks": listed, "parallel_groups": [["task1"]]}


DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)
PLANS = DOCUMENTS | DOCUMENTS.map(one_call) | st.lists(DOCUMENTS, min_size=1, max_size=4).map(tasks)
NAMES = ["year", "city", "order_id", "n", "whatever", "city2"]
FAST = settings(max_examples=100)


@st.composite
def cases(draw: st.DrawFn) -> tuple[JsonObject, dict[str, Json]]:
    """Return a plan and parameters, some of whose values stand in it."""
    plan = draw(PLANS)
    inside = [leaf for _, leaf in leaves(plan)] or [None]
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    return plan, {name: draw(st.sampled_from(inside) | VALUES) for name in names}


@given(cases())
@FAST
def test_binding_the_same_values_gives_the_plan_back(
    case: tuple[JsonObject, dict[str, Json]],
) -> None:
    gives_back(*case)


@given(cases(), st.data())
@FAST
def test_what_is_not_bound_never_changes(
    case: tuple[JsonObject, dict[str, Json]], data: st.DataObject
) -> None:
    plan, params = case
    others = {name: data.draw(VALUES) for name in params}
    try:
        template = generalize(plan, params)
        bound = bind(template, others)
    except BindingError:
        return
    free = {at: leaf for at, leaf in leaves(plan) if not any(at[: len(b)] == b for b in bound.data)}
    after = dict(leaves(bound.plan))
    assert all(at in after and same(after[at], leaf) for at, leaf in free.items())


@given(cases(), st.data())
@FAST
def test_a_value_that_changes_either_moves_into_the_plan_or_is_refused(
    case: tuple[JsonObject, dict[str, Json]], data: st.DataObject
) -> None:
    plan, params = case
    assume(params)
    name = data.draw(st.sampled_from(sorted(params)))
    other = data.draw(SCALARS.filter(lambda v: not alike(v, params[name])))
    try:
        template = generalize(plan, params)
        bind(template, params | {name: other})
    except BindingError:
        return
    assert any(binding.param == name for binding in template.bindings)
    assert name not in {pin.param for pin in template.pinned if not pin.path}


COMMON_VALUES: st.SearchStrategy[Json] = st.integers(0, 30) | st.sampled_from(
    ["Paris", "Rome", "CA", "2024", "sum", 2024]
)
PARTS = ["year", "city", "order", "amount"]


@st.composite
def planners(draw: st.DrawFn) -> tuple[Callable[[dict[str, Json]], JsonObject], list[str]]:
    """Return a planner: a function from parameters to a plan that has each of them by name."""
    names = draw(st.lists(st.sampled_from(PARTS), unique=True, min_size=1))
    fields = ["page", "mode", "title", *(set(PARTS) - set(names))]
    constants = draw(st.dictionaries(st.sampled_from(fields), COMMON_VALUES, max_size=4))
    wording = draw(st.sampled_from(["", "about Paris", "LIMIT 1", "in 2024", "Rome_2024"]))
    as_filters = draw(st.booleans())

    def planner(params: dict[str, Json]) -> JsonObject:
        inputs: JsonObject = {**constants, "note": wording}
        if as_filters:
            filters: list[Json] = [{"field": n, "op": "=", "value": params[n]} for n in names]
            return one_call({**inputs, "filters": filters})
        return one_call(inputs | {name: params[name] for name in names})

    return planner, names


@given(planners(), st.data())
@FAST
def test_a_bound_plan_is_the_one_that_the_planner_would_have_made(
    made: tuple[Callable[[dict[str, Json]], JsonObject], list[str]], data: st.DataObject
) -> None:
    planner, names = made
    first: dict[str, Json] = {name: data.draw(COMMON_VALUES) for name in names}
    second: dict[str, Json] = {name: data.draw(COMMON_VALUES) for name in names}
    template = generalize(planner(first), first)
    try:
        bound = bind(template, second).plan
    except BindingError:
        return
    assert alike_leaves(bound, planner(second))


def alike_leaves(left: Json, right: Json) -> bool:
    """Return whether two plans are equal, but for numbers that are text in the first."""
    mine, its = dict(leaves(left)), dict(leaves(right))
    return mine.keys() == its.keys() and all(alike(mine[at], its[at]) for at in mine)
