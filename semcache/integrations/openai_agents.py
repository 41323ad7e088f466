"""OpenAI Agents SDK: a model whose first tool calls come from a plan cache."""

import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Unpack

from semcache.canonical import dumps
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

try:
    from agents import FunctionTool, Handoff, Model, ModelSettings, Tool
    from agents.items import ModelResponse
    from agents.usage import Usage
    from openai.types.responses import (
        Response,
        ResponseCompletedEvent,
        ResponseCreatedEvent,
        ResponseFunctionToolCall,
        ResponseOutputItemAddedEvent,
        ResponseOutputItemDoneEvent,
    )
except ImportError as error:
    raise MissingExtra(
        "the adapter for the OpenAI Agents SDK needs `pip install 'semcache-plans[openai-agents]'`"
    ) from error


class AgentsPlanModel(Model):
    """A model that asks a plan cache before the model that it wraps.

    For `Agent(model=AgentsPlanModel(OpenAIResponsesModel(…), cache, allow=[...]), tools=…)`. A
    handoff counts as a tool: it is served if `allow` names it.
    """

    def __init__(
        self,
        wrapped: Model,
        cache: PlanCacheDoor,
        *,
        tenant: str | Callable[[], str] = "default",
        **options: Unpack[ServingOptions],
    ) -> None:
        """Wrap `wrapped`; `tenant` is asked at each request, the rest is as in `ToolCallPlans`.

        Raises:
            InvalidInput: `cache` is no plan cache, or `allow` is one text.
        """
        self.wrapped = wrapped
        """The model that is asked where nothing is served."""
        self._plans = ToolCallPlans(cache, **options)
        self._tenant = tenant

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: ANN401 - handed on
        """Answer with cached tool calls, or ask the model."""
        async with self._plans.aturn(self._call(*args, **kwargs)) as turn:
            if turn.calls is not None:
                return ModelResponse(output=[*_items(turn.calls)], usage=Usage(), response_id=None)
            response = await self.wrapped.get_response(*args, **kwargs)
            turn.made = _made(response.output)
            return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - handed on
        """Stream cached tool calls, or what the model streams."""
        async with self._plans.aturn(self._call(*args, **kwargs)) as turn:
            if turn.calls is not None:
                for event in _events(_items(turn.calls)):
                    yield event
                return
            async with aclosing(self.wrapped.stream_response(*args, **kwargs)) as events:
                async for event in events:
                    if isinstance(event, ResponseCompletedEvent):
                        turn.made = _made(event.response.output)
                    yield event

    async def close(self) -> None:
        """Release what the wrapped model holds; the cache is its owner's."""
        await self.wrapped.close()

    # The parameters are the SDK's.
    def _call(  # noqa: PLR0917
        self,
        system_instructions: str | None,
        input: str | Sequence[Any],  # noqa: A002 - the name that the SDK has
        model_settings: ModelSettings,
        tools: Sequence[Tool],
        output_schema: object,
        handoffs: Sequence[Handoff],
        tracing: object,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: object = None,
        **_: object,
    ) -> ModelCall | None:
        """Return what is asked; None where the tools called depend on more than the prompt."""
        del output_schema, tracing  # they decide how it answers, not what it calls first
        said = _said(input)
        if said is None or model_settings.tool_choice not in {None, "auto"}:
            return None
        if previous_response_id or conversation_id or prompt:
            return None
        return ModelCall(
            prompt=said,
            tools=[*map(_definition, tools), *map(_handoff, handoffs)],
            tenant=self._tenant if isinstance(self._tenant, str) else self._tenant(),
            instructions=system_instructions or "",
        )


def _said(given: str | Sequence[Any]) -> str | None:
    """Return the words of a conversation that begins with them and has no more."""
    if isinstance(given, str):
        return given
    only = given[0] if len(given) == 1 and isinstance(given[0], dict) else {}
    content = only.get("content") if only.get("role") == "user" else None
    return content if isinstance(content, str) else None


def _definition(tool: Tool) -> dict[str, object]:
    if not isinstance(tool, FunctionTool):
        return {"type": tool.name}  # run by the provider, or by the SDK in a way of its own
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.params_json_schema,
    }


def _handoff(handoff: Handoff) -> dict[str, object]:
    return {
        "name": handoff.tool_name,
        "description": handoff.tool_description,
        "input_schema": handoff.input_json_schema,
    }


def _items(calls: Sequence[ToolCall]) -> list[ResponseFunctionToolCall]:
    return [
        ResponseFunctionToolCall(
            type="function_call",
            id=f"fc_{identity}",
            call_id=identity,
            name=call.name,
            arguments=dumps(call.arguments),
            status="completed",
        )
        for call in calls
        for identity in (new_call_id(),)
    ]


def _events(items: Sequence[ResponseFunctionToolCall]) -> list[Any]:
    """Return the events by which a provider streams `items`."""

    def response(output: Sequence[ResponseFunctionToolCall]) -> Response:
        return Response(
            id="semcache",
            created_at=time.time(),
            model="semcache",
            object="response",
            output=[*output],
            parallel_tool_calls=len(items) > 1,
            tool_choice="auto",
            tools=[],
        )

    added = [
        event(item=item, output_index=index, sequence_number=2 * index + number, type=name)
        for index, item in enumerate(items)
        for number, (event, name) in enumerate(
            (
                (ResponseOutputItemAddedEvent, "response.output_item.added"),
                (ResponseOutputItemDoneEvent, "response.output_item.done"),
            ),
            start=1,
        )
    ]
    return [
        ResponseCreatedEvent(response=response([]), sequence_number=0, type="response.created"),
        *added,
        ResponseCompletedEvent(
            response=response(items), sequence_number=len(added) + 1, type="response.completed"
        ),
    ]


def _made(output: Sequence[Any]) -> list[ToolCall]:
    """Return the function calls of an answer; none if some could not be read."""
    calls = [item for item in output if isinstance(item, ResponseFunctionToolCall)]
    return read_calls((call.name, call.arguments or {}) for call in calls)


def __getattr__(name: str) -> object:
    """Return what an old name of this module stands for; it warns for one version."""
    if name == "PlanModel":
        told = "`PlanModel` of the OpenAI Agents SDK is named `AgentsPlanModel` now"
        warnings.warn(told, DeprecationWarning, stacklevel=2)
        return AgentsPlanModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
