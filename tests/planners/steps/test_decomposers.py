"""Decomposition by models, and strategies one after the other."""

import json

import pytest

from semcache import Catalog, Operation, Parameter
from semcache.canonical import Json, JsonObject
from semcache.catalog.grounding import Grounded, Grounding
from semcache.errors import NotActionable
from semcache.events import ModelCalled
from semcache.planners.model.decomposer import GroundedDecomposer, Hybrid, IntentFirst
from semcache.planners.model.relevant import Relevant
from semcache.planners.steps.intents import Decomposer, Decomposition, Deferred
from semcache.planners.steps.patterns import Patterns
from semcache.ports import PlanRequest
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel

SCHEMA: JsonObject = {"type": "object", "properties": {"perPage": {"type": "integer"}}}
CATALOG = Catalog(
    [
        Operation("list_issues", "List the issues of a repository.", SCHEMA),
        Operation("list_channels", "List the channels of a workspace.", SCHEMA),
        Operation("get_time", "Get the time.", {"type": "object"}),
    ]
)
GOAL = "list issues in mandubian/ccos, five a page, unless they are closed"
DOMAINS = {"github": ["issue", "repository"], "slack": ["channel"]}


def request(prompt: str = GOAL, *params: Parameter, catalog: Catalog = CATALOG) -> PlanRequest:
    return PlanRequest(prompt, None, catalog, params)


def step(description: str, kind: str = "api_call", **fields: Json) -> JsonObject:
    return {"description": description, "intent_type": kind, **fields}


def answer(*steps: JsonObject) -> str:
    return json.dumps({"steps": list(steps)})


LIST = step(
    "List the issues",
    action="list",
    params={"repo": {"value": "mandubian/ccos", "words": "mandubian/ccos"}, "per_page": 5},
    tool="list_issues",
)
DROP = step("Drop the closed ones", "data_transform", action="filter", topic="closed")
DROP = {**DROP, "depends_on": [0], "tool": None}


def apart(found: Decomposition | Deferred) -> Decomposition:
    assert isinstance(found, Decomposition), found
    return found


def test_intent_first_takes_apart_what_a_model_says_and_sees_no_operation() -> None:
    model = ScriptedModel([f"<think>hm</think>\n```json\n{answer(LIST, DROP)}\n```"])
    found = apart(IntentFirst(model).decompose(request()))
    assert (found.strategy, found.confidence) == ("intent-first", 0.7)
    call, drop = found.intents
    assert (call.action, call.suggested) == ("list", None)
    assert call.params == (
        Parameter("repo", "mandubian/ccos", "mandubian/ccos"),
        Parameter("per_page", 5, "five"),
    )
    assert (drop.transform, drop.topic, drop.depends_on) == ("filter", "closed", ("step1",))
    assert not any("list_issues" in message.content for message in model.calls[0])


# specs: E-8
def test_grounded_names_the_operation_of_a_step_or_says_that_there_is_none() -> None:
    other = step("Mail them", action="send", tool=None, depends_on=[0])
    model = ScriptedModel([answer(LIST, other)])
    call, mail = apart(GroundedDecomposer(model).decompose(request())).intents
    assert (call.suggested, call.no_tool) == ("list_issues", False)
    assert (mail.suggested, mail.no_tool, mail.action) == (None, True, "other")


# specs: E-10
def test_of_a_large_catalog_grounded_sees_the_likeliest_of_the_goal_s_domains() -> None:
    others = (Operation(f"list_channels_{i}", "List channels.", SCHEMA) for i in range(300))
    model = ScriptedModel([answer(LIST)])
    relevant = Relevant(HashEmbedder(64), most=2, domains=DOMAINS)
    grounded = GroundedDecomposer(model, relevant=relevant)
    grounded.decompose(request("list the issues", catalog=Catalog([*CATALOG, *others])))
    said = model.calls[0][0].content
    assert "list_issues" in said
    assert "list_channels" not in said
    model = ScriptedModel([answer(LIST)])
    grounded = GroundedDecomposer(model, relevant=Relevant(HashEmbedder(64), most=2))
    grounded.decompose(request("list the issues", catalog=Catalog([*CATALOG, *others])))
    assert model.calls[0][0].content.count('"name"') == 2


def test_values_that_are_known_keep_their_names_and_words() -> None:
    known = Parameter("owner_repo", "mandubian/ccos", "mandubian/ccos")
    told = step("List", params={"ownerRepo": "x", "_internal": 1, "size": {"value": 9}})
    found = apart(IntentFirst(ScriptedModel([answer(told)])).decompose(request(GOAL, known)))
    assert found.intents[0].params == (known, Parameter("size", 9))


def test_words_that_do_not_stand_in_the_prompt_are_no_mention() -> None:
    told = step("List", params={"a": {"value": "x", "words": "nowhere"}, "b": {"other": 1}})
    found = apart(IntentFirst(ScriptedModel([answer(told)])).decompose(request()))
    assert found.intents[0].params == (Parameter("a", "x"), Parameter("b", {"other": 1}))


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("I would first list the issues.", "no JSON object was found"),
        ("{}", "`steps` is None"),
        ('{"steps": []}', "expected a list of at least one step"),
        ('{"steps": [3]}', "Step 0 is 3; expected an object"),
        (answer(step("x", "dance")), "Step 0 has the intent_type 'dance'; expected one of"),
        (answer(step("", "output")), "Step 0 has no `description`"),
        (answer(step("Ask", "user_input")), "Step 0 asks a person and has no `topic`"),
        (answer(step("x", params=[1])), "Step 0 has `params` [1]; expected an object"),
        (answer(step("x", depends_on=[4])), "depends on 4; expected positions from 0 to 0"),
        (answer(step("x", depends_on=True)), "depends on True"),
        (answer(step("x", depends_on=[0])), "step1 needs step1: a circle"),
        (
            answer(step("x", depends_on=[1]), step("y", depends_on=["0"])),
            "needs step1: a circle",
        ),
        (answer(*[step("x")] * 200), "`steps` has 200 steps; expected at most 50"),
        ('{"steps": [{"description": "x", "descr', "the JSON is broken"),
    ],
)
def test_what_is_wrong_with_an_answer_is_told_to_the_model_which_may_mend_it(
    said: str, complaint: str
) -> None:
    model = ScriptedModel([said, answer(LIST)])
    assert apart(IntentFirst(model).decompose(request())).intents[0].action == "list"
    assert complaint in model.calls[1][-1].content


