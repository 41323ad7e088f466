"""Agents of each framework in front of a cache, against a model on loopback."""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any

import agents
import pydantic_ai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from semcache import PlanCache
from semcache.integrations.langchain import PlanMiddleware
from semcache.integrations.openai_agents import AgentsPlanModel
from semcache.integrations.pydantic_ai import PlanModel
from tests.integrations.conftest import Model

agents.set_tracing_disabled(disabled=True)

TENANT: ContextVar[str] = ContextVar("tenant", default="acme")
WHERE, ON_ITS_WAY = "Where is order ORD-{}?", "results: ['ORD-{} is on its way']"


def track(order_id: str) -> str:
    """Where an order is."""
    return f"{order_id} is on its way"


def cancel(order_id: str) -> str:
    """End an order."""
    return f"{order_id} is cancelled"


@dataclass
class Caller:
    tenant: str


class LangChain:
    """An agent of LangChain."""

    def __init__(self, model: Model, cache: PlanCache, *tools: Any) -> None:
        chat = ChatOpenAI(model="scripted-1", base_url=model.base_url, api_key="none")
        plans = PlanMiddleware(
            cache, allow=["track"], tenant=lambda asked: asked.runtime.context.tenant
        )
        self.agent: Any = create_agent(
            chat, [*(tools or (track, cancel))], middleware=[plans], context_schema=Caller
        )

    async def run(self, prompt: str, *before: Any, stream: bool = False) -> tuple[str, Any]:
        """Return what the agent says in the end, and all messages."""
        asked = {"messages": [*before, {"role": "user", "content": prompt}]}
        context = Caller(TENANT.get())
        if stream:
            told = self.agent.stream(asked, context=context, stream_mode="messages")
            return "".join(part.text for part, _ in told if isinstance(part, AIMessageChunk)), None
        messages = (await self.answer(asked, context))["messages"]
        return messages[-1].content, messages

    async def answer(self, asked: Any, context: Caller) -> Any:
        return self.agent.invoke(asked, context=context)


class AwaitedLangChain(LangChain):
    """The same, awaited."""

    async def answer(self, asked: Any, context: Caller) -> Any:
        return await self.agent.ainvoke(asked, context=context)


class PydanticAi:
    """An agent of Pydantic AI."""

    def __init__(self, model: Model, cache: PlanCache) -> None:
        provider = OpenAIProvider(base_url=model.base_url, api_key="none")
        chat = OpenAIChatModel("scripted-1", provider=provider)
        plans = PlanModel(chat, cache, allow=["track"], tenant=TENANT.get)
        self.agent = pydantic_ai.Agent(plans, tools=[track, cancel], instructions="Be kind.")

    async def run(
        self, prompt: Any, *before: Any, stream: bool = False, **more: Any
    ) -> tuple[str, Any]:
        if stream:
            async with self.agent.run_stream(prompt) as told:
                return "".join([part async for part in told.stream_text(delta=True)]), None
        result = await self.agent.run(prompt, message_history=before or None, **more)
        return result.output, result.all_messages()


class OpenAiAgents:
    """An agent of the OpenAI Agents SDK, with somebody to hand over to."""

    def __init__(self, model: Model, cache: PlanCache) -> None:
        self.address, self.cache = model.base_url, cache

    async def run(
        self, prompt: str, *before: Any, stream: bool = False, **settings: Any
    ) -> tuple[str, Any]:
        async with AsyncOpenAI(base_url=self.address, api_key="none") as client:
            chat = agents.OpenAIChatCompletionsModel("scripted-1", client)
            agent = agents.Agent(
                name="orders",
                instructions="Be kind.",
                model=AgentsPlanModel(chat, self.cache, allow=["track"], tenant=TENANT.get),
                model_settings=agents.ModelSettings(**settings),
                tools=[agents.function_tool(track), agents.function_tool(cancel)],
                handoffs=[agents.Agent(name="refunds", handoff_description="Pays back")],
            )
            if stream:
                return await self.streamed(agent, prompt), None
            asked: Any = [*before, {"role": "user", "content": prompt}] if before else prompt
            result = await agents.Runner.run(agent, asked)
            return result.final_output, result.to_input_list()

    async def streamed(self, agent: Any, prompt: str) -> str:
        run, text = agents.Runner.run_streamed(agent, prompt), ""
        async for event in run.stream_events():
            if event.type == "raw_response_event" and "text" in event.data.type:
                text += getattr(event.data, "delta", "")
        assert text == run.final_output
        return text


