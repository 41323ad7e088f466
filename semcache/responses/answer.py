"""Answers of the OpenAI protocol: whether one came whole, streamed or not."""

from collections.abc import Iterable

from semcache.canonical import Json, JsonObject, as_object, loads
from semcache.errors import InvalidJson

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
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            match choice:
                case {"index": int(index), "finish_reason": reason}:
                    ended[index] = ended.get(index, False) or reason is not None
                case {"index": int(index)}:
                    ended.setdefault(index, False)
    return bool(ended) and all(ended.values())
