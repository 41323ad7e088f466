"""Pydantic AI agents in front of a cache, against a model on loopback."""

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from semcache import PlanCache
from semcache.integrations.pydantic_ai import PlanModel

if TYPE_CHECKING:
    from tests.integrations.conftest import Model


def track(order_id: str) -> str:
    """Where an order is."""
    return f"{order_id} is on its way"


def cancel(order_id: str) -> str:
    """End an order."""
    return f"{order_id} is cancelled"


def agent(model: "Model", cache: PlanCache, **more: Any) -> Any:
    provider = OpenAIProvider(base_url=model.base_url, api_key="none")
    chat = PlanModel(
        OpenAIChatModel("scripted-1", provider=provider), cache, allow=["track"], **more
    )
    return Agent(chat, tools=[track, cancel], instructions="Be kind.")


def test_the_first_tool_calls_come_from_the_cache_with_the_values_of_the_prompt(
    model: "Model", cache: PlanCache
) -> None:
    runs = agent(model, cache)

    async def main() -> list[str]:
        results = [await runs.run(f"Where is order ORD-{n}?") for n in (17, 99)]
        return [result.output for result in results]

    assert asyncio.run(main()) == [
        "results: ['ORD-17 is on its way']",
        "results: ['ORD-99 is on its way']",
    ]
    assert model.asked == ["Where is order ORD-17?"]


def test_a_streamed_run_keeps_and_serves_plans_and_streams_the_answer(
    model: "Model", cache: PlanCache
) -> None:
    runs = agent(model, cache)

    async def said(prompt: str) -> str:
        async with runs.run_stream(prompt) as stream:
            return "".join([part async for part in stream.stream_text(delta=True)])

    async def main() -> list[str]:
        return [await said(f"Where is order ORD-{n}?") for n in (17, 99)]

    assert asyncio.run(main())[1] == "results: ['ORD-99 is on its way']"
    assert model.asked == ["Where is order ORD-17?"]


def test_a_call_that_writes_is_asked_for_each_time(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache)

    async def main() -> None:
        for order in ("ORD-17", "ORD-99"):
            await runs.run(f"Please cancel order {order}")

    asyncio.run(main())
    assert len(model.asked) == 2
    assert cache.entries() == ()


def test_the_tenant_is_asked_for_at_each_request(model: "Model", cache: PlanCache) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")
    runs = agent(model, cache, tenant=tenant.get)

    async def main() -> None:
        for name in ("acme", "initech", "acme"):
            tenant.set(name)
            await runs.run("Where is order ORD-17?")

    asyncio.run(main())
    assert len(model.asked) == 2
    assert cache.tenants() == ("acme", "initech")


def test_a_later_prompt_or_a_picture_goes_to_the_model(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache)

    async def main() -> None:
        first = await runs.run("Where is order ORD-17?")
        await runs.run("Where is order ORD-17?", message_history=first.all_messages())
        await runs.run(["Where is order ORD-17?", BinaryContent(b"x", media_type="image/png")])

    asyncio.run(main())
    assert len(model.asked) == 3


def test_an_output_tool_is_an_answer_and_no_plan(cache: PlanCache) -> None:
    class Report(BaseModel):
        """What is known of an order."""

        text: str

    wrapped = TestModel(call_tools=[])
    runs = Agent(PlanModel(wrapped, cache, allow=["track"]), tools=[track], output_type=Report)

    async def main() -> None:
        await runs.run("Where is order ORD-17?")

    asyncio.run(main())
    assert cache.entries() == ()


def test_a_forced_choice_of_tools_goes_to_the_model(model: "Model", cache: PlanCache) -> None:
    runs = agent(model, cache)

    async def main() -> None:
        await runs.run("Where is order ORD-17?", model_settings={"tool_choice": "none"})

    asyncio.run(main())
    assert cache.entries() == ()
