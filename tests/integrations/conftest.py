"""A model on loopback that calls tools for orders, and a cache that it is put behind."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from semcache import PlanCache
from semcache.testing import HashEmbedder
from tests.conftest import OpenAIServer, Reply, Request


@pytest.fixture
def cache() -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        yield cache


class Model:
    """What the scripted model was asked, and the way there."""

    def __init__(self, server: OpenAIServer) -> None:
        self._server = server
        self.base_url = server.base_url

    @property
    def asked(self) -> list[str]:
        """The last message of each request, oldest first; those with results of tools apart."""
        return [
            str(messages[-1]["content"])
            for request in self._server.requests
            if (messages := messages_of(request))[-1]["role"] == "user"
        ]


def messages_of(request: Request) -> list[dict[str, Any]]:
    listed: Any = request.body["messages"]
    return list(listed)


@pytest.fixture
def model(openai_server: OpenAIServer) -> Model:
    """A model that tracks or cancels the order of a prompt, then says what the tools returned."""

    def answer(request: Request) -> Reply:
        return _spoken(request, _calls(messages_of(request)))

    openai_server.answers(answer)
    return Model(openai_server)


def _calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]] | str:
    said = [m for m in messages if m["role"] == "user"][-1]["content"]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    order = re.search(r"ORD-\d+", str(said))
    if results or order is None:
        return f"results: {results}"
    name = "cancel" if "ancel" in str(said) else "track"
    arguments = json.dumps({"order_id": order[0]})
    function = {"name": name, "arguments": arguments}
    return [{"id": f"call_{len(said)}", "type": "function", "function": function}]


def _spoken(request: Request, said: list[dict[str, Any]] | str) -> Reply:
    text, calls = (said, None) if isinstance(said, str) else (None, said)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    base: dict[str, Any] = {"id": "chatcmpl-1", "created": 1, "model": "scripted-1"}
    finish = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    if not request.body.get("stream"):
        choice = {"index": 0, "finish_reason": finish, "message": message}
        whole = {"object": "chat.completion", "choices": [choice], "usage": usage}
        return Reply(base | whole)
    if calls:
        message["tool_calls"] = [call | {"index": i} for i, call in enumerate(calls)]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    base["object"] = "chat.completion.chunk"
    events = [json.dumps({**base, **chunk}) for chunk in chunks]
    body = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
    return Reply(body.encode(), headers={"Content-Type": "text/event-stream"})
