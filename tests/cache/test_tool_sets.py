"""A tool set for each call: plans are served to calls with the same tools, and to no others."""

import asyncio
import copy
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import Tool

from semcache import AsyncPlanCache, Catalog, Miss, Operation, PlanCache
from semcache.cache import tool_sets
from semcache.cache.tool_sets import catalog_of
from semcache.errors import InvalidInput, InvalidOperation
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import hit

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
TRACK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "track", "description": "Where an order is", "parameters": SCHEMA},
}
CANCEL: dict[str, Any] = {"name": "cancel", "input_schema": SCHEMA}
FIRST, SECOND = "Where is order ORD-17?", "Where is order ORD-99?"


def plan(order: str) -> Any:
    return {"tool_calls": [{"name": "track", "arguments": {"order_id": order}}]}


def changed(**properties: Any) -> dict[str, Any]:
    tool = copy.deepcopy(TRACK)
    tool["function"]["parameters"]["properties"] |= properties
    return tool


# An order may get a field, another type, another meaning, or another name.
OTHER: list[list[Any]] = [
    [changed(carrier={"type": "string"})],
    [changed(order_id={"type": "integer"})],
    [TRACK | {"function": TRACK["function"] | {"description": "Which order is last"}}],
    [TRACK, CANCEL],
    [],
]


@pytest.mark.parametrize("tools", [*OTHER, None])
def test_other_tools_are_a_miss_that_says_so(cache: PlanCache, tools: Any) -> None:
    cache.store(FIRST, plan("ORD-17"), tools=[TRACK])
    found = cache.lookup(FIRST, tools=tools)
    assert isinstance(found, Miss)
    assert found.reason == "catalog"
    assert "operations changed" in found.explain()


SPELLINGS: list[Any] = [
    {"type": "function", "function": {"name": "track", "description": "T", "parameters": SCHEMA}},
    {"type": "function", "name": "track", "description": "T", "parameters": SCHEMA, "strict": True},
    {"name": "track", "description": "T", "input_schema": SCHEMA},
    {"name": "track", "description": "T", "inputSchema": SCHEMA, "annotations": {}},
    {"name": "track", "description": "T", "input_schema": SCHEMA, "cache_control": {"type": "x"}},
]


@pytest.mark.parametrize("tool", SPELLINGS)
def test_a_tool_is_the_same_however_an_sdk_spells_it(cache: PlanCache, tool: Any) -> None:
    cache.store(FIRST, plan("ORD-17"), tools=[tool])
    assert all(cache.lookup(SECOND, tools=[spelled]) for spelled in SPELLINGS)


def test_a_tool_without_a_schema_counts_as_a_whole(cache: PlanCache) -> None:
    search, other = ({"type": "file_search", "vector_store_ids": [name]} for name in "ab")
    cache.store("find the manual", {"tool_calls": [{"name": "file_search"}]}, tools=[search])
    assert cache.lookup("find the manual", tools=[search])
    assert not cache.lookup("find the manual", tools=[other])


def test_plans_for_two_tool_sets_stand_beside_one_another(cache: PlanCache) -> None:
    new = [changed(carrier={"type": "string"})]
    other = {"tool_calls": [{"name": "track", "arguments": {"order_id": "ORD-17", "carrier": "x"}}]}
    cache.store(FIRST, plan("ORD-17"), tools=[TRACK])
    cache.store(FIRST, other, tools=new)
    plans = []
    for tools in ([TRACK], new):
        found = hit(cache.lookup(SECOND, tools=tools))
        plans.append(found.plan.to_dict())
    assert plans[0] == plan("ORD-99")
    assert plans[1]["tool_calls"] != plans[0]["tool_calls"]


@given(st.lists(st.sampled_from("abcd"), max_size=4), st.lists(st.sampled_from("abcd"), max_size=4))
def test_a_call_hits_just_when_it_has_the_tools_of_the_plan(mine: Any, its: Any) -> None:
    def tools(names: Any) -> Any:
        return [{"name": name, "input_schema": SCHEMA} for name in dict.fromkeys(names)]

    with PlanCache.open(embedder=HashEmbedder(), clock=FakeClock()) as cache:
        cache.store(FIRST, plan("ORD-17"), tools=tools(its))
        assert bool(cache.lookup(SECOND, tools=tools(mine))) == (set(mine) == set(its))


