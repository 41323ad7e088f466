from collections.abc import Callable, Iterator

import pytest

from semcache import Catalog, Operation, Parameter, PromptSchema
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json
from semcache.demo import sales as sales_data
from semcache.demo.cases import ONE_STEP, Case, finding
from semcache.demo.operations import catalog as demo_catalog
from semcache.errors import NotActionable, PlanningError
from semcache.execution.routes import RoutesEngine
from semcache.planners.rules.catalog_planner import CatalogPlanner
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.plans.codec import check
from semcache.plans.routes import RoutePlan
from semcache.ports import Limits, Planned, PlanRequest
from semcache.testing import FakeClock

Plan = Callable[[str], Planned]


@pytest.fixture
def plan(rules: RuleNormalizer, sales: Catalog) -> Plan:
    return lambda prompt: planned(rules, sales, prompt)


def planned(rules: RuleNormalizer, catalog: Catalog, prompt: str) -> Planned:
    schema = rules.normalize(prompt, catalog=catalog)
    return CatalogPlanner().plan(PlanRequest(prompt, schema, catalog))


def given(made: Planned) -> Json:
    call = made.plan.to_dict()["call"]
    assert isinstance(call, dict)
    return call["input"]


def test_a_total_by_group_is_one_call_with_a_place_for_the_year(plan: Plan) -> None:
    # specs: A-16
    made = plan("Show me total sales in 2024 by category")
    assert made.plan.to_dict() == {
        "start_node": {"route": "call"},
        "call": {
            "operation": "querySalesData",
            "input": {
                "filter": [{"field": "year", "operator": "equals", "value": "{{params.year}}"}],
                "aggregates": [{"field": "amount", "function": "sum"}],
                "groupBy": ["category"],
            },
            "route": "end",
        },
        "end": {"completed": True, "vars": {"answer": "$.call.data"}},
    }
    assert made.params == (Parameter("year", 2024, mention="2024"),)


def test_another_year_gets_the_same_plan(plan: Plan) -> None:
    # specs: A-7
    one, other = (plan(f"total sales in {year} by category") for year in (2024, 2023))
    assert one.plan.to_dict() == other.plan.to_dict()


def test_every_value_is_a_placeholder_and_every_operator_is_spelled_as_the_operation_does(
    plan: Plan,
) -> None:
    # specs: A-16
    made = plan(
        "top 5 categories by average sales in Texas or Ohio excluding returns from 2021 to 2023"
    )
    assert given(made) == {
        "filter": [
            {"field": "state", "operator": "in", "value": "{{params.state.operand}}"},
            {
                "field": "status",
                "operator": "not_equals",
                "value": "{{params.status.operand}}",
            },
            {
                "field": "year",
                "operator": "between",
                "value": ["{{params.year.operand.0}}", "{{params.year.operand.1}}"],
            },
        ],
        "aggregates": [{"field": "amount", "function": "average"}],
        "groupBy": ["category"],
        "orderBy": [{"field": "amount", "direction": "DESC"}],
        "limit": "{{params.limit}}",
    }


@pytest.mark.parametrize(
    "prompt",
    [
        "sales",
        "sales over $500",
        "5 latest sales",
        "total sales by state",
        "sales in 2022 and 2023",
    ],
)
def test_its_plans_pass_the_checks_and_take_their_own_values(
    plan: Plan, sales: Catalog, prompt: str
) -> None:
    made = plan(prompt)
    assert check(made.plan, sales) == ()
    template = generalize(made.plan.to_dict(), made.params)
    bound = bind(template, {one.name: one.value for one in made.params})
    assert "{{" not in str(bound.plan)


def test_a_plain_operation_takes_the_values_as_its_inputs(
    rules: RuleNormalizer, flights: Catalog, issues: Catalog
) -> None:
    flight = "flights from Boston to Denver between $100 and $300"
    assert given(planned(rules, flights, flight)) == {
        "origin": "{{params.origin}}",
        "destination": "{{params.destination}}",
        "min_price": "{{params.price.operand.0}}",
        "max_price": "{{params.price.operand.1}}",
    }
    one_label = "list 3 issues with label bug in acme/web-app"
    assert given(planned(rules, issues, one_label)) == {
        "repository": "{{params.repository}}",
        "labels": ["{{params.labels}}"],
        "limit": "{{params.limit}}",
    }


def test_the_operation_is_chosen_by_what_it_needs(rules: RuleNormalizer, issues: Catalog) -> None:
    one = planned(rules, issues, "show issue 42 in acme/web-app")
    many = planned(rules, issues, "show issues in acme/web-app")
    assert one.plan.operations() == ("get_issue",)
    assert many.plan.operations() == ("list_issues",)


def test_a_value_keeps_the_name_that_its_caller_gave_it(
    rules: RuleNormalizer, sales: Catalog
) -> None:
    held = (Parameter("State", "TX", mention="Texas"),)
    prompt = "total sales excluding Texas"
    schema = rules.normalize(prompt, catalog=sales, params=held)
    made = CatalogPlanner().plan(PlanRequest(prompt, schema, sales, params=held))
    assert made.params == held
    assert "{{params.State}}" in str(given(made))


