"""The OpenAI protocol: which requests memory may answer, and whether an answer came whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from semcache.canonical import Json, JsonObject, as_list, as_object, loads
from semcache.errors import InvalidJson
from semcache.responses.key import ModelRequest, response_key

ENDPOINTS = ("/completions", "/responses", "/embeddings")
"""Ends of the paths whose answers depend on nothing but the request: `/chat/completions` too."""
CONTROL = "cache-control"
"""The header of a request that says what may be kept, in lower case."""
_HOW_IT_IS_SENT = frozenset({
    CONTROL, "accept-encoding", "baggage", "connection", "content-length", "idempotency-key",
    "traceparent", "tracestate", "user-agent",
})  # fmt: skip
"""Headers that no answer depends on; `x-stainless-…`, by which the client tells of itself, too."""


@dataclass(frozen=True, slots=True)
class CacheableRequest:
    """A request that may be answered from memory."""

    key: str
    stream: bool
    bypass: bool


def cacheable(request: Any, content: bytes) -> CacheableRequest | None:  # noqa: ANN401 - of httpx or httpx2
    """Return what a request asks for; None if no memory may answer it."""
    if request.method != "POST" or not request.url.path.endswith(ENDPOINTS):
        return None
    try:
        body = loads(content.decode(), what="the request")
    except (InvalidJson, UnicodeDecodeError):
        return None
    control = {word.strip().lower() for word in request.headers.get(CONTROL, "").split(",")}
    if not isinstance(body, dict) or body.get("background") or "no-store" in control:
        return None
    stream = bool(body.get("stream"))
    return CacheableRequest(_key(request, body), stream, "no-cache" in control)


def _key(request: Any, body: JsonObject) -> str:  # noqa: ANN401 - as above
    headers = sorted(
        (name.lower(), value)
        for name, value in request.headers.items()
        if name.lower() not in _HOW_IT_IS_SENT and not name.lower().startswith("x-stainless-")
    )
    rest: dict[str, Any] = {**body}
    if not rest.get("stream"):
        rest.pop("stream", None)  # `parse` says that it wants none, `create` nothing
    tools = rest.get("tools")
    in_any_order = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
    asked = ModelRequest(
        provider=str(request.url),
        model=str(rest.pop("model", "")),
        temperature=rest.pop("temperature", None),
        tools=rest.pop("tools") if in_any_order else (),
        sampling={"body": rest, "headers": headers},  # apart: a body may have any member
    )
    return response_key(asked)


def answer_of(response: Any) -> Json:  # noqa: ANN401 - as above
    """Return the answer; None for an error, and from a server that speaks no JSON."""
    if response.status_code != 200:
        return None
    try:
        return loads(response.content.decode("utf-8", "replace"), what="the answer")
    except InvalidJson:
        return None


_LAST = "[DONE]"
"""What a stream of chat completions says last."""


def is_whole(answer: Json) -> bool:
    """Return whether it may be kept: an error, which some servers send with status 200, may not."""
    found = as_object(answer)
    if not found or found.get("error"):
        return False
    if found.get("object") == "response":
        return found.get("status") == "completed"
    if isinstance(found.get("data"), list):  # embeddings
        return bool(found["data"])
    return _ended([found])


def is_whole_stream(text: str, *, over: bool) -> bool:
    """Return whether the events of a stream are a whole answer.

    `over`: whether the server ended the stream; else its last event must say that it is the last.
    """
    events: list[JsonObject] = []
    last = False
    for line in text.splitlines():
        name, _, said = line.partition(":")
        if name != "data":
            continue
        if said.strip() == _LAST:
            last = True
            continue
        try:
            events.append(as_object(loads(said.strip(), what="an event")))
        except InvalidJson:
            return False
    if any(event.get("error") or event.get("type") == "error" for event in events):
        return False
    if events and events[-1].get("type") == "response.completed":
        return True
    return (over or last) and _ended(events)


def _ended(chunks: Iterable[JsonObject]) -> bool:
    """Return whether there is a choice, and each has its reason to end."""
    ended: dict[Json, bool] = {}
    for chunk in chunks:
        for choice in as_list(chunk.get("choices")):
            match choice:
                case {"index": int(index), "finish_reason": reason}:
                    ended[index] = ended.get(index, False) or reason is not None
                case {"index": int(index)}:
                    ended.setdefault(index, False)
    return bool(ended) and all(ended.values())