def test_tools_of_a_call_go_before_the_catalog_of_the_cache() -> None:
    own = Catalog([Operation("track", "", {})])
    with PlanCache.open(embedder=HashEmbedder(), catalog=own) as cache:
        cache.store(FIRST, plan("ORD-17"), tools=[TRACK])
        assert not cache.lookup(SECOND)
        assert cache.lookup(SECOND, tools=[TRACK])
        cache.store(FIRST, plan("ORD-17"))
        assert cache.lookup(SECOND)
        assert cache.lookup(SECOND, tools=own)
        assert cache.catalog is own


def test_tools_of_mcp_are_taken_as_its_sdk_gives_them(cache: PlanCache) -> None:
    tool = Tool.model_validate({"name": "track", "inputSchema": SCHEMA})
    cache.store(FIRST, plan("ORD-17"), tools=[tool])
    assert cache.lookup(SECOND, tools=[{"name": "track", "inputSchema": SCHEMA}])


def test_closed_values_of_the_tools_of_a_call_are_found_in_its_prompt(cache: PlanCache) -> None:
    size = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}}
    tools: list[object] = [{"name": "list", "input_schema": size}]
    made = {"tool_calls": [{"name": "list", "arguments": {"size": "small"}}]}
    cache.store("list the small shirts", made, tools=tools)
    found = hit(cache.lookup("list the large shirts", tools=tools))
    assert [*found.params.values()] == ["large"]
    assert not cache.lookup("list the huge shirts", tools=tools)


def test_a_confirmed_prompt_joins_a_plan_with_tools(cache: PlanCache) -> None:
    cache.store("show me where order ORD-17 is", plan("ORD-17"), tools=[TRACK])
    (option,) = cache.options("show where my order ORD-99 now is", tools=[TRACK])
    taken = cache.take(option)
    assert taken is not None
    assert taken.plan.to_dict() == plan("ORD-99")
    again = hit(cache.lookup("show where my order ORD-5 now is", tools=[TRACK]))
    assert again.tier == "template"
    assert not cache.lookup("show where my order ORD-5 now is")


def test_a_tool_set_is_parsed_once(cache: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []

    def counted(tools: Any) -> Catalog:
        parsed.append(tools)
        return catalog_of(tools)

    monkeypatch.setattr("semcache.cache.tool_sets.catalog_of", counted)
    for number in range(20):
        cache.lookup(f"Where is order ORD-{number}?", tools=[copy.deepcopy(TRACK)])
    assert len(parsed) == 1


def test_no_more_tool_sets_are_remembered_than_the_bound() -> None:
    known = tool_sets.ToolSets({})
    sets = [known.of([{"name": f"t{n}"}]) for n in range(tool_sets.REMEMBERED + 1)]
    assert known.known(sets[0].fingerprint) is None
    assert known.known(sets[-1].fingerprint) is sets[-1]


@pytest.mark.parametrize("tools", ["track", {"name": "track"}, 5, [{"x": float("nan")}]])
def test_what_are_no_tools_is_refused(cache: PlanCache, tools: Any) -> None:
    with pytest.raises(InvalidInput, match="tools"):
        cache.lookup(FIRST, tools=tools)


@pytest.mark.parametrize("tool", [{}, {"name": " "}, {"type": "function", "name": 5}, "track", 7])
def test_what_names_no_tool_is_refused_with_its_place(cache: PlanCache, tool: Any) -> None:
    with pytest.raises(InvalidInput, match=r"tools\[1\]"):
        cache.lookup(FIRST, tools=[TRACK, tool])


def test_two_tools_of_one_name_are_refused_and_nothing_is_stored(cache: PlanCache) -> None:
    with pytest.raises(InvalidOperation):
        cache.store(FIRST, plan("ORD-17"), tools=[TRACK, TRACK])
    assert cache.entries() == ()


def test_calls_with_other_tools_do_not_wait_for_one_another() -> None:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        inside = []

        def other() -> None:
            with cache.planning(cache.lookup(FIRST, tools=[CANCEL])) as again:
                inside.append(again)

        with cache.planning(cache.lookup(FIRST, tools=[TRACK])):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(30)
        assert inside == [False]


def test_async_callers_bring_tools_too() -> None:
    async def main() -> Any:
        async with AsyncPlanCache(PlanCache.open(embedder=HashEmbedder())) as cache:
            missed = await cache.lookup(FIRST, tools=[TRACK])
            async with cache.planning(missed) as again:
                assert not again
                await cache.store(FIRST, plan("ORD-17"), tools=[TRACK])
            return [bool(await cache.lookup(SECOND, tools=t)) for t in ([TRACK], [CANCEL], None)]

    assert asyncio.run(main()) == [True, False, False]