def test_a_partial_schema_is_not_planned(plan: Plan) -> None:
    with pytest.raises(PlanningError, match="does not account for 'refunded'") as caught:
        plan("refunded sales in Texas")
    assert not isinstance(caught.value, NotActionable)


def test_without_a_schema_nothing_is_planned(sales: Catalog) -> None:
    with pytest.raises(PlanningError, match="no schema for 'sales'"):
        CatalogPlanner().plan(PlanRequest("sales", None, sales))


def test_a_value_that_an_operation_needs_and_nobody_gave_is_named(
    rules: RuleNormalizer, flights: Catalog
) -> None:
    with pytest.raises(NotActionable, match="'search_flights': it needs origin"):
        planned(rules, flights, "flights to Denver")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (PromptSchema("search", ("cat",)), "none about 'cat'"),
        (PromptSchema("delete", ("sale",)), "does not delete"),
        (PromptSchema("search", ("sale",), params={"color": "red"}), "no field 'color'"),
        (
            PromptSchema("summarize", ("sale",), params={"amount": {"aggregate": "median"}}),
            "does not compute 'median'",
        ),
        (
            PromptSchema(
                "search",
                ("sale",),
                params={"customer": {"operator": "starts_with", "operand": "A"}},
            ),
            "do not compare by 'starts_with'",
        ),
        (PromptSchema("list", ("sale",), params={"offset": 5}), "skips no rows"),
        (
            PromptSchema("search", ("sale",), params={"amount": {"operator": ">"}}),
            "compared with nothing",
        ),
    ],
)
def test_what_no_operation_can_do_is_refused_with_the_reason(
    sales: Catalog, schema: PromptSchema, why: str
) -> None:
    with pytest.raises(NotActionable, match=why):
        CatalogPlanner().plan(PlanRequest("…", schema, sales))


def test_two_operations_that_would_both_do_are_not_chosen_between(sales: Catalog) -> None:
    (query,) = sales
    archive = Operation("query_sales", "Query old sales.", query.input_schema, effect="read")
    schema = PromptSchema("list", ("sale",))
    with pytest.raises(PlanningError, match="'querySalesData', 'query_sales' could all do"):
        CatalogPlanner().plan(PlanRequest("sales", schema, sales.with_(archive)))


def test_a_value_that_the_operation_would_refuse_is_not_planned(issues: Catalog) -> None:
    params: dict[str, Json] = {"repository": "acme/web-app", "number": "forty-two"}
    with pytest.raises(PlanningError, match=r"a call of 'get_issue' .* would be refused"):
        CatalogPlanner().plan(PlanRequest("…", PromptSchema("get", ("issue",), (), params), issues))


def test_own_operations_go_before_those_of_servers_of_the_same_verb_and_noun() -> None:
    # specs: E-8
    named = [Operation(name, "", {}, {}, "read") for name in ("a.list_issues", "b.list_issues")]
    own = Operation("list_issues", "", {}, {}, "read")
    schema = PromptSchema("list", ("issue",))
    request = PlanRequest("list issues", schema, Catalog([*named, own]))
    assert CatalogPlanner().plan(request).plan.operations() == ("list_issues",)
    with pytest.raises(PlanningError, match="nothing in the prompt tells which"):
        CatalogPlanner().plan(PlanRequest("list issues", schema, Catalog(named)))


def test_a_word_that_the_schema_lost_is_refused(issues: Catalog) -> None:
    schema = PromptSchema("get", ("issue",), (), {"repository": "acme/web-app", "number": 42})
    prompt = "get the urgent issue 42 of acme/web-app"
    with pytest.raises(PlanningError, match="'get_issue' does not account for 'urgent'"):
        CatalogPlanner().plan(PlanRequest(prompt, schema, issues))
    plain = CatalogPlanner().plan(PlanRequest(prompt.replace("urgent ", ""), schema, issues))
    assert plain.plan.operations() == ("get_issue",)


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[Catalog, Callable[[Planned], Json], Callable[[Case, Json], str]]]:
    database = sales_data.memory()
    catalog = demo_catalog(database)

    def run(made: Planned) -> Json:
        template = generalize(made.plan.to_dict(), made.params)
        bound = bind(template, {one.name: one.value for one in made.params})
        plan = RoutePlan.from_dict(bound.plan, bound.data)
        outcome = RoutesEngine().execute(
            plan, catalog=catalog, limits=Limits(), clock=FakeClock(), observer=lambda _: None
        )
        return outcome.value

    yield catalog, run, lambda case, answer: finding(case, answer, database)
    database.close()


@pytest.mark.parametrize("case", ONE_STEP, ids=lambda case: case.prompt)
def test_a_prompt_of_the_demo_is_answered_right_with_no_model(
    demo: tuple[Catalog, Callable[[Planned], Json], Callable[[Case, Json], str]],
    rules: RuleNormalizer,
    case: Case,
) -> None:
    catalog, run, wrong = demo
    assert wrong(case, run(planned(rules, catalog, case.prompt))) == ""
