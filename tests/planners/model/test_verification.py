"""Plans of a model beside the prompts that they are for."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from semcache import Catalog, Operation, Parameter, SemCache, Settings
from semcache.canonical import Json, JsonObject
from semcache.errors import PlanningError
from semcache.planners.arguments.effects import says_write
from semcache.planners.model.verification import doubts
from semcache.plans.codec import decode
from semcache.testing import ScriptedModel
from tests.calling import calling
from tests.planners.conftest import Open


def operation(name: str, summary: str, effect: Any, call: Any = None, **given: Json) -> Operation:
    schema: JsonObject = {"type": "object", "properties": {**given}, "additionalProperties": False}
    return Operation(name, summary, schema, effect=effect, call=call)


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def catalog(calls: list[str]) -> Catalog:
    def note(name: str) -> Callable[[JsonObject], Json]:
        def call(given: JsonObject) -> Json:
            calls.append(name)
            return [given]

        return call

    state: Json = {"enum": ["open", "closed"]}
    return Catalog([
        operation("list_issues", "List issues.", "read", note("list"), state=state, limit={}),
        operation("delete_issue", "Delete an issue.", "write", note("delete"), number={}),
        operation("update_issue", "Change it.", "write", note("update"), number={}, state=state),
    ])  # fmt: skip


def steps(*told: JsonObject) -> str:
    return json.dumps({"steps": list(told)})


def call_step(tool: str, description: str, **params: Json) -> JsonObject:
    return {
        "description": description,
        "intent_type": "api_call",
        "action": tool.partition("_")[0],
        "noun": "issue",
        "depends_on": [],
        "tool": tool,
        "params": params,
    }


Opened = Callable[..., tuple[SemCache, ScriptedModel]]


@pytest.fixture
def opened(open_semcache: Open, catalog: Catalog) -> Opened:
    """Open a SemCache over the catalog with a model that replies, and return both."""

    def opened(*replies: str, **settings: Any) -> tuple[SemCache, ScriptedModel]:
        model = ScriptedModel(list(replies))
        return open_semcache(catalog, model=model, settings=Settings(**settings)), model

    return opened


UNKNOWN = json.dumps({"action": "local", "entities": ["issue"], "unexplained": ["work"]})


@pytest.mark.parametrize("by_steps", [True, False])
def test_a_write_that_the_prompt_does_not_say_is_never_run(
    opened: Opened, calls: list[str], *, by_steps: bool
) -> None:
    told = steps(call_step("delete_issue", "delete issue 1", number=1))
    wrong = json.dumps(calling("delete_issue", number=1))
    replies = [UNKNOWN, *([told] * 2 if by_steps else []), *[wrong] * 3]
    semcache, _ = opened(*replies, steps_by_model=by_steps)
    with pytest.raises(PlanningError, match="does not ask for that change"):
        semcache.run("work through the issues")
    assert semcache.cache.stats().entries == 0
    assert calls == []


def test_a_model_that_is_told_what_it_may_not_do_mends_its_plan(
    opened: Opened, calls: list[str]
) -> None:
    wrong, right = calling("delete_issue", number=1), calling("list_issues", state="open")
    semcache, model = opened(UNKNOWN, json.dumps(wrong), json.dumps(right), steps_by_model=False)
    assert semcache.run("work through the issues").planned
    assert calls == ["list"]
    assert "'delete_issue' changes something" in model.calls[-1][-1].content


@pytest.mark.parametrize(
    ("prompt", "given", "told"),
    [
        ("issues that are not closed", {"state": "closed"}, "excludes 'closed'"),
        ("issues except closed ones", {"state": "closed"}, "excludes 'closed'"),
        ('issues called "login fails"', {"state": "open"}, "says '\"login fails\"'"),
        ("the newest 7 issues", {"state": "open"}, "says '7'"),
        ("the closed issues", {"limit": 5}, "says 'closed'"),
    ],
)
def test_what_a_plan_turns_round_or_drops_is_grave(
    catalog: Catalog, prompt: str, given: dict[str, Json], told: str
) -> None:
    catalog = Catalog(list(catalog), closed={"state": ["open", "closed"]})
    found = doubts(prompt, decode(calling("list_issues", **given)), catalog)
    assert told in found.grave[0]


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        ("issues that are not closed", {"state": "open"}),
        ("issues that are not closed", {"filters": [{"operator": "!=", "value": "closed"}]}),
        ("issues that are not closed", {"exclude_state": "closed"}),
        ("the newest 7 issues", {"limit": 7}),
        ("the newest seven issues", {"limit": 7}),
        ("the newest issue", {"limit": 1}),
        ("issues over $1,250", {"amount": "1250"}),
    ],
)
def test_a_plan_that_says_what_its_prompt_says_raises_no_doubt(
    catalog: Catalog, prompt: str, given: dict[str, Json]
) -> None:
    found = doubts(prompt, decode(calling("list_issues", **given)), catalog)
    assert (found.grave, found.light) == ((), ())


def test_a_value_in_the_place_of_a_parameter_is_turned_round_too(catalog: Catalog) -> None:
    plan = decode(calling("list_issues", state="{{params.state}}"))
    for said in ("closed", "acme/site", "in review"):
        held = [Parameter("state", said, said)]
        found = doubts(f"issues that are not {said}", plan, catalog, held)
        assert f"the request excludes {said!r}, and the plan asks for it" in found.grave


def test_a_figure_that_nobody_said_is_grave_in_a_plan_that_writes(catalog: Catalog) -> None:
    read = doubts("list issues", decode(calling("list_issues", limit=50)), catalog)
    write = doubts("delete the issue", decode(calling("delete_issue", number=50)), catalog)
    assert (read.grave, len(read.light)) == ((), 1)
    assert "50" in write.grave[0]


@pytest.mark.parametrize(
    ("prompt", "name", "says"),
    [
        ("delete issue 1", "delete_issue", True),
        ("please remove issue 1", "delete_issue", True),
        ("nuke issue 1", "delete_issue", True),
        ("close issue 7", "update_issue", True),
        ("can you delete issue 1?", "delete_issue", True),
        ("can I delete issue 1?", "delete_issue", False),
        ("do not delete issue 1", "delete_issue", False),
        ("list the deleted issues", "delete_issue", False),
        ("work through the issues", "update_issue", False),
        ("show the issues", "update_issue", False),
    ],
)
def test_the_verb_of_a_prompt_says_which_writes_it_asks_for(
    catalog: Catalog, prompt: str, name: str, *, says: bool
) -> None:
    catalog = Catalog(list(catalog), synonyms={"nuke": "delete"})
    assert says_write(prompt, catalog.get(name), catalog) is says


def test_a_word_that_the_steps_of_a_model_lose_is_told_and_mended(
    opened: Opened, calls: list[str]
) -> None:
    lost = steps(call_step("list_issues", "list the issues"))
    kept = steps(call_step("list_issues", "list the closed issues", state="closed"))
    unread = UNKNOWN.replace("work", "closed")
    semcache, model = opened(unread, lost, kept, steps_by_model=True)
    answer = semcache.run("of the issues which ones are closed")
    assert answer.value == {"answer": [{"state": "closed"}]}
    assert "no step speaks of 'closed'" in model.calls[2][-1].content
    assert calls == ["list"]


def test_words_that_the_steps_of_a_model_go_on_losing_refuse_the_plan(
    opened: Opened, calls: list[str]
) -> None:
    """A step that has them in its description alone does not keep them."""
    bare = steps(call_step("list_issues", "list the issues that are urgent"))
    shown = steps(
        call_step("list_issues", "list the issues"),
        {"description": "show the urgent ones", "intent_type": "output", "depends_on": [0]},
    )
    cannot = json.dumps({"not_actionable": "nothing here knows what is urgent"})
    semcache, model = opened(UNKNOWN, bare, shown, cannot, steps_by_model=True)
    with pytest.raises(PlanningError, match="no step speaks of 'urgent'"):
        semcache.run("which of the issues are urgent")
    assert semcache.cache.stats().entries == 0
    assert "no step speaks of 'urgent'" in model.calls[2][-1].content
    assert calls == []
