"""Steps and their operations become a plan that passes the checks, runs, and can be cached."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Hit, Operation, PlanCache
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import ASK_USER, ask_user
from semcache.errors import PlanningError
from semcache.execution.routes import RoutesEngine
from semcache.planners.steps.assembly import Assembled, assemble
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.intents import Decomposition, Deferred, SubIntent, serves
from semcache.planners.steps.patterns import Patterns
from semcache.planners.steps.resolution import Referral, Resolution, ResolutionContext
from semcache.planners.steps.resolver import Composite, WordResolver
from semcache.planners.transforms import TRANSFORMS
from semcache.plans.checks import check
from semcache.plans.plan import ExecutionPlan
from semcache.plans.routes.document import RoutePlan
from semcache.ports import Limits, PlanRequest
from semcache.testing import FakeClock, HashEmbedder

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


def get_issue(given: JsonObject) -> Json:
    return {"number": given["issue_number"], "body": f"text {given['issue_number']}"}


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
            get_issue,
        ),
        Operation("ping", "Ping.", schema(), {}, "read", lambda _: "$.pong"),
        Operation("show_count", "", schema("size", size=NUMBER), {}, "read", lambda g: g["size"]),
        Operation("guess_count", "", schema(), {}, "read", lambda _: "7"),
    ]
).with_builtins([*TRANSFORMS, ask_user()])
RESOLVER = Composite([BuiltinResolver(), WordResolver()])


def decomposed(prompt: str) -> Sequence[SubIntent]:
    found = Patterns().decompose(PlanRequest(prompt, None, CATALOG))
    assert not isinstance(found, Deferred), found
    assert isinstance(found, Decomposition)
    return found.intents


def resolved(intents: Sequence[SubIntent], prompt: str) -> dict[str, Resolution]:
    before: dict[str, Resolution] = {}
    for intent in intents:
        found = RESOLVER.resolve(
            intent, ResolutionContext(prompt=prompt, catalog=CATALOG, before=before)
        )
        assert isinstance(found, Resolution), found
        before[intent.id] = found
    return before


def planned(prompt: str) -> Assembled:
    intents = decomposed(prompt)
    return assemble(intents, resolved(intents, prompt), CATALOG)


def run(plan: ExecutionPlan, **answers: Json) -> Json:
    catalog = CATALOG.with_calls({ASK_USER: lambda given: answers[str(given["topic"])]})
    outcome = RoutesEngine().execute(
        plan, catalog=catalog, limits=Limits(), clock=FakeClock(), observer=lambda _: None
    )
    value = outcome.value
    return value["answer"] if isinstance(value, dict) else value


def bound(made: Assembled) -> ExecutionPlan:
    cache = PlanCache.open(embedder=HashEmbedder(), catalog=CATALOG)
    text = " ".join(one.mention or "" for one in made.params) or "nothing"
    cache.store(text, made.plan, params=made.params)
    found = cache.lookup(text, params={one.name: one.value for one in made.params})
    assert isinstance(found, Hit), found.explain()
    return found.plan


def test_asking_for_the_page_size_becomes_a_question_and_a_call_with_the_answer() -> None:
    # specs: E-1, E-5, E-12
    made = planned("list issues in mandubian/ccos but ask me for the page size")
    body = made.plan.to_dict()
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
    assert run(bound(made), **{"page size": 2}) == ISSUES[:2]
    assert made.serves == serves(made.plan) == {"step1": "step1", "step2": "step2"}


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
    ],
)
def test_transforms_run_on_what_the_call_gave(prompt: str, answer: Json) -> None:
    # specs: E-2, E-12
    made = planned(prompt)
    assert check(made.plan, CATALOG) == ()
    assert run(bound(made)) == answer


def test_a_list_meets_a_call_for_one_of_it_and_becomes_a_loop() -> None:
    intents = [
        SubIntent(id="a", goal="list issues", kind="api_call"),
        SubIntent(id="b", goal="get issue", kind="api_call", depends_on=("a",), action="get"),
        SubIntent(id="c", goal="count them", kind="data_transform", transform="count",
                  depends_on=("b",)),
    ]  # fmt: skip
    found = {"a": Resolution(intent="a", operation="list_issues", input={"repository": "r"})}
    for intent in intents[1:]:
        made = RESOLVER.resolve(intent, ResolutionContext(prompt="", catalog=CATALOG, before=found))
        assert isinstance(made, Resolution), made
        found[intent.id] = made
    assert run(assemble(intents[:2], found, CATALOG).plan) == [
        get_issue({"issue_number": number}) for number in (1, 2, 3)
    ]
    assert run(assemble(intents, found, CATALOG).plan) == 3


def test_a_value_of_unknown_type_is_converted_for_the_step_that_wants_a_number() -> None:
    # specs: E-6
    made = planned("guess count then show count")
    assert made.plan.operations() == ("data.convert", "guess_count", "show_count")
    assert run(made.plan) == 7
    assert set(made.serves.values()) == {"step1", "step2"}


def test_two_steps_with_a_value_of_one_name_keep_both() -> None:
    made = planned("get issue 4 and then get issue 9")
    assert sorted(str(one.value) for one in made.params) == ["4", "9"]
    assert run(bound(made)) == {
        "step1": get_issue({"issue_number": 4}),
        "step2": get_issue({"issue_number": 9}),
    }


def test_a_literal_of_a_schema_is_never_read_as_an_expression() -> None:
    intent = SubIntent(id="a", goal="list issues", kind="api_call")
    found = Resolution(intent="a", operation="list_issues", input={"repository": "$.step9"})
    made = assemble([intent], {"a": found}, CATALOG)
    assert [one.target for one in made.plan.references()] == ["a"]  # the answer alone


def test_what_cannot_be_a_plan_is_an_error_that_says_why() -> None:
    with pytest.raises(PlanningError, match="no operation for 'b'"):
        assemble([SubIntent(id="b", goal="ping", kind="api_call")], {}, CATALOG)
    with pytest.raises(PlanningError, match="any step"):
        assemble([], {}, CATALOG)
    lacking = {"c": Resolution(intent="c", operation="get_issue")}
    with pytest.raises(PlanningError, match="'issue_number' is a required property"):
        assemble([SubIntent(id="c", goal="x", kind="api_call")], lacking, CATALOG)


@pytest.mark.parametrize(
    ("transform", "topic", "kind"),
    [
        ("filter", "label", "missing"),
        ("sort", "votes", "which"),
        ("group", "colour", "which"),
        ("aggregate", "number", "which"),
        ("limit", "some", "none"),
        ("format", "a table", "none"),
    ],
)
def test_a_transform_that_says_too_little_is_a_question(
    transform: str, topic: str, kind: str
) -> None:
    intent = SubIntent(
        id="b",
        goal=f"{transform} by {topic}",
        kind="data_transform",
        transform=transform,  # type: ignore[arg-type]  # one of its literals
        topic=topic,
        depends_on=("a",),
    )
    before = {"a": Resolution(intent="a", operation="list_issues")}
    found = BuiltinResolver().resolve(
        intent, ResolutionContext(prompt="", catalog=CATALOG, before=before)
    )
    assert isinstance(found, Referral)
    assert found.kind == kind


def test_an_output_step_says_what_the_answer_is() -> None:
    intents = [
        SubIntent(id="a", goal="ping", kind="api_call"),
        SubIntent(id="b", goal="list issues", kind="api_call"),
        SubIntent(id="c", goal="show it", kind="output", depends_on=("a",)),
    ]
    found = {
        "a": Resolution(intent="a", operation="ping"),
        "b": Resolution(intent="b", operation="list_issues", input={"repository": "r"}),
        "c": Resolution(intent="c", operation=""),
    }
    plan = assemble(intents, found, CATALOG).plan
    assert isinstance(plan, RoutePlan)
    assert run(plan) == "$.pong"


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


@given(CHAINS, st.sampled_from(["acme/web", "mandubian/ccos"]), st.integers(1, 99))
@settings(max_examples=40)
def test_every_chain_passes_the_checks_and_binds_to_the_plan_with_its_values(
    chain: list[str], repository: str, page: int
) -> None:
    prompt = " then ".join([f"list issues in {repository} on page {page}", *chain])
    intents = decomposed(prompt)
    before: dict[str, Resolution] = {}
    for intent in intents:
        found = RESOLVER.resolve(
            intent, ResolutionContext(prompt=prompt, catalog=CATALOG, before=before)
        )
        if not isinstance(found, Resolution):
            return  # such as filtering what was counted
        before[intent.id] = found
    made = assemble(intents, before, CATALOG)
    assert check(made.plan, CATALOG) == ()
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
