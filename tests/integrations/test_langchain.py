"""LangChain agents, models and LangGraph nodes in front of a cache, against a model on loopback."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import Generation
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy

from semcache import PlanCache
from semcache.integrations.langchain import NodeCache, PlanMiddleware, ResponseCache
from semcache.responses.cache import Responses
from semcache.testing import FakeClock

if TYPE_CHECKING:
    from tests.integrations.conftest import Model


@dataclass
class Caller:
    tenant: str


def tenant_of(request: ModelRequest) -> str:
    name: str = request.runtime.context.tenant
    return name


def track(order_id: str) -> str:
    """Where an order is."""
    return f"{order_id} is on its way"


def cancel(order_id: str) -> str:
    """End an order."""
    return f"{order_id} is cancelled"


def chat(model: "Model", **more: Any) -> ChatOpenAI:
    return ChatOpenAI(model="scripted-1", base_url=model.base_url, api_key="none", **more)


def agent(model: "Model", cache: PlanCache, **more: Any) -> Any:
    middleware = PlanMiddleware(cache, **{"allow": ["track"]} | more)
    return create_agent(
        chat(model), [track, cancel], middleware=[middleware], context_schema=Caller
    )


def prompt(order: str, what: str = "Where is") -> Any:
    return {"messages": [{"role": "user", "content": f"{what} order {order}?"}]}


def test_the_first_tool_calls_come_from_the_cache_with_the_values_of_the_prompt(
    model: "Model", cache: PlanCache
) -> None:
    runs = agent(model, cache)
    answers = [runs.invoke(prompt(f"ORD-{n}"))["messages"] for n in (17, 99)]
    assert model.asked == ["Where is order ORD-17?"]
    assert [answer[-1].content for answer in answers] == [
        "results: ['ORD-17 is on its way']",
        "results: ['ORD-99 is on its way']",
    ]
    ids = [answer[1].tool_calls[0]["id"] for answer in answers]
    assert ids[0] != ids[1]


def test_awaited_runs_share_the_plans(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache)

    async def main() -> Any:
        await runs.ainvoke(prompt("ORD-17"))
        return await runs.ainvoke(prompt("ORD-99"))

    assert asyncio.run(main())["messages"][-1].content == "results: ['ORD-99 is on its way']"
    assert model.asked == ["Where is order ORD-17?"]


def test_a_streamed_run_streams_what_the_model_says_after_a_hit(
    model: "Model", cache: PlanCache
) -> None:
    runs = agent(model, cache)
    runs.invoke(prompt("ORD-17"))
    parts = [part for part, _ in runs.stream(prompt("ORD-99"), stream_mode="messages")]
    said = "".join(part.text for part in parts if isinstance(part, AIMessageChunk))
    assert said == "results: ['ORD-99 is on its way']"
    assert model.asked == ["Where is order ORD-17?"]


def test_a_call_that_writes_is_asked_for_each_time(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache)
    for order in ("ORD-17", "ORD-99"):
        runs.invoke(prompt(order, "Please cancel"))
    assert len(model.asked) == 2
    assert cache.entries() == ()


def test_a_later_prompt_of_a_conversation_goes_to_the_model(
    model: "Model", cache: PlanCache
) -> None:
    runs = agent(model, cache)
    before = runs.invoke(prompt("ORD-17"))["messages"]
    runs.invoke({"messages": [*before, *prompt("ORD-99")["messages"]]})
    assert model.asked[-1] == "Where is order ORD-99?"


def test_the_tenant_comes_from_the_context_of_the_run(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache, tenant=tenant_of)
    for name in ("acme", "initech", "acme"):
        runs.invoke(prompt("ORD-17"), context=Caller(name))
    assert len(model.asked) == 2
    assert cache.tenants() == ("acme", "initech")


def test_an_agent_with_other_tools_has_plans_of_its_own(model: "Model", cache: PlanCache) -> None:
    agent(model, cache).invoke(prompt("ORD-17"))
    other = create_agent(chat(model), [track], middleware=[PlanMiddleware(cache, allow=["track"])])
    other.invoke(prompt("ORD-17"))
    assert len(model.asked) == 2


def test_equal_messages_to_a_model_are_answered_once(model: "Model") -> None:
    with Responses.open() as responses:
        kept = ResponseCache(responses)
        asked = [chat(model, cache=kept), chat(model, cache=kept), chat(model, cache=kept, seed=1)]
        first, second, other = [one.bind_tools([track]).invoke("Order ORD-17?") for one in asked]
        assert isinstance(second, AIMessage)
        assert second.tool_calls == first.tool_calls
        assert other.tool_calls == first.tool_calls
        assert len(model.asked) == 2
        kept.clear()
        asked[0].bind_tools([track]).invoke("Order ORD-17?")
        assert len(model.asked) == 3


def test_answers_of_plain_models_are_kept_too() -> None:
    with Responses.open() as responses:
        kept = ResponseCache(responses)
        kept.update("2 + 2", "settings", [Generation(text="4", generation_info={"why": "sum"})])
        assert kept.lookup("2 + 2", "settings") == [
            Generation(text="4", generation_info={"why": "sum"})
        ]
        assert kept.lookup("2 + 2", "other settings") is None


class State(TypedDict):
    city: str
    forecast: str


@pytest.fixture
def seen() -> list[str]:
    return []


def graph(responses: Responses, seen: list[str]) -> Any:
    def forecast(state: State) -> dict[str, str]:
        seen.append(state["city"])
        return {"forecast": f"sun in {state['city']}"}

    built = StateGraph(State)
    built.add_node("forecast", forecast, cache_policy=CachePolicy(ttl=60))
    built.add_edge(START, "forecast")
    return built.compile(cache=NodeCache(responses))


def test_a_node_of_the_same_state_runs_once_until_its_time_is_over(seen: list[str]) -> None:
    clock = FakeClock()
    with Responses.open(clock=clock) as responses:
        runs = graph(responses, seen)
        for city in ("Bonn", "Bonn", "Kiel"):
            assert runs.invoke({"city": city})["forecast"] == f"sun in {city}"
        assert asyncio.run(runs.ainvoke({"city": "Kiel"}))["forecast"] == "sun in Kiel"
        assert seen == ["Bonn", "Kiel"]
        clock.advance(61)
        runs.invoke({"city": "Bonn"})
        assert seen == ["Bonn", "Kiel", "Bonn"]
        runs.clear_cache()
        runs.invoke({"city": "Bonn"})
        assert seen == ["Bonn", "Kiel", "Bonn", "Bonn"]
