"""A drop-in around an `openai` client: the same chat completion is asked for once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from semcache.canonical import MAX_DEPTH, Json, JsonObject, as_object
from semcache.contexts import Closeable
from semcache.errors import InvalidInput
from semcache.responses.cache import ABSENT, Responses
from semcache.responses.key import ModelRequest, response_key

if TYPE_CHECKING:
    from openai import OpenAI, Stream
    from openai.types.chat import ChatCompletionChunk

CONTROL = "cache-control"
"""The header of a request that says what may be kept, in lower case."""


def cached_openai(
    client: "OpenAI", responses: Responses, *, group: str = "openai", ttl_s: float | None = None
) -> "OpenAI":
    """Return `client` with `chat.completions.create` answered from `responses` where it can be.

    What is kept: answers that came whole, streamed or not; a stream is kept when its last chunk is
    read, and comes back as its chunks. What raises is not kept, nor an answer without a choice.
    Threads that ask the same at once make one call, but for streams. Everything else of the client
    is its own: `parse`, `stream`, raw responses and other endpoints go to the server.

    `extra_headers={"Cache-Control": "no-cache"}` takes nothing that is kept, and keeps the new
    answer instead; `"no-store"` keeps nothing either.

    Args:
        client: A client that does not wait in coroutines; its retries and errors stay its own.
        responses: Where answers are kept; clients of one server, organization and project share
            them.
        group: Label for `Responses.bust_group`.
        ttl_s: Seconds from its last use after which an answer is asked for anew; None: as
            `responses` has it.

    Raises:
        InvalidInput: `client` is something else, `AsyncOpenAI` for one.
    """
    from openai import OpenAI  # noqa: PLC0415 - takes half a second

    if not isinstance(client, OpenAI):
        raise InvalidInput(f"the client is a {type(client).__name__}; expected openai.OpenAI")
    # Not a subclass, which would have to open connections of its own; it answers to all names.
    return cast("OpenAI", _Client(client, responses, group, ttl_s))


class _Client:
    def __init__(
        self, client: "OpenAI", responses: Responses, group: str, ttl_s: float | None
    ) -> None:
        self._client = client
        self._kept = (responses, group, ttl_s)
        self.chat = _Chat(client, _Completions(client, *self._kept))

    def with_options(self, **options: Any) -> "_Client":  # noqa: ANN401 - as the client's own
        return _Client(self._client.with_options(**options), *self._kept)

    copy = with_options

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def __enter__(self) -> Self:
        self._client.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.__exit__(kind, error, trace)


class _Chat:
    def __init__(self, client: "OpenAI", completions: "_Completions") -> None:
        self._client = client
        self.completions = completions

    def __getattr__(self, name: str) -> object:
        return getattr(self._client.chat, name)


class _Completions:
    def __init__(
        self, client: "OpenAI", responses: Responses, group: str, ttl_s: float | None
    ) -> None:
        self._client = client
        self._responses = responses
        self._group = group
        self._ttl_s = ttl_s

    def __getattr__(self, name: str) -> object:
        return getattr(self._client.chat.completions, name)

    def create(self, **arguments: Any) -> object:  # noqa: ANN401 - as the client's own
        """Return what the client's own `create` does, from memory where it can be.

        Raises:
            InvalidJson: the arguments cannot be sent: NaN, a set, a cycle.
        """
        said = _said(arguments)
        control = _cache_control(said)
        if "no-store" in control:
            return self._ask(said)
        key = self._key(said)
        answer = self._stream if said.get("stream") else self._complete
        return answer(key, said, bypass="no-cache" in control)

    def _ask(self, said: dict[str, Any]) -> Any:  # noqa: ANN401 - depends on the arguments
        return self._client.chat.completions.create(**said)

    def _complete(self, key: str, said: dict[str, Any], *, bypass: bool) -> object:
        from openai.types.chat import ChatCompletion  # noqa: PLC0415 - loaded with the client

        made: list[ChatCompletion] = []

        def make() -> Json:
            made.append(self._ask(said))
            return _json(made[0])

        response = self._responses.answer(
            key, make, group=self._group, ttl_s=self._ttl_s, bypass=bypass, keep=_is_whole
        )
        if made:
            return made[0]
        # `construct`, as the client does it: servers leave out what the types demand.
        return ChatCompletion.construct(None, **as_object(response.value))

    def _stream(self, key: str, said: dict[str, Any], *, bypass: bool) -> object:
        found = ABSENT if bypass else self._responses.recall(key, group=self._group)
        if isinstance(found, list):
            return _Replayed(found)

        def keep(chunks: list[Json]) -> None:
            self._responses.remember(key, chunks, group=self._group, ttl_s=self._ttl_s)

        return _Recorded(self._ask(said), keep)

    def _key(self, said: Mapping[str, Any]) -> str:
        rest = {name: _sent(value) for name, value in said.items() if name != "timeout"}
        headers = rest.pop("extra_headers", None) or {}
        rest["headers"] = {k: v for k, v in headers.items() if k.lower() != CONTROL}
        client = self._client
        where = [str(client.base_url), client.organization, client.project, client.default_query]
        request = ModelRequest(
            provider=repr(where),
            model=rest.pop("model", ""),
            messages=rest.pop("messages", ()),
            temperature=rest.pop("temperature", None),
            tools=rest.pop("tools", None) or (),
            response_schema=rest.pop("response_format", None),
            sampling=rest,
        )
        return response_key(request)


class _Recorded:
    """A stream as it comes, which is kept when it ends well."""

    def __init__(
        self, stream: "Stream[ChatCompletionChunk]", keep: Callable[[list[Json]], None]
    ) -> None:
        self._stream = stream
        self._keep = keep
        self._chunks: list[Json] = []

    def __iter__(self) -> Iterator["ChatCompletionChunk"]:
        return self

    def __next__(self) -> "ChatCompletionChunk":
        try:
            chunk = next(self._stream)
        except StopIteration:
            chunks, self._chunks = self._chunks, []
            if _ended(chunks):
                self._keep(chunks)
            raise
        self._chunks.append(_json(chunk))
        return chunk

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


class _Replayed(Closeable):
    """A stream that was kept."""

    def __init__(self, chunks: list[Json]) -> None:
        self._chunks = iter(chunks)

    def __iter__(self) -> Iterator["ChatCompletionChunk"]:
        return self

    def __next__(self) -> "ChatCompletionChunk":
        from openai.types.chat import ChatCompletionChunk  # noqa: PLC0415 - loaded with the client

        return ChatCompletionChunk.construct(None, **as_object(next(self._chunks)))

    def close(self) -> None:
        """End the stream; calling it twice is fine."""
        self._chunks = iter(())


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given, with what may be read only once in a list."""
    from openai import NotGiven, Omit  # noqa: PLC0415 - loaded with the client

    given = {k: v for k, v in arguments.items() if not isinstance(v, NotGiven | Omit)}
    for name in ("messages", "tools"):
        value = given.get(name)
        if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
            given[name] = list(value)
    return given


