"""Agents of the OpenAI Agents SDK in front of a cache, against a model on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from semcache import PlanCache
from semcache.integrations.openai_agents import AgentsPlanModel

if TYPE_CHECKING:
    from tests.integrations.conftest import Model

set_tracing_disabled(disabled=True)


def track(order_id: str) -> str:
    """Where an order is."""
    return f"{order_id} is on its way"


def cancel(order_id: str) -> str:
    """End an order."""
    return f"{order_id} is cancelled"


@asynccontextmanager
async def agent(model: "Model", cache: PlanCache, **more: Any) -> AsyncIterator[Any]:
    settings = more.pop("model_settings", ModelSettings())
    async with AsyncOpenAI(base_url=model.base_url, api_key="none") as client:
        chat = OpenAIChatCompletionsModel("scripted-1", client)
        yield Agent(
            name="orders",
            instructions="Be kind.",
            model=AgentsPlanModel(chat, cache, **{"allow": ["track"]} | more),
            model_settings=settings,
            tools=[function_tool(track), function_tool(cancel)],
            handoffs=[Agent(name="refunds", handoff_description="Pays back")],
        )


def test_the_first_tool_calls_come_from_the_cache_with_the_values_of_the_prompt(
    model: "Model", cache: PlanCache
) -> None:
    async def main() -> list[str]:
        async with agent(model, cache) as orders:
            results = [await Runner.run(orders, f"Where is order ORD-{n}?") for n in (17, 99)]
        return [result.final_output for result in results]

    assert asyncio.run(main()) == [
        "results: ['ORD-17 is on its way']",
        "results: ['ORD-99 is on its way']",
    ]
    assert model.asked == ["Where is order ORD-17?"]


def test_a_streamed_run_keeps_and_serves_plans_and_streams_the_answer(
    model: "Model", cache: PlanCache
) -> None:
    async def said(orders: Any, prompt: str) -> tuple[str, str]:
        run = Runner.run_streamed(orders, prompt)
        text = ""
        async for event in run.stream_events():
            if event.type == "raw_response_event":
                text += getattr(event.data, "delta", "") if "text" in event.data.type else ""
        return text, run.final_output

    async def main() -> list[tuple[str, str]]:
        async with agent(model, cache) as orders:
            return [await said(orders, f"Where is order ORD-{n}?") for n in (17, 99)]

    answer = "results: ['ORD-99 is on its way']"
    assert asyncio.run(main())[1] == (answer, answer)
    assert model.asked == ["Where is order ORD-17?"]


def test_a_call_that_writes_is_asked_for_each_time(model: "Model", cache: PlanCache) -> None:
    async def main() -> None:
        async with agent(model, cache) as orders:
            for order in ("ORD-17", "ORD-99"):
                await Runner.run(orders, f"Please cancel order {order}")

    asyncio.run(main())
    assert len(model.asked) == 2
    assert cache.entries() == ()


def test_the_tenant_is_asked_for_at_each_request(model: "Model", cache: PlanCache) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")

    async def main() -> None:
        async with agent(model, cache, tenant=tenant.get) as orders:
            for name in ("acme", "initech", "acme"):
                tenant.set(name)
                await Runner.run(orders, "Where is order ORD-17?")

    asyncio.run(main())
    assert len(model.asked) == 2
    assert cache.tenants() == ("acme", "initech")


def test_a_later_prompt_or_a_forced_choice_goes_to_the_model(
    model: "Model", cache: PlanCache
) -> None:
    prompt = "Where is order ORD-17?"

    async def main() -> None:
        async with agent(model, cache) as orders:
            first = await Runner.run(orders, prompt)
            later = [*first.to_input_list(), {"role": "user", "content": prompt}]
            await Runner.run(orders, later)
        forced = ModelSettings(tool_choice="required")
        async with agent(model, cache, model_settings=forced) as orders:
            await Runner.run(orders, prompt)

    asyncio.run(main())
    assert len(model.asked) == 3
    assert len(cache.entries()) == 1


def test_the_old_name_of_the_model_warns() -> None:
    with pytest.warns(DeprecationWarning, match="AgentsPlanModel"):
        from semcache.integrations.openai_agents import PlanModel
    assert PlanModel is AgentsPlanModel