Awaited = Callable[[Any], Any]


@pytest.fixture
def awaited() -> Iterator[Awaited]:
    """Return what awaits: all of a test on one loop, each time with the variables of the test."""
    with asyncio.Runner() as runner:
        yield lambda work: runner.run(work, context=copy_context())


@pytest.fixture(params=[LangChain, AwaitedLangChain, PydanticAi, OpenAiAgents])
def agent(request: pytest.FixtureRequest, model: Model, cache: PlanCache) -> Any:
    return request.param(model, cache)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_first_tool_calls_come_from_the_cache_with_the_values_of_the_prompt(
    agent: Any, awaited: Awaited, model: Model, stream: bool
) -> None:
    said = [awaited(agent.run(WHERE.format(n), stream=stream))[0] for n in (17, 99)]
    assert said == [ON_ITS_WAY.format(17), ON_ITS_WAY.format(99)]
    assert model.asked == [WHERE.format(17)]


def test_a_call_that_writes_is_asked_for_each_time(
    agent: Any, awaited: Awaited, model: Model, cache: PlanCache
) -> None:
    for order in ("ORD-17", "ORD-99"):
        awaited(agent.run(f"Please cancel order {order}"))
    assert len(model.asked) == 2
    assert cache.entries() == ()


def test_each_request_tells_its_tenant(
    agent: Any, awaited: Awaited, model: Model, cache: PlanCache
) -> None:
    for name in ("acme", "initech", "acme"):
        token = TENANT.set(name)
        awaited(agent.run(WHERE.format(17)))
        TENANT.reset(token)
    assert len(model.asked) == 2
    assert cache.tenants() == ("acme", "initech")


def test_a_later_prompt_of_a_conversation_goes_to_the_model(
    agent: Any, awaited: Awaited, model: Model
) -> None:
    before = awaited(agent.run(WHERE.format(17)))[1]
    awaited(agent.run(WHERE.format(17), *before))
    assert len(model.asked) == 2


def test_each_served_call_has_an_id_of_its_own_and_other_tools_have_plans_of_their_own(
    awaited: Awaited, model: Model, cache: PlanCache
) -> None:
    runs = LangChain(model, cache)
    _, *served = (awaited(runs.run(WHERE.format(n)))[1] for n in (17, 98, 99))
    assert len({messages[1].tool_calls[0]["id"] for messages in served}) == 2
    awaited(LangChain(model, cache, track).run(WHERE.format(17)))
    assert len(model.asked) == 2


def test_a_picture_or_a_forced_choice_goes_to_the_model(
    awaited: Awaited, model: Model, cache: PlanCache
) -> None:
    picture = pydantic_ai.BinaryContent(b"x", media_type="image/png")
    awaited(PydanticAi(model, cache).run([WHERE.format(17), picture]))
    none = {"tool_choice": "none"}
    awaited(PydanticAi(model, cache).run(WHERE.format(17), model_settings=none))
    awaited(OpenAiAgents(model, cache).run(WHERE.format(17), tool_choice="required"))
    assert len(model.asked) == 3
    assert cache.entries() == ()


def test_an_output_tool_is_an_answer_and_no_plan(awaited: Awaited, cache: PlanCache) -> None:
    class Report(BaseModel):
        """What is known of an order."""

        text: str

    plans = PlanModel(TestModel(call_tools=[]), cache, allow=["track"])
    runs = pydantic_ai.Agent(plans, tools=[track], output_type=Report)
    awaited(runs.run(WHERE.format(17)))
    assert cache.entries() == ()


def test_the_old_name_of_the_model_warns() -> None:
    with pytest.warns(DeprecationWarning, match="AgentsPlanModel"):
        from semcache.integrations.openai_agents import PlanModel as OldName
    assert OldName is AgentsPlanModel
