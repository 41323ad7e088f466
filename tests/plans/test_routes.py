"""The routes format: reading, equality, and what a plan tells about itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import JsonObject
from semcache.plans.document import ExecutionPlan, Reference
from semcache.plans.routes import Route, RoutePlan, is_end, route_of


def test_a_plan_is_an_execution_plan_that_tells_its_operations_and_references(
    seed: JsonObject,
) -> None:
    plan = RoutePlan.from_dict(seed)
    assert isinstance(plan, ExecutionPlan)
    assert plan.format == "routes"
    assert plan.operations() == ("querySalesData",)
    assert plan.references() == (
        Reference(("summary", "vars", "answer"), "query_sales", "$.query_sales.data"),
    )


def test_an_end_leads_nowhere_even_with_a_route() -> None:
    assert is_end({"completed": True})
    assert not is_end({"completed": 1})
    assert route_of({"completed": True, "route": "a"}) == Route()


def test_references_stand_in_variables_inputs_and_conditions_but_not_in_data() -> None:
    plan = RoutePlan(
        {
            "start_node": {"vars": {"x": "$.user.secret", "y": "$$.literal"}, "route": "a"},
            "a": {
                "operation": "find",
                "input": {"list": [{"deep": "$.b.c"}], "bound": {"x": "$.b.c"}, "bad": "$."},
                "route": [{"condition": "$.a.n > $.c.n", "node": "d"}, "d"],
            },
            "d": {"completed": True, "vars": {"last": "$._lstt.x"}},
            "noise": 5,
        },
        frozenset({("start_node", "vars", "x"), ("a", "input", "bound")}),
    )
    assert [(reference.at, reference.target) for reference in plan.references()] == [
        (("a", "input", "list", 0, "deep"), "b"),
        (("a", "route", 0, "condition"), "a"),
        (("a", "route", 0, "condition"), "c"),
    ]


KEYS = st.sampled_from(
    ["route", "vars", "input", "completed", "operation", "condition", "node", "x"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["$.a.b", "a", "$."])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["start_node", "a", "b"]) | st.text(), JSON, max_size=4))
def test_any_object_can_be_read_however_malformed(body: JsonObject) -> None:
    plan = RoutePlan.from_dict(body)
    assert RoutePlan.from_dict(plan.to_dict()) == plan
    assert list(plan.operations()) == sorted(set(plan.operations()))
