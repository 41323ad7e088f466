"""LiteLLM in front of a cache, against a model on loopback."""

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import litellm
import pytest
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from semcache import PlanCache
from semcache.integrations.litellm import LiteLLMPlanCache
from tests.integrations.conftest import Model

# LiteLLM leaves event loops of threads of its own open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("track", "cancel")
]
Ask = Callable[..., Any]


def tenant_of(arguments: Any) -> str:
    return str(arguments.get("user") or "default")


@pytest.fixture(autouse=True)
def _installed(cache: PlanCache) -> Iterator[None]:
    callbacks = ("input_callback", "success_callback", "_async_success_callback")
    before = {name: [*getattr(litellm, name)] for name in callbacks}
    litellm.cache = LiteLLMPlanCache(cache, allow=["track"], tenant=tenant_of)
    yield
    litellm.cache = None
    for name, value in before.items():
        setattr(litellm, name, value)
    gc.collect()  # what it left open is told here, and in no other test


def arguments(model: Model, prompt: str, more: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": prompt}]
    where = {"api_base": model.base_url, "api_key": "none", "model": "openai/scripted-1"}
    return {"messages": messages, "tools": TOOLS, "caching": True} | where | more


@pytest.fixture(params=["plain", "awaited"])
def ask(request: pytest.FixtureRequest, model: Model) -> Ask:
    def plain(prompt: str, **more: Any) -> Any:
        return litellm.completion(**arguments(model, prompt, more))

    def awaited(prompt: str, **more: Any) -> Any:
        async def main() -> Any:
            answer = await litellm.acompletion(**arguments(model, prompt, more))
            # LiteLLM stores answers in tasks of their own.
            mine = {asyncio.current_task()}
            endless = {t for t in asyncio.all_tasks() if "_worker_loop" in repr(t)}
            await asyncio.gather(*(asyncio.all_tasks() - mine - endless))
            await GLOBAL_LOGGING_WORKER.flush()
            await GLOBAL_LOGGING_WORKER.stop()
            return answer

        return asyncio.run(main())

    return plain if request.param == "plain" else awaited


def called(answer: Any) -> list[tuple[str, Any]]:
    calls = answer.choices[0].message.tool_calls
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def test_tool_calls_come_from_the_cache_with_the_values_of_the_prompt(
    ask: Ask, model: Model
) -> None:
    answers = [ask(f"Where is order ORD-{n}?") for n in (17, 99)]
    assert called(answers[1]) == [("track", {"order_id": "ORD-99"})]
    assert answers[1].choices[0].finish_reason == "tool_calls"
    assert model.asked == ["Where is order ORD-17?"]


def test_a_call_that_writes_is_asked_for_each_time(
    ask: Ask, model: Model, cache: PlanCache
) -> None:
    for order in ("ORD-17", "ORD-99"):
        ask(f"Please cancel order {order}")
    assert len(model.asked) == 2
    assert cache.entries() == ()


def test_a_stream_is_kept_and_a_hit_comes_as_a_stream(ask: Ask, model: Model) -> None:
    ask("Where is order ORD-17?")
    chunks = [*litellm.completion(**arguments(model, "Where is order ORD-99?", {"stream": True}))]
    whole = litellm.stream_chunk_builder(chunks)
    assert called(whole) == [("track", {"order_id": "ORD-99"})]
    assert model.asked == ["Where is order ORD-17?"]
    for order in ("ORD-5", "ORD-6"):
        told = {"stream": True, "user": "acme"}
        chunks = [*litellm.completion(**arguments(model, f"Where is order {order}?", told))]
        assert called(litellm.stream_chunk_builder(chunks)) == [("track", {"order_id": order})]
    assert model.asked == ["Where is order ORD-17?", "Where is order ORD-5?"]


def test_the_tenant_comes_from_the_call(ask: Ask, model: Model, cache: PlanCache) -> None:
    for name in ("acme", "initech", "acme"):
        ask("Where is order ORD-17?", user=name)
    assert len(model.asked) == 2
    assert cache.tenants() == ("acme", "initech")


@pytest.mark.parametrize(
    "more",
    [
        {"cache": {"no-cache": True, "no-store": True}},
        {"tool_choice": "required"},
        {"tools": None},
        {"n": 2},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "ORD-17"}]}]},
        {"messages": [{"role": m, "content": "ORD-17"} for m in ("user", "assistant", "user")]},
    ],
)
def test_what_depends_on_more_than_the_prompt_goes_to_the_model(
    ask: Ask, model: Model, cache: PlanCache, more: dict[str, Any]
) -> None:
    for _ in range(2):
        ask("Where is order ORD-17?", **more)
    assert len(model.asked) == 2
    assert cache.entries() == ()