def test_an_invented_operation_is_sent_back_with_the_names_near_it() -> None:
    model = ScriptedModel([answer({**LIST, "tool": "list_issue"}), answer(LIST)])
    (call,) = apart(GroundedDecomposer(model).decompose(request())).intents
    assert call.suggested == "list_issues"
    told = "no operation is named 'list_issue'; the catalog has: 'list_issues'"
    assert told in model.calls[1][-1].content


def test_a_model_that_never_says_anything_usable_is_asked_so_often_and_left() -> None:
    model = ScriptedModel(["I am sorry."] * 9)
    found = IntentFirst(model).decompose(request())
    assert isinstance(found, Deferred)
    assert found.why.startswith("no steps after 2 attempt(s): no JSON object was found")
    assert len(model.calls) == 2


def test_a_model_may_refuse() -> None:
    model = ScriptedModel(['{"not_actionable": "nobody can do that"}'])
    with pytest.raises(NotActionable, match="nobody can do that"):
        IntentFirst(model).decompose(request())


def test_what_failed_before_is_told_and_the_answer_to_it_is_not_taken_from_memory() -> None:
    model = ScriptedModel([answer(LIST)])
    failed = PlanRequest(GOAL, None, CATALOG, (), failure="perPage was missing")
    IntentFirst(model).decompose(failed)
    assert "perPage was missing" in model.calls[0][1].content


def test_each_call_is_reported_as_a_decomposition() -> None:
    observer = RecordingObserver()
    model = ScriptedModel(["no", answer(LIST)])
    IntentFirst(model, observer=observer, clock=FakeClock()).decompose(request())
    calls = [event for event in observer.events if isinstance(event, ModelCalled)]
    assert [(call.purpose, call.attempt) for call in calls] == [("decompose", 1), ("decompose", 2)]


def test_an_empty_catalog_grounds_nothing() -> None:
    found = GroundedDecomposer(ScriptedModel()).decompose(request(catalog=Catalog()))
    assert found == Deferred("grounded", "the catalog is empty: there is no operation to show")


def test_strategies_name_their_model_and_the_version_of_their_text() -> None:
    model = ScriptedModel(fingerprint="m")
    assert GroundedDecomposer(model).name == "grounded/m/decompose-2"
    assert Hybrid([Patterns(), IntentFirst(model)]).name == (
        "hybrid(patterns-1, intent-first/m/decompose-2)"
    )


# specs: E-3
def test_a_model_that_decomposes_is_not_asked_where_patterns_before_it_are_sure() -> None:
    model = ScriptedModel([answer(LIST)])
    found = apart(Hybrid([Patterns(), GroundedDecomposer(model)]).decompose(request("list issues")))
    assert (found.strategy, found.reasons) == ("pattern:simple_api", ())
    assert model.calls == []


# specs: E-3
def test_what_patterns_leave_goes_to_the_grounded_model_and_then_to_the_one_without() -> None:
    model = ScriptedModel([answer(LIST)])
    found = apart(Hybrid([Patterns(), GroundedDecomposer(model)]).decompose(request()))
    assert found.strategy == "grounded"
    assert found.reasons == (
        "patterns deferred: 'unless' joins or turns round more than a pattern understands",
    )
    model = ScriptedModel([answer(LIST)])
    strategies: list[Decomposer] = [Patterns(), GroundedDecomposer(model), IntentFirst(model)]
    found = apart(Hybrid(strategies).decompose(request(catalog=Catalog())))
    assert found.strategy == "intent-first"
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "patterns deferred",
        "grounded deferred",
    ]


# specs: E-3
def test_with_no_strategy_left_a_goal_is_deferred_with_every_reason() -> None:
    found = Hybrid([Patterns()]).decompose(request())
    assert isinstance(found, Deferred)
    assert found.why.startswith("patterns deferred: 'unless' joins")
    assert Hybrid([]).decompose(request()) == Deferred(
        "hybrid()", "there is no strategy; give it one"
    )


def test_where_the_domain_has_rules_a_model_is_told_them_and_patterns_leave_the_goal_to_it() -> (
    None
):
    rules = Grounding.from_json(
        {
            "name": "support",
            "domain": "shop.example",
            "version": "1",
            "use-cases": [
                {
                    "action": "List issues",
                    "params": {},
                    "capabilities": ["List the issues"],
                    "intent": "See them",
                }
            ],
            "constraints": ["Never list closed issues"],
        }
    )
    grounded = Grounded(rules, rules.use_cases[0], 1.0)
    asked = PlanRequest("list issues", None, CATALOG, grounding=grounded)
    found = Patterns().decompose(asked)
    assert isinstance(found, Deferred)
    assert found.why == "the domain has rules for this, which no pattern knows"
    model = ScriptedModel([answer(LIST)])
    assert (
        apart(Hybrid([Patterns(), GroundedDecomposer(model)]).decompose(asked)).strategy
        == "grounded"
    )
    assert "Never list closed issues" in model.calls[0][1].content
