"""The modular planner, alone and as a part of SemCache."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, SemCache, Settings
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import ask_user
from semcache.errors import (
    InvalidParameter,
    InvalidPrompt,
    ModelUnavailable,
    NotActionable,
    OperationFailed,
    OperationRefused,
    PlanningError,
    Referred,
)
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.model.decomposer import GroundedDecomposer
from semcache.planners.split_identifier import PARTING
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.intents import serves
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.planners.steps.patterns import Patterns
from semcache.planners.steps.resolver import Composite, SuggestedResolver, WordResolver
from semcache.planners.transforms import TRANSFORMS
from semcache.plans.codec import check
from semcache.ports import PlanRequest
from semcache.testing import ScriptedModel
from tests.planners.conftest import Open
from tests.planners.github import GitHub

RESOLVER = Composite([BuiltinResolver(), SuggestedResolver(), WordResolver()])
ASK = "list issues in mandubian/ccos but ask me for the page size"


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
def catalog(github: GitHub) -> Catalog:
    return github.catalog.with_builtins([ask_user(), PARTING, *TRANSFORMS])


@pytest.fixture
def semcache(github: GitHub, open_semcache: Open) -> SemCache:
    return open_semcache(github.catalog)


def planner() -> ModularPlanner:
    return ModularPlanner(Patterns(), RESOLVER, rounds=0)


def steps(*told: JsonObject) -> str:
    return json.dumps({"steps": list(told)})


def call(description: str, tool: Json = None, **more: Json) -> JsonObject:
    return {"description": description, "intent_type": "api_call", "tool": tool, **more}


def test_the_plan_is_kept_and_asks_again_for_another_repository(
    semcache: SemCache, github: GitHub
) -> None:
    semcache.run(ASK, answers={"page size": 25})
    prompt = "list issues in acme/site but ask me for the page size"
    answer = semcache.run(prompt, answers={"page size": "7"})
    assert answer.tier == "template"
    assert github.calls[-1] == ("list_issues", {"owner": "acme", "repo": "site", "perPage": 7})
    with pytest.raises(InvalidParameter, match="'page size'"):
        semcache.run(prompt, answers={"page size": "101"})


# specs: E-11
def test_two_answers_of_a_person_feed_one_call(semcache: SemCache, github: GitHub) -> None:
    semcache.run(
        "list issues in mandubian/ccos but ask me for the page size and the labels",
        answers={"page size": "5", "labels": "bug"},
    )
    given: JsonObject = {"owner": "mandubian", "repo": "ccos", "perPage": 5, "labels": ["bug"]}
    assert github.calls == [("list_issues", given)]


# specs: E-12
def test_each_call_leads_back_to_its_intent_and_the_goal(semcache: SemCache) -> None:
    prompt = "list issues in acme/site and count them"
    graph = semcache.run(prompt).intents
    assert graph is not None
    assert [one.status for one in graph.nodes] == ["completed"] * 3
    assert graph.why("list_issues")[0].text == (
        "list_issues serves step1, 'list issues in acme/site'; needed by step2, 'count them'; "
        f"for the goal {prompt!r}"
    )
    assert graph.why("data.count")[0].nodes[-1] is graph.goal


def test_a_hit_has_the_intents_of_its_plan_under_its_own_goal(semcache: SemCache) -> None:
    first = semcache.run("list issues in acme/site and count them")
    assert semcache.intents(first.run.id) == first.intents
    hit = semcache.run("list issues in globex/docs-site and count them")
    assert (hit.tier, hit.planned) == ("template", False)
    assert hit.intents is not None
    assert hit.intents.goal.goal == "list issues in globex/docs-site and count them"
    assert [one.goal for one in hit.intents.steps] == ["list issues in <identifier>", "count them"]
    assert [one.status for one in hit.intents.nodes] == ["completed"] * 3
    assert semcache.intents("unknown") is None
    assert semcache.intents(first.run.id, tenant="other") is None


def test_a_step_waits_while_its_question_has_no_answer(semcache: SemCache) -> None:
    waiting = semcache.run(ASK)
    assert waiting.intents is not None
    assert waiting.needs is not None
    assert [one.status for one in waiting.intents.nodes] == ["suspended", "suspended", "resolved"]
    answered = semcache.answer(waiting.needs, {"page size": 3})
    assert answered.intents is not None
    assert [one.status for one in answered.intents.nodes] == ["completed"] * 3


def test_a_call_that_fails_fails_its_step_and_the_goal(semcache: SemCache, github: GitHub) -> None:
    github.broken.add("list_issues")
    with pytest.raises(OperationFailed, match="'list_issues' failed: OSError"):
        semcache.run("list issues in acme/site and count them")
    run = semcache.runs.latest()
    graph = semcache.intents(run.id) if run is not None else None
    assert graph is not None
    assert graph.goal.status == "failed"
    assert [(step.id, step.status) for step in graph.steps] == [
        ("step1", "failed"),
        ("step2", "resolved"),
    ]
    assert [name for name, _ in github.calls] == ["list_issues"]


# specs: E-10
def test_operations_found_after_opening_are_planned_with_in_any_number_of_steps(
    github: GitHub, open_semcache: Open
) -> None:
    semcache = open_semcache(Catalog([github.catalog.get("list_branches")]))
    with pytest.raises(PlanningError):
        semcache.run("list issues in acme/site and count them")
    semcache.catalog = github.catalog
    answer = semcache.run("list issues in acme/site and count them")
    again = semcache.run("list issues in globex/docs and count them")
    asked = semcache.run(ASK)
    assert (answer.value, answer.planned) == ({"answer": 3}, True)
    assert (again.value, again.planned) == ({"answer": 3}, False)
    assert asked.needs is not None


# specs: E-10
@pytest.mark.parametrize("steps_by_model", [False, True])
@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ("who should get the issues?", {"list_issues", "get_time", "list_labels_of_issues"}),
        ("what is new?", {"list_issues", "get_time", "list_channels", "list_labels_of_issues"}),
    ],
)
def test_a_model_sees_what_was_discovered_of_the_domains_of_a_goal_and_of_none(
    open_semcache: Open, prompt: str, seen: set[str], *, steps_by_model: bool
) -> None:
    names = ("list_issues", "list_channels", "get_time")
    catalog = Catalog(Operation(name, "", {"type": "object"}, effect="read") for name in names)
    found = Operation("list_labels_of_issues", "", {"type": "object"}, effect="read")
    settings = Settings(
        domains={"github": ("issue",), "slack": ("channel",)}, steps_by_model=steps_by_model
    )
    model = ScriptedModel(["no schema"] * 3 + [ModelUnavailable("gone")] * 9)
    semcache = open_semcache(catalog, settings=settings, model=model)
    semcache.catalog = catalog.with_(found)
    with pytest.raises(ModelUnavailable):
        semcache.run(prompt)
    told = model.calls[-1][0].content
    assert {name for name in (*names, found.name) if f'"{name}"' in told} == seen


# specs: E-13
@pytest.mark.parametrize("by_model", [False, True])
def test_planning_stops_at_the_steps_and_goes_on_in_another_process(
    github: GitHub, open_semcache: Open, *, by_model: bool
) -> None:
    prompt = "list issues in acme/site and count them"
    counted: JsonObject = {"intent_type": "data_transform", "action": "count", "depends_on": [0]}
    where: JsonObject = {
        "owner": {"value": "acme", "words": "acme"},
        "repo": {"value": "site", "words": "site"},
    }
    listed = call("list issues in acme/site", "list_issues", params=where)
    model = ScriptedModel([steps(listed, {"description": "count them", **counted})])
    first, other = (
        open_semcache(github.catalog, model=model if by_model else None) for _ in range(2)
    )
    told = json.dumps(first.decompose(prompt).to_json())
    planned = other.resume_planning(IntentGraph.from_json(json.loads(told)))
    other.store(prompt, planned)
    answer = other.run(prompt)
    assert (answer.value, answer.planned) == ({"answer": 3}, False)
    assert len(model.calls) == int(by_model)


# specs: E-3
def test_a_goal_that_no_pattern_understands_needs_a_model(semcache: SemCache) -> None:
    told = r"does not account for .*cannot be taken apart: .*'unless' joins"
    with pytest.raises(PlanningError, match=told):  # of every planner that refused, in order
        semcache.run("list issues in acme/site unless they are closed")


def test_an_empty_catalog_can_do_nothing() -> None:
    with pytest.raises(NotActionable, match="the catalog is empty"):
        planner().plan(PlanRequest("list issues", None, Catalog()))


# specs: E-3
def test_a_model_takes_apart_what_patterns_leave_and_the_plan_is_kept(
    github: GitHub, open_semcache: Open
) -> None:
    where: JsonObject = {
        "owner": {"value": "acme", "words": "acme"},
        "repo": {"value": "site", "words": "site"},
    }
    told = steps(
        call("List the issues", "list_issues", action="list", noun="issues", params=where),
        {
            "description": "Drop the closed issues",
            "intent_type": "data_transform",
            "action": "filter",
            "topic": "state OPEN",
            "depends_on": [0],
        },
    )
    model = ScriptedModel([*["no schema"] * 3, told])
    semcache = open_semcache(github.catalog, model=model, settings=Settings(steps_by_model=True))
    answer = semcache.run("list the issues that acme has in site, unless they are closed")
    assert isinstance(answer.value, dict)
    assert [row["number"] for row in answer.value["answer"]] == [3, 2]  # type: ignore[union-attr, index, call-overload]  # rows
    assert answer.intents is not None
    assert answer.intents.strategy == "grounded"


def test_a_repair_tells_the_model_what_was_wrong(catalog: Catalog) -> None:
    where: JsonObject = {"owner": "acme", "repo": "site"}
    bad = steps(call("List the issues", "list_issues", params={"owner": "acme"}))
    good = steps(call("List the issues", "list_issues", params=where))
    model = ScriptedModel([bad, good])
    planned = ModularPlanner(GroundedDecomposer(model), RESOLVER).plan(
        PlanRequest("issues of acme site please", None, catalog)
    )
    assert planned.plan.operations() == ("list_issues",)
    assert "What is 'repo'" in model.calls[1][1].content


def test_a_repair_is_bounded(catalog: Catalog) -> None:
    told = [steps(call(f"List them {i}", "list_issues")) for i in range(9)]
    model = ScriptedModel(told)
    with pytest.raises(Referred):
        ModularPlanner(GroundedDecomposer(model), RESOLVER).plan(
            PlanRequest("issues", None, catalog)
        )
    assert len(model.calls) == 3


def called(*names: str, **properties: Json) -> tuple[list[tuple[str, JsonObject]], Catalog]:
    """Return a catalog of operations that need these properties, and what was called of it."""
    calls: list[tuple[str, JsonObject]] = []
    given: JsonObject = {
        "type": "object", "properties": properties, "required": [*properties]
    }  # fmt: skip

    def made(name: str) -> Operation:
        return Operation(name, "", given, effect="read", call=lambda g: calls.append((name, g)))

    return calls, Catalog(map(made, names))


# specs: E-7
def test_a_question_that_must_be_put_takes_every_word_and_value_of_its_step(
    open_semcache: Open,
) -> None:
    calls, catalog = called("search_documents", question={"type": "string"})
    prompts = (
        "search documents about tea",
        "search documents about coffee",
        "search documents from 2024",
        "search documents from 2023",
        "search documents about Boston",
        "search documents from 2023",
    )
    semcache = open_semcache(catalog)
    for prompt in prompts:
        semcache.run(prompt)
    assert [given for _, given in calls] == [{"question": prompt} for prompt in prompts]


# specs: E-7
@pytest.mark.parametrize(
    "prompt",
    [
        "purge documents about tea",
        "search documents about it",
        "search documents to delete",
        "search orders about tea",
    ],
)
def test_a_question_takes_no_words_that_ask_for_something_else(
    open_semcache: Open, prompt: str
) -> None:
    calls, catalog = called("search_documents", "search", question={"type": "string"})
    semcache = open_semcache(catalog)
    with pytest.raises(PlanningError):
        semcache.run(prompt)
    assert calls == []


# specs: E-7
def test_an_operation_that_takes_the_values_goes_before_one_that_takes_any_words(
    open_semcache: Open,
) -> None:
    calls, catalog = called("search_documents", question={"type": "string"})
    _, other = called("find_documents", year={"type": "integer"})
    both = catalog.with_(other.get("find_documents"))
    answer = open_semcache(both).run("search documents of year 2024")
    assert answer.plan.operations() == ("find_documents",)
    assert calls == []


# specs: E-8
def test_own_operations_are_called_before_those_of_a_server_that_is_not_named(
    open_semcache: Open,
) -> None:
    calls, catalog = called("github.list_issues", "jira.list_issues", "list_issues")
    semcache = open_semcache(catalog)
    semcache.run("list issues")
    semcache.run("list github issues")
    assert [name for name, _ in calls] == ["list_issues", "github.list_issues"]


# specs: E-8
def test_a_step_for_which_a_model_finds_no_operation_is_not_guessed(catalog: Catalog) -> None:
    told = steps(call("List issues of acme/site", None, action="list", noun="issues"))
    made = ModularPlanner(GroundedDecomposer(ScriptedModel([told] * 3)), RESOLVER)
    with pytest.raises(NotActionable, match="no operation does it"):
        made.plan(PlanRequest("list issues of acme/site", None, catalog))


def test_a_plan_that_writes_runs_with_leave_and_not_without(
    semcache: SemCache, github: GitHub
) -> None:
    prompt = 'create issue "Broken link" in acme/site'
    with pytest.raises(OperationRefused, match="writes are not allowed"):
        semcache.run(prompt, allow_writes=False)
    assert github.calls == []
    semcache.run(prompt)
    assert github.calls == [
        ("create_issue", {"owner": "acme", "repo": "site", "title": "Broken link"})
    ]


def test_a_name_without_two_halves_is_refused_where_two_are_needed(semcache: SemCache) -> None:
    semcache.run("list issues in acme/site and count them")
    with pytest.raises((OperationRefused, OperationFailed, PlanningError)):
        semcache.run("list issues in acme/site/docs and count them")


def test_values_of_the_caller_are_used_by_name(semcache: SemCache, github: GitHub) -> None:
    semcache.run("list issues and count them", params={"owner": "acme", "repo": "site"})
    assert github.calls == [("list_issues", {"owner": "acme", "repo": "site"})]


@pytest.mark.parametrize("prompt", ["", "   ", "\0", "x" * 30_000])
def test_an_empty_or_endless_goal_is_refused_before_anything_is_asked(
    semcache: SemCache, prompt: str
) -> None:
    with pytest.raises(InvalidPrompt):
        semcache.run(prompt)


WORDS = st.lists(
    st.sampled_from(
        "list|get|create|issues|issue|branches|in acme/site|in mandubian/ccos|then|and|filter by|"
        "sort by|count them|keep the first 2|but ask me for|the page size|label bug|title|open|17|"
        "without|it|their|labels|,|by state|number".split("|")
    ),
    min_size=1,
    max_size=9,
)


@given(WORDS)
@settings(max_examples=60)
def test_any_words_become_a_valid_plan_or_a_typed_refusal(words: list[str]) -> None:
    catalog = GitHub().catalog.with_builtins([ask_user(), PARTING, *TRANSFORMS])
    prompt = " ".join(words)
    try:
        planned = planner().plan(PlanRequest(prompt, None, catalog))
    except PlanningError:
        return
    assert check(planned.plan, catalog) == ()
    for one in planned.params:
        assert one.mention is None or one.mention in prompt
    assert planned.intents is not None
    graph = IntentGraph.from_json(planned.intents)
    assert {node for one in graph.steps for node in one.plan_nodes} == set(serves(planned.plan))