def _cache_control(said: Mapping[str, Any]) -> set[str]:
    headers: Mapping[str, object] = said.get("extra_headers") or {}
    values = (str(value) for name, value in headers.items() if name.lower() == CONTROL)
    return {word.strip().lower() for value in values for word in value.split(",")}


def _sent(value: object, above: frozenset[int] = frozenset()) -> Any:  # noqa: ANN401 - JSON, or what no key is made of
    """Return `value` with the client's own objects as the JSON that they are sent as."""
    from openai import BaseModel  # noqa: PLC0415 - loaded with the client

    inner = above | {id(value)}
    match value:
        case BaseModel():
            return value.to_dict(mode="json", warnings=False)
        case Mapping() | list() | tuple() if id(value) in above or len(above) > MAX_DEPTH:
            return value
        case Mapping():
            return {name: _sent(item, inner) for name, item in value.items()}
        case list() | tuple():
            return [_sent(item, inner) for item in value]
        case _:
            return value


def _json(answer: object) -> Json:
    from openai import BaseModel  # noqa: PLC0415 - loaded with the client

    # A server that speaks no JSON: the client hands on its text.
    if not isinstance(answer, BaseModel):
        return None
    return cast("JsonObject", answer.to_dict(mode="json", warnings=False))


def _is_whole(completion: Json) -> bool:
    """Return whether it is an answer; some servers send errors with status 200."""
    return not as_object(completion).get("error") and _ended([completion])


def _ended(chunks: list[Json]) -> bool:
    """Return whether there is a choice, and each has its reason to end."""
    ended: dict[Json, bool] = {}
    for chunk in chunks:
        choices = as_object(chunk).get("choices")
        for choice in choices if isinstance(choices, list) else ():
            match choice:
                case {"index": int(index), "finish_reason": reason}:
                    ended[index] = ended.get(index, False) or reason is not None
                case {"index": int(index)}:
                    ended.setdefault(index, False)
    return bool(ended) and all(ended.values())
