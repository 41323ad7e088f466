"""A step finds its operation, or becomes a question; it is never guessed."""

from collections.abc import Callable

import pytest

from semcache import Catalog, Operation, Parameter
from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Effect
from semcache.planners.steps.intents import ACTIONS, SubIntent
from semcache.planners.steps.resolution import (
    DataEdge,
    Referral,
    Resolution,
    ResolutionContext,
    Resolved,
)
from semcache.planners.steps.resolver import (
    Composite,
    SuggestedResolver,
    WordResolver,
)
from semcache.prompts.mentions import find_mentions

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}


def operation(
    name: str, *required: str, effect: Effect = "read", summary: str = "", **optional: Json
) -> Operation:
    properties: dict[str, Json] = {**dict.fromkeys(required, TEXT), **optional}
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return Operation(name, summary, schema, {}, effect)


ISSUES = Catalog(
    [
        operation("github.list_issues", "owner", "repo", page=NUMBER, perPage=NUMBER),
        operation("github.list_issue_types", "owner"),
        operation("github.list_branches", "owner", "repo"),
        operation("github.create_issue", "owner", "repo", "title", effect="write"),
        operation("github.get_issue", "owner", "repo", "issue_number", issue_number=NUMBER),
    ]
)


def step(goal: str, **more: object) -> SubIntent:
    """Return the API call that `goal` asks for, its values found by kind."""
    verb = goal.split(maxsplit=1)[0].lower()
    found = find_mentions(goal)
    params = tuple(Parameter(one.kind, one.value, one.text) for one in found)
    fields = {"verb": verb, "action": ACTIONS.get(verb, "other"), "params": params} | more
    return SubIntent(id="step1", goal=goal, kind="api_call", **fields)  # type: ignore[arg-type]  # a test names what it sets


def resolve(goal: str, catalog: Catalog = ISSUES, **more: object) -> Resolved:
    return WordResolver().resolve(
        step(goal, **more), ResolutionContext(prompt=goal, catalog=catalog)
    )


def operations(found: Resolved) -> str:
    return found.operation if isinstance(found, Resolution) else f"no: {found}"


def test_list_issues_is_list_issues_and_nothing_that_only_has_its_words() -> None:
    # specs: E-9
    bare = Catalog([operation(n) for n in ("list_issue_types", "list_issues", "list_branches")])
    assert operations(resolve("list issues", bare)) == "list_issues"
    assert operations(resolve("list issue types", bare)) == "list_issue_types"
    assert operations(resolve("list branches", bare)) == "list_branches"
    alone = resolve("list issues", Catalog([operation("list_issue_types")]))
    assert isinstance(alone, Referral)
    assert "it is about 'type' too, which was not said" in alone.question


def test_a_value_goes_where_the_words_beside_it_say() -> None:
    found = resolve("list issues in acme/web on page 3 with page size 20")
    assert isinstance(found, Resolution)
    assert {one.name: one.value for one in found.params} == {
        "owner": "acme",
        "repo": "web",
        "page": 3,
        "perPage": 20,
    }


def test_what_names_one_thing_goes_to_its_number() -> None:
    catalog = Catalog(
        [
            operation("get_issue", "issue_number", issue_number=NUMBER),
            operation("get_label", "name"),
        ]
    )
    found = resolve("get issue 42", catalog)
    assert isinstance(found, Resolution)
    assert found.input == {"issue_number": "{{params.issue_number}}"}


def test_a_required_value_that_nobody_gave_is_asked_for() -> None:
    # specs: E-7
    found = resolve("create an issue in acme/web")
    assert isinstance(found, Referral)
    assert (found.kind, found.operation, found.missing) == (
        "missing",
        "github.create_issue",
        ("title",),
    )
    assert found.question == "What is 'title' for 'create an issue in acme/web'?"


def test_an_operation_that_lacks_a_value_is_passed_over_for_one_that_needs_none() -> None:
    # specs: E-7
    catalog = Catalog([operation("list_orders_by_state", "region"), operation("list_orders")])
    assert operations(resolve("list orders", catalog)) == "list_orders"


def test_a_default_of_the_schema_fills_what_is_required() -> None:
    # specs: E-7
    with_default: JsonObject = {"type": "integer", "default": 30}
    base = operation("list_orders", "size")
    schema: JsonObject = {**base.input_schema, "properties": {"size": with_default}}
    found = resolve("list orders", Catalog([Operation("list_orders", "", schema, {}, "read")]))
    assert isinstance(found, Resolution)
    assert found.input == {"size": 30}


