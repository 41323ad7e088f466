"""Plans as people have them: tool calls, messages, lists; stored as they are, served rebound."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.errors import InvalidInput, InvalidPlan
from semcache.testing import FakeClock, HashEmbedder

FIRST, SECOND = "Where is order ORD-17?", "Where is order ORD-99?"


def arguments(order: str) -> str:
    """Return the arguments of a call as a model writes them."""
    return f'{{"order_id":"{order}","fields":["eta"]}}'


def openai(order: str) -> Any:
    function = {"name": "track", "arguments": arguments(order)}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def anthropic(order: str) -> Any:
    use = {"type": "tool_use", "id": "toolu_1", "name": "track", "input": {"order_id": order}}
    return {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, use]}


def langchain(order: str) -> Any:
    call = {"name": "track", "args": {"order_id": order}, "id": "1", "type": "tool_call"}
    return [{"type": "ai", "data": {"content": "", "tool_calls": [call]}}]


def calls(order: str) -> Any:
    return [{"name": "track", "arguments": {"order_id": order}}, {"name": "reply", "arguments": {}}]


def address(order: str) -> Any:
    return {"method": "GET", "url": f"https://shop.example/v1/orders/{order}?expand=eta"}


def sql(order: str) -> Any:
    return {"sql": "SELECT eta FROM orders WHERE order_id = 'ORD' LIMIT 1".replace("ORD", order)}


Make = Callable[[str], Any]
SHAPES: list[Make] = [openai, anthropic, langchain, calls, address, sql]


@pytest.fixture
def cache() -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        yield cache


def served(cache: PlanCache, prompt: str) -> Any:
    found = cache.lookup(prompt)
    assert isinstance(found, Hit), found.explain()
    return found.plan.to_dict()


@pytest.mark.parametrize("make", SHAPES)
def test_a_plan_as_people_have_it_is_served_with_the_prompts_own_value(
    cache: PlanCache, make: Make
) -> None:
    stored = cache.store(FIRST, make("ORD-17"))
    assert (stored.reason, list(stored.bound)) == ("", ["order_id"])
    assert served(cache, SECOND) == make("ORD-99")
    assert served(cache, FIRST) == make("ORD-17")


@pytest.mark.parametrize(
    ("make", "tools"), [(openai, 1), (anthropic, 1), (langchain, 1), (calls, 2), (sql, 0)]
)
def test_tool_calls_are_invalidated_by_the_tool_that_they_call(
    cache: PlanCache, make: Make, tools: int
) -> None:
    cache.store(FIRST, make("ORD-17"))
    assert cache.invalidate(operation="ORD-17") == 0
    assert cache.invalidate(operation="track") == min(tools, 1)
    assert bool(cache.lookup(FIRST)) is (tools == 0)


@pytest.mark.parametrize(
    ("tool", "writes"),
    [
        ({"name": "track", "annotations": {"readOnlyHint": True}}, False),
        ({"name": "track", "annotations": {"read_only_hint": True}}, False),
        ({"name": "track"}, True),
        ({"name": "other", "annotations": {"readOnlyHint": True}}, True),
    ],
)
def test_a_tool_call_writes_unless_its_tool_is_known_to_read(
    cache: PlanCache, tool: dict[str, object], *, writes: bool
) -> None:
    cache.store(FIRST, openai("ORD-17"), tools=[{"inputSchema": {}, **tool}])
    assert [entry.writes for entry in cache.entries()] == [writes]


@dataclass
class Dumped:
    """A stand-in for a pydantic model of an SDK, which dumps what it holds."""

    value: Any

    def model_dump(self, *, mode: str) -> Any:
        """Return the plain value, as pydantic does."""
        assert mode == "json"
        return self.value


def test_models_of_an_sdk_are_stored_as_they_come(cache: PlanCache) -> None:
    message = openai("ORD-17")
    cache.store(FIRST, [Dumped(call) for call in message["tool_calls"]])
    assert served(cache, SECOND) == openai("ORD-99")["tool_calls"]


@pytest.mark.parametrize("plan", [[], [1, 2], [{}], ["SELECT 1"], "SELECT 1 FROM t"])
def test_what_is_no_object_and_no_list_of_objects_is_refused(cache: PlanCache, plan: Any) -> None:
    with pytest.raises(InvalidPlan):
        cache.store(FIRST, plan)
    assert not cache.lookup(FIRST)


# ── parameters that nobody gave ──────────────────────────────────────────────────────────────────


def test_names_that_the_prompt_says_are_parameters_without_being_named(cache: PlanCache) -> None:
    stored = cache.store("Send 250 EUR to Ada Lovelace", {"pay": {"to": "Ada Lovelace"}})
    assert stored.bound == {"to": ("/pay/to",)}


@pytest.mark.parametrize(
    ("prompt", "plan"),
    [
        ("Delete the report", {"mode": "delete", "what": "report"}),
        ("Send it to Adam", {"to": "Ada"}),
        ("Ship order #1234-B", {"limit": 1234}),
        ("Is it true?", {"value": True}),
    ],
)
def test_plain_words_and_pieces_of_words_are_no_parameters(
    cache: PlanCache, prompt: str, plan: Any
) -> None:
    assert cache.store(prompt, plan).bound == {}


def test_parameters_given_as_none_at_all_are_not_taken_from_the_plan(cache: PlanCache) -> None:
    stored = cache.store("Call Ada Lovelace", {"to": "Ada Lovelace"}, params=())
    assert stored.bound == {}


# ── what was bound and what was not ──────────────────────────────────────────────────────────────


def test_what_is_pinned_is_told_with_its_reason(cache: PlanCache) -> None:
    plan = {"year": 2024, "previous": 2023, "region": "West"}
    stored = cache.store("growth in 2024 in the West", plan, params={"year": 2024})
    assert stored.bound["year"] == ("/year",)
    assert stored.pinned == {"year": "2024: a constant of the plan may follow from it"}
    assert stored.reason == "serves only year = 2024: a constant of the plan may follow from it"


# ── volatile fields ──────────────────────────────────────────────────────────────────────────────


def test_ignored_fields_are_neither_served_nor_compared() -> None:
    with PlanCache.open(embedder=HashEmbedder(), ignore=["/tool_calls/*/id", "thought"]) as cache:
        plan = openai("ORD-17")
        plan["tool_calls"][0]["function"]["arguments"] = '{"thought":"hm","order_id":"ORD-17"}'
        cache.store(FIRST, plan)
        (call,) = served(cache, SECOND)["tool_calls"]
        assert call == {
            "type": "function",
            "function": {"name": "track", "arguments": '{"order_id":"ORD-99"}'},
        }
        again = openai("ORD-99")
        again["tool_calls"][0] |= {"id": "call_2", "function": call["function"]}
        hit = cache.lookup(SECOND)
        assert isinstance(hit, Hit)
        assert cache.audit(hit, again)


def test_an_ignored_item_of_a_list_leaves_the_others_in_their_places() -> None:
    with PlanCache.open(embedder=HashEmbedder(), ignore=lambda path: path == "/a/0") as cache:
        cache.store("a prompt of words", {"a": ["x", "y"]})
        assert served(cache, "a prompt of words") == {"a": [None, "y"]}


def test_fields_can_be_ignored_for_one_plan(cache: PlanCache) -> None:
    cache.store(FIRST, {"order_id": "ORD-17", "deep": {"seed": 4}}, ignore=["/**/seed"])
    assert served(cache, SECOND) == {"order_id": "ORD-99", "deep": {}}


@pytest.mark.parametrize("ignore", ["/a", [""], [1]])
def test_what_names_no_fields_is_told(ignore: Any) -> None:
    with pytest.raises(InvalidInput, match="ignore"):
        PlanCache.open(embedder=HashEmbedder(), ignore=ignore)


# ── dates that the caller worked out ─────────────────────────────────────────────────────────────


def test_a_date_given_for_tomorrow_is_another_one_on_another_day() -> None:
    clock = FakeClock()
    today = datetime.fromtimestamp(clock.now(), UTC).date()
    plan = {"op": "agenda", "date": (today + timedelta(days=1)).isoformat()}
    with PlanCache.open(embedder=HashEmbedder(), clock=clock) as cache:
        cache.store("my agenda of tomorrow", plan, params={"date": plan["date"]})
        clock.advance(3 * 86_400)
        assert served(cache, "my agenda of tomorrow")["date"] == str(today + timedelta(days=4))
        assert served(cache, "my agenda of yesterday")["date"] == str(today + timedelta(days=2))
        given = cache.lookup("my agenda of tomorrow", params={"date": "2030-01-01"})
        assert isinstance(given, Hit)
        assert given.plan.to_dict()["date"] == "2030-01-01"


def test_a_parameter_with_words_of_its_own_keeps_them(cache: PlanCache) -> None:
    params = [Parameter("city", "Reno", mention="the biggest little city")]
    stored = cache.store("hotels in the biggest little city", {"city": "Reno"}, params=params)
    assert json.dumps(stored.bound) == '{"city": ["/city"]}'


@pytest.mark.parametrize("odd", ["1e999", '"\\ud800"', "NaN"])
def test_arguments_that_are_no_json_for_every_reader_are_a_text_that_serves_its_own_prompt(
    odd: str,
) -> None:
    call = {"name": "track", "arguments": f'{{"order_id": "ORD-17", "odd": {odd}}}'}
    plan: Any = {"tool_calls": [{"type": "function", "function": call}]}
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        assert cache.store(FIRST, plan, params={"order": "ORD-17"})
        found = cache.lookup(FIRST)
        assert isinstance(found, Hit)
        assert found.plan.to_dict() == plan
        assert not cache.lookup(SECOND)
