"""LiteLLM: a cache that serves tool calls by meaning, with each prompt's own values."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from semcache.canonical import JsonObject, as_object, dumps, loads
from semcache.errors import InvalidJson, MissingExtra
from semcache.integrations.tool_calls import (
    ModelCall,
    PlanCacheDoor,
    ServingOptions,
    ToolCall,
    ToolCallPlans,
    new_call_id,
    read_calls,
)

try:
    from litellm.caching.caching import Cache
    from litellm.types.caching import LiteLLMCacheType
    from pydantic import BaseModel
except ImportError as error:
    raise MissingExtra(
        "the adapter for LiteLLM needs `pip install 'semcache-plans[litellm]'`"
    ) from error


class LiteLLMPlanCache(Cache):
    """A cache for `litellm.cache`: calls with tools are answered by plans, no others are kept.

    `litellm.cache = LiteLLMPlanCache(cache, allow=[...])`; awaited and streamed calls go the same
    way, and `cache={"no-cache": True}` of a call is heeded.
    """

    def __init__(
        self,
        cache: PlanCacheDoor,
        *,
        tenant: str | Callable[[Mapping[str, Any]], str] = "default",
        **options: Unpack[ServingOptions],
    ) -> None:
        """Serve from `cache`; `tenant` may be told by the arguments of a call: `user`, `metadata`.

        Raises:
            InvalidInput: `cache` is no plan cache, or `allow` is one text.
        """
        super().__init__(type=LiteLLMCacheType.LOCAL, supported_call_types=[
            "completion", "acompletion",
        ])  # fmt: skip
        self._plans = ToolCallPlans(cache, **options)
        self._tenant = tenant

    def get_cache(self, dynamic_cache_object: object = None, **kwargs: Any) -> Any:  # noqa: ANN401 - LiteLLM's
        """Return an answer with cached tool calls; None: LiteLLM asks the model."""
        del dynamic_cache_object
        call = self._call(kwargs)
        return None if call is None else _answer(self._plans.served(call), kwargs)

    async def async_get_cache(self, dynamic_cache_object: object = None, **kwargs: Any) -> Any:  # noqa: ANN401 - LiteLLM's
        """Do what `get_cache` does without blocking the loop."""
        del dynamic_cache_object
        call = self._call(kwargs)
        return None if call is None else _answer(await self._plans.aserved(call), kwargs)

    def add_cache(self, result: Any, **kwargs: Any) -> None:  # noqa: ANN401 - LiteLLM's
        """Store the tool calls of an answer."""
        call = self._call(kwargs)
        if call is not None:
            self._plans.keep(call, _made(result))

    async def async_add_cache(
        self,
        result: Any,  # noqa: ANN401 - LiteLLM's
        dynamic_cache_object: object = None,
        **kwargs: Any,  # noqa: ANN401 - LiteLLM's
    ) -> None:
        """Do what `add_cache` does without blocking the loop."""
        del dynamic_cache_object
        call = self._call(kwargs)
        if call is not None:
            await self._plans.akeep(call, _made(result))

    def _call(self, kwargs: Mapping[str, Any]) -> ModelCall | None:
        """Return what is asked; None where the tools called depend on more than the prompt."""
        if self.should_use_cache(**kwargs) is not True:
            return None
        if not kwargs.get("tools") or kwargs.get("tool_choice") not in {None, "auto"}:
            return None
        messages = [_mapping(message) for message in kwargs.get("messages") or ()]
        rest = [one for one in messages if one.get("role") not in {"system", "developer"}]
        texts = [one.get("content") for one in messages]
        if len(rest) != 1 or rest[0].get("role") != "user" or kwargs.get("n") not in {None, 1}:
            return None
        if not all(isinstance(text, str) for text in texts):
            return None  # pictures and files decide, too
        system = [str(one["content"]) for one in messages if one is not rest[0]]
        return ModelCall(
            prompt=str(rest[0]["content"]),
            tools=kwargs["tools"],
            tenant=self._tenant if isinstance(self._tenant, str) else self._tenant(kwargs),
            instructions="\n".join(system),
        )


def _mapping(message: object) -> Mapping[str, Any]:
    if isinstance(message, BaseModel):
        return message.model_dump()
    return message if isinstance(message, Mapping) else {}


def _answer(calls: tuple[ToolCall, ...] | None, kwargs: Mapping[str, Any]) -> JsonObject | None:
    """Return a chat completion with `calls`, as LiteLLM keeps them."""
    if calls is None:
        return None
    listed: list[Any] = [
        {
            "id": new_call_id(),
            "type": "function",
            "function": {"name": call.name, "arguments": dumps(call.arguments)},
        }
        for call in calls
    ]
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": listed}
    return {
        "id": f"chatcmpl-{new_call_id()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": str(kwargs.get("model")),
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def _made(result: object) -> list[ToolCall]:
    """Return the tool calls of a chat completion; none if it has none, or some cannot be read."""
    value = result.model_dump(mode="json") if isinstance(result, BaseModel) else result
    try:
        document = as_object(loads(value)) if isinstance(value, str) else value
    except InvalidJson:
        return []
    if not isinstance(document, dict) or len(document.get("choices") or ()) != 1:
        return []
    calls = (document["choices"][0].get("message") or {}).get("tool_calls") or []
    functions = [call["function"] for call in calls]
    return read_calls((one["name"], one["arguments"] or {}) for one in functions)
