"""LangChain and LangGraph: tool calls of agents as plans, and exact caches of models and nodes."""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from semcache.canonical import Json, as_object, digest
from semcache.errors import MissingExtra
from semcache.integrations.tool_calls import (
    ModelCall,
    PlanCacheDoor,
    ServingOptions,
    ToolCall,
    ToolCallPlans,
    new_call_id,
    read_calls,
)
from semcache.responses.cache import ABSENT, Responses

try:
    from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.caches import BaseCache as ModelCache
    from langchain_core.messages import (
        AIMessage,
        HumanMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.outputs import ChatGeneration, Generation
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.cache.base import BaseCache as GraphCache
except ImportError as error:
    raise MissingExtra(
        "the adapter for LangChain needs `pip install 'semcache-plans[langchain]'`"
    ) from error

Tenant = str | Callable[[ModelRequest], str]
"""Whose plans an agent uses: a name, or what tells it from a request and its `runtime.context`."""


class PlanMiddleware(AgentMiddleware):
    """Serves the first tool calls of an agent from a plan cache, and stores those of its model.

    For `create_agent(model, tools, middleware=[PlanMiddleware(cache, allow=[...])])`, invoked or
    awaited, streamed or not. What is served is an AIMessage with fresh ids; the agent calls the
    tools itself.
    """

    def __init__(
        self,
        cache: PlanCacheDoor,
        *,
        tenant: Tenant = "default",
        **options: Unpack[ServingOptions],
    ) -> None:
        """Serve from `cache`; the other arguments are those of `ToolCallPlans`.

        Raises:
            InvalidInput: `cache` is no plan cache, or `allow` is one text.
        """
        super().__init__()
        self._plans = ToolCallPlans(cache, **options)
        self._tenant = tenant

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse | AIMessage:
        """Answer with cached tool calls, or let `handler` ask the model."""
        with self._plans.turn(self._call(request)) as turn:
            if turn.calls is not None:
                return _message(turn.calls)
            response = handler(request)
            turn.made = _made(response)
            return response

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse | AIMessage:
        """Do what `wrap_model_call` does without blocking the loop."""
        async with self._plans.aturn(self._call(request)) as turn:
            if turn.calls is not None:
                return _message(turn.calls)
            response = await handler(request)
            turn.made = _made(response)
            return response

    def _call(self, request: ModelRequest) -> ModelCall | None:
        """Return what is asked; None where the tools called depend on more than the prompt."""
        first = request.messages[0] if len(request.messages) == 1 else None
        if not isinstance(first, HumanMessage) or request.tool_choice not in {None, "auto"}:
            return None
        if not isinstance(first.content, str):
            return None  # pictures and files decide, too
        return ModelCall(
            prompt=first.content,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
            tenant=self._tenant if isinstance(self._tenant, str) else self._tenant(request),
            instructions=request.system_prompt or "",
        )


def _message(calls: Sequence[ToolCall]) -> AIMessage:
    listed = [
        {"name": call.name, "args": call.arguments, "id": new_call_id(), "type": "tool_call"}
        for call in calls
    ]
    return AIMessage("", tool_calls=listed, response_metadata={"model_provider": "semcache"})


def _made(response: ModelResponse) -> list[ToolCall]:
    """Return the tool calls of a model's answer; none if some could not be read."""
    answers = [message for message in response.result if isinstance(message, AIMessage)]
    if len(answers) != 1 or answers[0].invalid_tool_calls:
        return []
    return read_calls((call["name"], call["args"]) for call in answers[0].tool_calls)


class ResponseCache(ModelCache):
    """An exact cache of models: `set_llm_cache(ResponseCache(responses))`, or `cache=` of a model.

    Equal messages to a model of equal settings are answered once, in every process on `responses`.
    """

    def __init__(self, responses: Responses, *, group: str = "langchain") -> None:
        """Keep answers in `responses`, which its owner closes; `group` is their label there."""
        self._responses = responses
        self._group = group

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """Return what the model answered; None if it was not asked yet."""
        kept = self._responses.recall(digest([prompt, llm_string]), group=self._group)
        if not isinstance(kept, list):
            return None
        return [_generation(as_object(one)) for one in kept]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Keep what the model answered, if it is text or a chat message."""
        kept: list[Json] = []
        for one in return_val:
            said: Json = {"text": one.text}
            if isinstance(one, ChatGeneration):
                said = {"message": message_to_dict(one.message)}
            kept.append({**as_object(said), "info": one.generation_info or {}})
        self._responses.remember(digest([prompt, llm_string]), kept, group=self._group)

    def clear(self, **_: object) -> None:
        """Forget every answer of this group."""
        self._responses.bust_group(self._group)


def _generation(kept: Mapping[str, Json]) -> Generation:
    info = as_object(kept.get("info"))
    if "message" not in kept:
        return Generation(text=str(kept.get("text")), generation_info=info)
    (message,) = messages_from_dict([as_object(kept["message"])])
    return ChatGeneration(message=message, generation_info=info)


class NodeCache(GraphCache):
    """An exact cache of nodes: `graph.compile(cache=NodeCache(responses))` and a `CachePolicy`.

    Bounded, on disk and encrypted as `responses` is. A node's `ttl` counts from the last use.
    """

    def __init__(self, responses: Responses) -> None:
        """Keep what nodes return in `responses`, which its owner closes."""
        super().__init__()
        self._responses = responses

    def get(self, keys: Sequence[tuple[tuple[str, ...], str]]) -> dict[Any, Any]:
        """Return what is kept of `keys`."""
        found = {}
        for namespace, key in keys:
            kept = self._responses.recall(_key(namespace, key), group=_group(namespace))
            if kept is not ABSENT:
                known = as_object(kept)
                data = base64.b64decode(str(known["data"]))
                found[namespace, key] = self.serde.loads_typed((str(known["type"]), data))
        return found

    async def aget(self, keys: Sequence[tuple[tuple[str, ...], str]]) -> dict[Any, Any]:
        """Do what `get` does; it takes less than a millisecond a key."""
        return self.get(keys)

    def set(self, pairs: Mapping[tuple[tuple[str, ...], str], tuple[Any, int | None]]) -> None:
        """Keep what nodes returned, each for its seconds to live."""
        for (namespace, key), (value, ttl) in pairs.items():
            kind, data = self.serde.dumps_typed(value)
            kept = {"type": kind, "data": base64.b64encode(data).decode()}
            name = _group(namespace)
            self._responses.remember(_key(namespace, key), kept, ttl_s=ttl, group=name)

    async def aset(
        self, pairs: Mapping[tuple[tuple[str, ...], str], tuple[Any, int | None]]
    ) -> None:
        """Do what `set` does."""
        self.set(pairs)

    def clear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Forget the nodes of `namespaces`; all that any graph keeps here for None."""
        if namespaces is None:
            self._responses.bust_prefix(_PREFIX)
        for namespace in namespaces or ():
            self._responses.bust_group(_group(namespace))

    async def aclear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Do what `clear` does."""
        self.clear(namespaces)


_PREFIX = "langgraph:"


def _group(namespace: Sequence[str]) -> str:
    return _PREFIX + digest([*namespace])


def _key(namespace: Sequence[str], key: str) -> str:
    return f"{_group(namespace)}:{key}"
