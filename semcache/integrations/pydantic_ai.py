"""Pydantic AI: a model whose first tool calls come from a plan cache."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Unpack

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
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        ToolCallPart,
        UserPromptPart,
    )
    from pydantic_ai.models import CompletedStreamedResponse, ModelRequestParameters
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    raise MissingExtra(
        "the adapter for Pydantic AI needs `pip install 'semcache-plans[pydantic-ai]'`"
    ) from error


class PlanModel(WrapperModel):
    """A model that asks a plan cache before the model that it wraps.

    For `Agent(PlanModel("openai:gpt-…", cache, allow=[...]))`. Served are calls of function tools
    alone; output tools are answers, which the model gives itself.
    """

    def __init__(
        self,
        wrapped: Any,  # noqa: ANN401 - a model or its name, as Pydantic AI takes them
        cache: PlanCacheDoor,
        *,
        tenant: str | Callable[[], str] = "default",
        **options: Unpack[ServingOptions],
    ) -> None:
        """Wrap `wrapped`; `tenant` is asked at each request, the rest is as in `ToolCallPlans`.

        Raises:
            InvalidInput: `cache` is no plan cache, or `allow` is one text.
        """
        super().__init__(wrapped)
        self._plans = ToolCallPlans(cache, **options)
        self._tenant = tenant

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Answer with cached tool calls, or ask the model."""
        call = self._call(messages, model_settings, model_request_parameters)
        async with self._plans.aturn(call) as turn:
            if turn.calls is not None:
                return self._response(turn.calls)
            response = await super().request(messages, model_settings, model_request_parameters)
            turn.made = _made(response)
            return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,  # noqa: ANN401 - handed on as it is
    ) -> AsyncGenerator[Any]:
        """Stream cached tool calls, or what the model streams."""
        call = self._call(messages, model_settings, model_request_parameters)
        async with self._plans.aturn(call) as turn:
            if turn.calls is not None:
                yield CompletedStreamedResponse(
                    self._response(turn.calls),
                    model_request_parameters=model_request_parameters,
                    replay_events=True,
                )
                return
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
                turn.made = _made(stream.get())

    def _call(
        self,
        messages: Sequence[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelCall | None:
        """Return what is asked; None where the tools called depend on more than the prompt."""
        first = messages[0] if len(messages) == 1 else None
        if not isinstance(first, ModelRequest) or (settings or {}).get("tool_choice"):
            return None
        said = [part for part in first.parts if isinstance(part, UserPromptPart)]
        system = [part.content for part in first.parts if isinstance(part, SystemPromptPart)]
        if len(said) != 1 or len(said) + len(system) != len(first.parts):
            return None
        if not isinstance(said[0].content, str):
            return None  # pictures and files decide, too
        return ModelCall(
            prompt=said[0].content,
            tools=[
                *map(_definition, (*parameters.function_tools, *parameters.output_tools)),
                *({"type": tool.kind} for tool in parameters.native_tools),
            ],
            tenant=self._tenant if isinstance(self._tenant, str) else self._tenant(),
            instructions="\n".join(filter(None, [*system, first.instructions])),
        )

    def _response(self, calls: Sequence[ToolCall]) -> ModelResponse:
        parts = [
            ToolCallPart(call.name, call.arguments, tool_call_id=new_call_id()) for call in calls
        ]
        return ModelResponse(parts=parts, model_name=self.model_name, provider_name="semcache")


def _definition(tool: ToolDefinition) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters_json_schema,
    }


def _made(response: ModelResponse) -> list[ToolCall]:
    """Return the tool calls of a model's answer; none if some could not be read."""
    if response.state != "complete":
        return []
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return read_calls((call.tool_name, call.args or {}) for call in calls)