def test_two_operations_that_would_do_are_a_question_with_both() -> None:
    catalog = Catalog([operation("jira.list_issues"), operation("github.list_issues")])
    found = resolve("list issues", catalog)
    assert isinstance(found, Referral)
    assert found.kind == "which"
    assert found.options == ("github.list_issues", "jira.list_issues")
    assert "Which of 'github.list_issues', 'jira.list_issues'" in found.question


@pytest.mark.parametrize(
    "goal",
    [
        "list stale issues in acme/web",
        "list issues in acme/web 2024-03-11",
        "delete issues in acme/web",
    ],
)
def test_an_operation_that_would_lose_part_of_the_step_is_none(goal: str) -> None:
    found = resolve(goal)
    assert isinstance(found, Referral)
    assert found.kind == "none"


def test_a_number_stands_for_itself_and_not_inside_another_value() -> None:
    catalog = Catalog([operation("search_flights", "date", passengers=NUMBER)])
    found = resolve("search flights on 2024-05-01 for 2 passengers", catalog)
    assert isinstance(found, Resolution)
    assert {one.name: one.value for one in found.params} == {"date": "2024-05-01", "passengers": 2}


def test_an_operation_with_a_broken_schema_keeps_no_other_from_its_work() -> None:
    broken = Operation("list_issue", "", {"type": "object", "required": "no"}, {}, "read")
    catalog = Catalog([broken, operation("list_issues", state=TEXT)])
    found = resolve("list issues", catalog)
    assert operations(found) == "list_issues"


def test_a_step_that_reads_never_becomes_an_operation_that_writes() -> None:
    catalog = Catalog([operation("create_issue", effect="write")])
    assert isinstance(resolve("list issue", catalog), Referral)


def test_a_suggested_operation_is_taken_if_it_exists_and_takes_the_values() -> None:
    # specs: E-8
    asked = ResolutionContext(prompt="", catalog=ISSUES)
    for name in ("github.list_branches", "list_branches", "GitHub.List_Branches"):
        found = SuggestedResolver().resolve(step("show me acme/web", suggested=name), asked)
        assert isinstance(found, Resolution)
        assert (found.operation, found.source) == ("github.list_branches", "suggested")
    lacking = SuggestedResolver().resolve(step("show", suggested="list_branches"), asked)
    assert isinstance(lacking, Referral)
    assert lacking.missing == ("owner", "repo")


def test_an_operation_that_a_model_invented_is_none_and_the_words_decide() -> None:
    # specs: E-8
    invented = step("list issues in acme/web", suggested="github.list_everything")
    asked = ResolutionContext(prompt="", catalog=ISSUES)
    found = SuggestedResolver().resolve(invented, asked)
    assert isinstance(found, Referral)
    assert "no operation is named 'github.list_everything'" in found.question
    both = Composite([SuggestedResolver(), WordResolver()])
    assert operations(both.resolve(invented, asked)) == "github.list_issues"


CUSTOMERS: JsonObject = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": TEXT, "name": TEXT}},
        }
    },
}


def two_steps(output: JsonObject, second: Operation) -> Resolved:
    first = Operation("list_customers", "", {"type": "object"}, output, "read")
    before = {"first": Resolution(intent="first", operation="list_customers")}
    return WordResolver().resolve(
        step("list orders", depends_on=("first",)),
        ResolutionContext(prompt="", catalog=Catalog([first, second]), before=before),
    )


def test_a_result_goes_to_the_property_that_is_named_for_it_one_call_for_each_item() -> None:
    found = two_steps(CUSTOMERS, operation("list_orders", "customer_id"))
    assert isinstance(found, Resolution)
    wire = DataEdge("customer_id", "first", ("items",), each=True, item="id")
    assert found.wires == (wire,)


def test_a_result_without_a_schema_is_no_text_and_the_value_is_asked_for() -> None:
    found = two_steps({}, operation("list_orders", "customer"))
    assert isinstance(found, Referral)
    assert found.missing == ("customer",)


def test_a_noun_that_is_a_listed_value_elsewhere_is_still_a_noun() -> None:
    kinds: JsonObject = {"enum": ["issue", "branch"]}
    catalog = Catalog([operation("list_issues"), operation("list_items", kind=kinds)])
    params = (Parameter("kind", "issue", "issues"),)
    assert operations(resolve("list issues", catalog, params=params)) == "list_issues"


