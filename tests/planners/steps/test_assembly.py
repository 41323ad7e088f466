"""Steps and their operations become a plan that passes the checks, runs, and can be cached."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, SemCache
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject
from semcache.errors import PlanningError, Referred
from semcache.planners.steps.assembly import assemble
from semcache.planners.steps.intents import SubIntent, serves
from semcache.planners.steps.resolution import Resolution
from semcache.plans.codec import check
from semcache.testing import HashEmbedder
from tests.planners.conftest import Open

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
ISSUES: list[Json] = [
    {"number": 1, "title": "a", "label": "bug", "author": "ann"},
    {"number": 2, "title": "b", "label": "docs", "author": "bob"},
    {"number": 3, "title": "c", "label": "bug", "author": "ann"},
]
FIELDS: JsonObject = {"number": NUMBER, "title": TEXT, "label": TEXT, "author": TEXT}
LISTED: JsonObject = {"type": "array", "items": {"type": "object", "properties": FIELDS}}


def schema(*required: str, **properties: Json) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def list_issues(given: JsonObject) -> Json:
    size = given.get("perPage")
    return ISSUES[: size if isinstance(size, int) else None]


def one_issue(number: Json) -> JsonObject:
    return {"number": number, "body": f"text {number}"}


CATALOG = Catalog(
    [
        Operation(
            "list_issues",
            "List issues.",
            schema("repository", repository=TEXT, perPage=NUMBER, page=NUMBER, labels=TEXT),
            LISTED,
            "read",
            list_issues,
        ),
        Operation(
            "get_issue",
            "Get an issue.",
            schema("issue_number", issue_number=NUMBER),
            schema(number=NUMBER, body=TEXT),
            "read",
            lambda given: one_issue(given["issue_number"]),
        ),
        Operation("ping", "Ping.", schema(), {}, "read", lambda _: "$.pong"),
        Operation("show_count", "", schema("size", size=NUMBER), {}, "read", lambda g: g["size"]),
        Operation("guess_count", "", schema(), {}, "read", lambda _: "7"),
    ]
)


@pytest.fixture
def semcache(open_semcache: Open) -> SemCache:
    return open_semcache(CATALOG)


def test_asking_for_the_page_size_becomes_a_question_and_a_call_with_the_answer(
    semcache: SemCache,
) -> None:
    # specs: E-1, E-5, E-12
    prompt = "list issues in mandubian/ccos but ask me for the page size"
    planned = semcache.create(prompt)
    assert planned.planner == "modular 1/pattern:action_with_user_input"
    assert check(planned.plan, semcache.catalog) == ()
    body = planned.plan.to_dict()
    assert body["step1"] == {
        "operation": "ask_user",
        "input": {"topic": "page size", "operation": "list_issues", "input": "perPage"},
        "route": "step2",
        "intent": "step1",
    }
    assert body["step2"] == {
        "operation": "list_issues",
        "input": {"repository": "{{params.repository}}", "perPage": "$.step1"},
        "route": "end",
        "intent": "step2",
    }
    assert serves(planned.plan) == {"step1": "step1", "step2": "step2"}
    assert semcache.run(prompt, answers={"page size": 2}).value == {"answer": ISSUES[:2]}


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("list issues in acme/web and filter by label bug", [ISSUES[0], ISSUES[2]]),
        ("list issues in acme/web then sort by title descending", ISSUES[::-1]),
        ("list issues in acme/web and count them", 3),
        (
            "list issues in acme/web and count by author",
            [{"author": "ann", "count": 2}, {"author": "bob", "count": 1}],
        ),
        ("list issues in acme/web and filter by number over 1", ISSUES[1:]),
        ("list issues in acme/web and keep the first 2", ISSUES[:2]),
        ("list issues in acme/web and sum number", 6),
        ("list issues in acme/web and filter by label bug and then count them", 2),
        # A list that meets a call for one of it becomes a loop.
        ("list issues in acme/web then get issue", [*map(one_issue, (1, 2, 3))]),
        ("list issues in acme/web then get issue, and count them", 3),
        # Two values of one name are told apart.
        (
            "get issue 4 and then get issue 9",
            {"step1": one_issue(4), "step2": one_issue(9)},
        ),
    ],
)
def test_steps_run_on_what_the_steps_before_gave(
    semcache: SemCache, prompt: str, answer: Json
) -> None:
    # specs: E-2, E-12
    ran = semcache.run(prompt)
    assert check(ran.plan, semcache.catalog) == ()
    assert ran.value == {"answer": answer}


def test_a_value_of_unknown_type_is_converted_for_the_step_that_wants_a_number(
    semcache: SemCache,
) -> None:
    # specs: E-6
    answer = semcache.run("guess count then show count")
    assert answer.plan.operations() == ("data.convert", "guess_count", "show_count")
    assert answer.value == {"answer": 7}
    assert set(serves(answer.plan).values()) == {"step1", "step2"}


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        ("filter by label", "What must 'label' be"),
        ("sort by votes", "Which field is meant by 'votes'"),
        ("group by colour", "Which field is meant by 'colour'"),
        ("aggregate number", "How are the numbers to be put together"),
    ],
)
def test_a_transform_that_says_too_little_is_a_question(
    semcache: SemCache, transform: str, told: str
) -> None:
    with pytest.raises(PlanningError, match=told) as raised:
        semcache.run(f"list issues in acme/web and {transform}")
    assert isinstance(raised.value, Referred) == told.endswith(("be", "'", "together"))


def test_a_literal_of_a_schema_is_never_read_as_an_expression() -> None:
    intent = SubIntent(id="a", goal="list issues", kind="api_call")
    found = Resolution(intent="a", operation="list_issues", input={"repository": "$.step9"})
    made = assemble([intent], {"a": found}, CATALOG)
    assert [one.target for one in made.plan.references()] == ["a"]  # the answer alone


def test_what_cannot_be_a_plan_is_an_error_that_says_why() -> None:
    one = SubIntent(id="c", goal="x", kind="api_call")
    with pytest.raises(PlanningError, match="no operation for 'c'"):
        assemble([one], {}, CATALOG)
    lacking = {"c": Resolution(intent="c", operation="get_issue")}
    with pytest.raises(PlanningError, match="'issue_number' is a required property"):
        assemble([one], lacking, CATALOG)


def test_an_output_step_says_what_the_answer_is() -> None:
    intents = [
        SubIntent(id="a", goal="ping", kind="api_call"),
        SubIntent(id="b", goal="ping", kind="api_call"),
        SubIntent(id="c", goal="show it", kind="output", depends_on=("a",)),
    ]
    found = {one: Resolution(intent=one, operation="ping") for one in "ab"}
    found["c"] = Resolution(intent="c", operation="")
    end = assemble(intents, found, CATALOG).plan.to_dict()["end"]
    assert end == {"completed": True, "vars": {"answer": "$.a"}}


CHAINS = st.lists(
    st.sampled_from(
        [
            "filter by label bug",
            "filter by number over 1",
            "sort by title descending",
            "keep the first 2",
            "count by author",
            "count them",
        ]
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def chained() -> Iterator[SemCache]:
    with SemCache.open(catalog=CATALOG, embedder=HashEmbedder()) as semcache:
        yield semcache


@given(CHAINS, st.sampled_from(["acme/web", "mandubian/ccos"]), st.integers(1, 99))
@settings(max_examples=40)
def test_every_chain_passes_the_checks_and_binds_to_the_plan_with_its_values(
    chained: SemCache, chain: list[str], repository: str, page: int
) -> None:
    try:
        made = chained.create(
            " then ".join([f"list issues in {repository} on page {page}", *chain])
        )
    except PlanningError:
        return  # such as filtering what was counted
    assert check(made.plan, chained.catalog) == ()
    template = generalize(made.plan.to_dict(), made.params)
    filled = bind(template, {one.name: one.value for one in made.params}).plan
    values = {f"{{{{params.{one.name}}}}}": one.value for one in made.params}
    wanted = made.plan.to_dict()
    for node in wanted.values():
        given_input = node.get("input") if isinstance(node, dict) else None
        if isinstance(given_input, dict):
            given_input.update(
                {k: values[v] for k, v in given_input.items() if isinstance(v, str) and v in values}
            )
    assert filled == wanted
