"""Models of LangChain and nodes of LangGraph in front of an exact cache."""

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import Generation
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy

from semcache.integrations.langchain import NodeCache, ResponseCache
from semcache.responses.cache import Responses
from semcache.testing import FakeClock
from tests.integrations.conftest import Model


def track(order_id: str) -> str:
    """Where an order is."""
    return f"{order_id} is on its way"


def chat(model: Model, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(model="scripted-1", base_url=model.base_url, api_key="none", **more)


def test_equal_messages_to_a_model_are_answered_once(model: Model) -> None:
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