def test_what_was_only_found_is_no_value_where_the_caller_holds_them() -> None:
    goal = "list meetings on March 1, 2024"
    catalog = Catalog([operation("list_meetings", "day"), operation("book_room", "room")])
    held = (Parameter("day", "2024-03-01"),)
    asked = ResolutionContext(prompt=goal, catalog=catalog, params=held)
    found = WordResolver().resolve(
        step(goal, verb="", params=(*held, Parameter("date", "2024-03-01", "March 1, 2024"))),
        asked,
    )
    assert isinstance(found, Resolution)
    assert (found.operation, found.params) == ("list_meetings", held)


def test_a_day_that_depends_on_when_it_is_asked_is_no_value() -> None:
    catalog = Catalog([operation("list_meetings", "date")])
    assert operations(resolve("list meetings on 2024-03-06", catalog)) == "list_meetings"
    found = resolve("list meetings on March 6th", catalog)
    assert isinstance(found, Referral)
    assert "'March 6th' is another value whenever it is asked" in found.question


FLIGHTS = Catalog(
    [
        operation(
            "search_flights", "from_city", "to_city", cabin={"enum": ["economy", "business"]}
        ),
        operation("list_customers", city=TEXT, status=TEXT),
        operation("get_order", "order_id"),
        operation("cancel_order", "order_id", effect="write"),
        operation("transfer_money", "from_account", "to_account", amount=NUMBER, effect="write"),
    ]
)


@pytest.mark.parametrize(
    ("goal", "named", "values"),
    [
        (
            "search business flights from San Diego to Denver",
            "search_flights",
            {"cabin": "business", "from_city": "San Diego", "to_city": "Denver"},
        ),
        ("list customers in Boston", "list_customers", {"city": "Boston"}),
        ("get order ORD-17", "get_order", {"order_id": "ORD-17"}),
    ],
)
def test_names_that_nobody_knows_go_where_their_prepositions_say(
    goal: str, named: str, values: dict[str, Json]
) -> None:
    found = resolve(goal, FLIGHTS)
    assert isinstance(found, Resolution), found
    assert found.operation == named
    assert {one.name: one.value for one in found.params} == values


@pytest.mark.parametrize(
    "goal",
    [
        "list customers of Ann",
        "list the orders of Boston",
        "list orders for C17",
        "get orders from 2024",
        "delete order ORD-17",
        "List Customers In Boston Please",
    ],
)
def test_values_and_verbs_are_never_bent_until_they_fit(goal: str) -> None:
    assert isinstance(resolve(goal, FLIGHTS), Referral)


@pytest.mark.parametrize(
    ("talk", "plans"),
    [
        ("please find products in toys", True),
        ("I'd like to find the products of category toys, please", True),
        ("I'd like to find some products, toys would be great", False),
        ("find products that are not toys", False),
        ("find the cheapest products in toys", False),
        ("buy products in toys", False),
        ("how many products are there in toys", False),
    ],
)
def test_words_count_where_the_caller_gives_the_values_too(talk: str, *, plans: bool) -> None:
    catalog = Catalog([operation("find_products", category=TEXT)])
    held = (Parameter("category", "toys", "toys"),)
    found = WordResolver().resolve(
        step(talk, verb="find", action="search", params=held),
        ResolutionContext(prompt=talk, catalog=catalog, params=held, alone=True),
    )
    assert isinstance(found, Resolution) == plans


def test_what_is_meant_and_lacks_a_value_is_asked_for_though_another_lacks_none() -> None:
    catalog = Catalog(
        [
            operation("compare_sales", "first_year", summary="Compare sales of years."),
            operation("query_sales", summary="Query sales."),
        ]
    )
    asked = ResolutionContext(prompt="", catalog=catalog)
    found = WordResolver().resolve(step("compare sales"), asked)
    assert isinstance(found, Referral)
    assert (found.kind, found.operation) == ("missing", "compare_sales")


def test_an_empty_catalog_and_an_enormous_one_are_answered_alike() -> None:
    assert isinstance(resolve("list issues", Catalog()), Referral)
    many = Catalog([operation(f"list_things_{i}_of_kind_{i % 7}") for i in range(2000)])
    assert isinstance(resolve("list issues", many), Referral)


@pytest.mark.parametrize("make", [WordResolver, SuggestedResolver])
def test_no_resolver_raises_for_a_step_without_words(make: Callable[[], WordResolver]) -> None:
    found = make().resolve(
        step("?", verb="", params=()), ResolutionContext(prompt="?", catalog=ISSUES)
    )
    assert isinstance(found, Referral)
