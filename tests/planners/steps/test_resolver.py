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


ISSUE_WORDS = Catalog([operation(n) for n in ("list_issue_types", "list_issues", "list_branches")])
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
TRIPS = Catalog([operation("search_trips", "date", passengers=NUMBER)])
BROKEN: JsonObject = {"type": "object", "required": "no"}


# specs: E-7, E-9
@pytest.mark.parametrize(
    ("goal", "catalog", "named", "values"),
    [
        ("list issues", ISSUE_WORDS, "list_issues", {}),
        ("list issue types", ISSUE_WORDS, "list_issue_types", {}),
        ("list branches", ISSUE_WORDS, "list_branches", {}),
        # By the words beside a value, the noun that it identifies, its preposition, its kind.
        (
            "list issues in acme/web on page 3 with page size 20",
            ISSUES,
            "github.list_issues",
            {"owner": "acme", "repo": "web", "page": 3, "perPage": 20},
        ),
        (
            "get issue 42",
            Catalog([operation("get_issue", "issue_number", issue_number=NUMBER)]),
            "get_issue",
            {"issue_number": 42},
        ),
        (
            "search business flights from San Diego to Denver",
            FLIGHTS,
            "search_flights",
            {"cabin": "business", "from_city": "San Diego", "to_city": "Denver"},
        ),
        ("list customers in Boston", FLIGHTS, "list_customers", {"city": "Boston"}),
        ("get order ORD-17", FLIGHTS, "get_order", {"order_id": "ORD-17"}),
        # The 2 of "2 passengers" is not that of the date.
        (
            "search trips on 2024-05-01 for 2 passengers",
            TRIPS,
            "search_trips",
            {"date": "2024-05-01", "passengers": 2},
        ),
        # What lacks a value is passed over for what needs none.
        (
            "list orders",
            Catalog([operation("list_orders_by_state", "region"), operation("list_orders")]),
            "list_orders",
            {},
        ),
        # One broken schema keeps no other operation from its work.
        (
            "list issues",
            Catalog([Operation("list_issue", "", BROKEN, {}, "read"), operation("list_issues")]),
            "list_issues",
            {},
        ),
    ],
)
def test_a_step_finds_the_operation_that_says_its_words_and_takes_its_values(
    goal: str, catalog: Catalog, named: str, values: dict[str, Json]
) -> None:
    found = resolve(goal, catalog)
    assert isinstance(found, Resolution), found
    assert found.operation == named
    assert {one.name: one.value for one in found.params} == values
    assert found.input == {name: f"{{{{params.{name}}}}}" for name in values}


# specs: E-7
def test_a_default_of_the_schema_fills_what_is_required() -> None:
    size: JsonObject = {"type": "integer", "default": 30}
    schema: JsonObject = {"type": "object", "properties": {"size": size}, "required": ["size"]}
    found = resolve("list orders", Catalog([Operation("list_orders", "", schema, {}, "read")]))
    assert isinstance(found, Resolution)
    assert found.input == {"size": 30}


# specs: E-7
@pytest.mark.parametrize(
    ("goal", "catalog", "kind", "told"),
    [
        (
            "create an issue in acme/web",
            ISSUES,
            "missing",
            "What is 'title' for 'create an issue in acme/web'?",
        ),
        (
            "list issues",
            Catalog([operation("jira.list_issues"), operation("github.list_issues")]),
            "which",
            "Which of 'github.list_issues', 'jira.list_issues' is meant",
        ),
        # The nearer operation is asked for its value, though another lacks none.
        (
            "compare sales",
            Catalog(
                [
                    operation("compare_sales", "first_year", summary="Compare sales of years."),
                    operation("query_sales", summary="Query sales."),
                ]
            ),
            "missing",
            "What is 'first_year'",
        ),
        (
            "list issues",
            Catalog([operation("list_issue_types")]),
            "none",
            "it is about 'type' too, which was not said",
        ),
        (
            "search trips on March 6th",
            TRIPS,
            "none",
            "'March 6th' is another value whenever it is asked",
        ),
        ("list issue", Catalog([operation("create_issue", effect="write")]), "none", ""),
        ("list stale issues in acme/web", ISSUES, "none", ""),
        ("list issues in acme/web 2024-03-11", ISSUES, "none", ""),
        ("delete issues in acme/web", ISSUES, "none", ""),
        ("list customers of Ann", FLIGHTS, "none", ""),
        ("list the orders of Boston", FLIGHTS, "none", ""),
        ("list orders for C17", FLIGHTS, "none", ""),
        ("get orders from 2024", FLIGHTS, "none", ""),
        ("delete order ORD-17", FLIGHTS, "none", ""),
        ("List Customers In Boston Please", FLIGHTS, "none", ""),
    ],
)
def test_a_step_that_would_lose_or_guess_something_is_a_question(
    goal: str, catalog: Catalog, kind: str, told: str
) -> None:
    found = resolve(goal, catalog)
    assert isinstance(found, Referral), found
    assert found.kind == kind
    assert told in found.question


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
