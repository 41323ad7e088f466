"""What each call of a door takes, whom it is for, and what it has to wait for."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from semcache.runs.tools import Arguments, Nothing
from semcache.server.tokens import Right

Pool = Literal["read", "write", "ask"]
"""Which calls wait for one another: a quick one never for one that plans or embeds a plan."""


class PromptArguments(Arguments):
    """A prompt, and what is known of it."""

    prompt: str = Field(description="The prompt, as a user would say it")
    params: dict[str, object] | None = Field(
        default=None, description="Values that are known already, by name"
    )


class LookupArguments(PromptArguments):
    """A prompt to look up."""

    tools: list[dict[str, object]] | None = Field(
        default=None,
        description="What the plan may call: tool definitions as OpenAI, Anthropic and MCP write "
        "them, in place of the operations of the server",
    )
    threshold: float | None = Field(
        default=None, description="A stricter cosine to exceed than that of the server"
    )
    what_if: bool = Field(
        default=False, description="Only see what would be found: nothing is counted or kept"
    )


class StoreArguments(PromptArguments):
    """A plan that was made for a prompt."""

    plan: dict[str, object] | list[object] | str = Field(
        description="The plan: any JSON with calls in it, or its text"
    )
    tools: list[dict[str, object]] | None = Field(
        default=None, description="What the plan may call; see `lookup`"
    )
    tags: list[str] = Field(default=[], description="Names to invalidate it by")
    ignore: list[str] = Field(
        default=[], description="Fields that are new each time, as keys or paths: `/calls/*/id`"
    )
    seconds: float | None = Field(default=None, ge=0, description="How long making it took")
    prompt_tokens: int = Field(default=0, ge=0, description="Tokens that the model was sent")
    completion_tokens: int = Field(default=0, ge=0, description="Tokens that it answered")


class AskArguments(PromptArguments):
    """A prompt to answer."""

    answers: dict[str, object] | None = Field(
        default=None, description="What the person has said already, by topic"
    )


class AnswerArguments(Arguments):
    """What a person said to the questions of a run."""

    token: str = Field(description="The `token` of `needs` that `ask` came back with")
    answers: dict[str, object] = Field(description="What the person said, by topic")


class FeedbackArguments(Arguments):
    """A judgment."""

    found: str = Field(description="The `id` of what `lookup` or `ask` found")
    right: bool = Field(description="Whether the plan was the right one")


class InvalidateArguments(Arguments):
    """Which plans to remove; several remove what any of them names."""

    id: str | None = Field(default=None, description="The id of an entry")
    tag: str | None = Field(default=None, description="A tag that plans were stored with")
    operation: str | None = Field(default=None, description="An operation that plans call")
    key: str | None = Field(default=None, description="A Prompt Schema Key")


@dataclass(frozen=True, slots=True)
class CallKind:
    """A call of a door."""

    arguments: type[Arguments]
    summary: str
    rights: frozenset[Right]
    """Any one of them is enough."""
    pool: Pool = "read"
    operations: bool = False
    """Whether it needs operations, which a bare plan cache has not."""


_READ = frozenset[Right]({"read"})
_WRITE = frozenset[Right]({"write"})
_ASK = frozenset[Right]({"ask"})

CALLS: dict[str, CallKind] = {
    "ask": CallKind(
        AskArguments,
        "Answer a prompt from the plan cache; plan only if no plan fits.",
        _ASK,
        pool="ask",
        operations=True,
    ),
    "answer": CallKind(
        AnswerArguments,
        "Go on with a run that asked something (`needs`), with what the person said.",
        _ASK,
        pool="ask",
        operations=True,
    ),
    "lookup": CallKind(
        LookupArguments,
        "Return the cached plan for a prompt, with its own values; run nothing.",
        _READ,
    ),
    "explain": CallKind(
        PromptArguments, "Tell why a prompt hits or misses, tier by tier and gate by gate.", _READ
    ),
    "store": CallKind(
        StoreArguments,
        "Keep the plan that was made for a prompt, for all prompts like it.",
        _WRITE,
        pool="write",
    ),
    "feedback": CallKind(
        FeedbackArguments,
        "Tell whether a plan that was found was right.",
        _ASK | _WRITE,
        pool="write",
    ),
    "invalidate": CallKind(
        InvalidateArguments,
        "Remove plans, by id, tag, operation or key.",
        _WRITE,
        pool="write",
    ),
    "statistics": CallKind(
        Nothing, "Count entries, hits and misses of your tenant, and what hits saved.", _READ
    ),
}
"""Name → call, in the order in which they are told of."""
