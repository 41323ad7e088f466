import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from semcache.errors import InvalidInput
from semcache.responses.cache import Responses
from semcache.responses.cached_client import cached_http, cached_openai
from tests.conftest import OpenAIServer, Reply

T = TypeVar("T")

ASK: Any = {"model": "gpt-x", "messages": [{"role": "user", "content": "How many?"}]}
TOOL: Any = {"type": "function", "function": {"name": "sum", "parameters": {"type": "object"}}}
NO_CACHE = {"Cache-Control": "no-cache"}


@pytest.fixture
def responses() -> Responses:
    return Responses.open()


@pytest.fixture
def plain(openai_server: OpenAIServer) -> Iterator[OpenAI]:
    with OpenAI(api_key="k", base_url=openai_server.base_url, max_retries=0) as client:
        yield client


@pytest.fixture
def client(plain: OpenAI, responses: Responses) -> OpenAI:
    return cached_openai(plain, responses)


def chunk(text: str | None, finish: str | None = None) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def stream(*chunks: dict[str, Any], done: bool = True) -> Reply:
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    body = "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()
    return Reply(body, headers={"Content-Type": "text/event-stream"})


def said(chunks: Any) -> str:
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


# specs: B-7
def test_the_same_completion_is_asked_for_once_and_each_answer_is_the_callers_own(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("three")
    for _ in range(3):
        answer = client.chat.completions.create(**ASK)
        assert answer.choices[0].message.content == "three"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 18
        answer.choices[0].message.content = "changed"


# specs: B-2
@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-y"},
        {"messages": [{"role": "user", "content": "How many now?"}]},
        {"temperature": 0.5},
        {"max_tokens": 9},
        {"seed": 1},
        {"stop": ["."]},
        {"tools": [TOOL]},
        {"response_format": {"type": "json_object"}},
        {"extra_body": {"min_p": 0.1}},
        {"extra_body": {"headers": [["x-route", "b"]]}},
        {"extra_headers": {"X-Route": "b"}},
        {"extra_headers": {"Host": "b.example"}},
    ],
)
def test_what_the_answer_depends_on_is_asked_anew(
    change: dict[str, Any], openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("one", "two")
    assert client.chat.completions.create(**ASK).choices[0].message.content == "one"
    assert client.chat.completions.create(**ASK | change).choices[0].message.content == "two"


# specs: B-2
def test_how_it_is_sent_and_how_it_is_spelled_does_not_matter(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("one")
    for spelled in (
        ASK | {"temperature": 0, "tools": [TOOL]},
        ASK | {"temperature": 0.0, "tools": iter([TOOL]), "timeout": 5, "n": openai.omit},
        ASK | {"temperature": 0, "tools": (TOOL,), "messages": iter(ASK["messages"])},
    ):
        assert client.chat.completions.create(**spelled).choices[0].message.content == "one"
    assert len(openai_server.requests) == 1


# specs: B-7
def test_an_error_is_not_kept_whatever_its_status(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.replies(
        Reply({"error": {"message": "no"}}, status=400), Reply({"error": {"message": "no"}})
    )
    openai_server.says("one")
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(**ASK)
    client.chat.completions.create(**ASK)
    assert client.chat.completions.create(**ASK).choices[0].message.content == "one"


# specs: B-7
def test_a_stream_is_kept_whole_and_comes_back_as_its_chunks(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    usage = chunk(None) | {"choices": [], "usage": {"total_tokens": 3}}
    openai_server.replies(stream(chunk("th"), chunk("ree"), chunk(None, "stop"), usage))
    first = list(client.chat.completions.create(**ASK, stream=True))
    with client.chat.completions.create(**ASK, stream=True) as again:
        assert list(again) == first
    assert said(first) == "three"
    assert len(openai_server.requests) == 1


def test_a_stream_and_a_whole_answer_are_two_requests(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("whole")
    openai_server.replies(stream(chunk("streamed", "stop")))
    client.chat.completions.create(**ASK)
    assert said(client.chat.completions.create(**ASK, stream=True)) == "streamed"


@pytest.mark.parametrize("how", ["broken off", "an error inside", "not JSON"])
def test_a_stream_that_did_not_end_well_is_not_kept(
    how: str, openai_server: OpenAIServer, client: OpenAI
) -> None:
    whole = stream(chunk("th"), chunk("ree", "stop"))
    error = {"error": {"message": "overloaded"}}
    cut = {
        "broken off": stream(chunk("th"), done=False),
        "an error inside": stream(chunk("th"), error),
        "not JSON": Reply(b"data: {\n\n", headers={"Content-Type": "text/event-stream"}),
    }
    openai_server.replies(cut[how], whole)
    with suppress(openai.APIError, ValueError):
        list(client.chat.completions.create(**ASK, stream=True))
    assert said(client.chat.completions.create(**ASK, stream=True)) == "three"
    assert len(openai_server.requests) == 2


def test_a_kept_stream_can_be_closed_early(openai_server: OpenAIServer, client: OpenAI) -> None:
    openai_server.replies(stream(chunk("th"), chunk("ree", "stop")))
    live = client.chat.completions.create(**ASK, stream=True)
    assert live.response.status_code == 200
    list(live)
    kept = client.chat.completions.create(**ASK, stream=True)
    next(kept)
    kept.close()
    assert kept.response.headers["x-semcache"] == "hit"


# specs: B-7
def test_no_cache_asks_anew_and_keeps_that_and_no_store_keeps_nothing(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("1", "2", "3")
    headers: list[Any] = [None, NO_CACHE, {"cache-control": "max-age=0, No-Store"}, None]
    answers = [client.chat.completions.create(**ASK, extra_headers=h) for h in headers]
    assert [a.choices[0].message.content for a in answers] == ["1", "2", "3", "2"]


def test_no_cache_holds_for_streams_too(openai_server: OpenAIServer, client: OpenAI) -> None:
    openai_server.replies(*(stream(chunk(text, "stop")) for text in "12"))
    create = client.chat.completions.create
    assert said(create(**ASK, stream=True)) == "1"
    assert said(create(**ASK, stream=True, extra_headers=NO_CACHE)) == "2"
    assert said(create(**ASK, stream=True)) == "2"


def test_it_is_all_the_same_how_an_answer_is_asked_for(
    openai_server: OpenAIServer, client: OpenAI, plain: OpenAI
) -> None:
    openai_server.says('{"count": 3}')
    assert client.base_url == plain.base_url
    first = client.chat.completions.create(**ASK).choices[0].message.content
    parsed = client.chat.completions.parse(**ASK).choices[0].message.content
    # As LangChain's ChatOpenAI asks.
    raw = client.chat.completions.with_raw_response.create(**ASK)
    assert raw.headers["x-semcache"] == "hit"
    assert raw.parse().choices[0].message.content == first == parsed
    assert len(openai_server.requests) == 1


def test_embeddings_are_asked_for_once(openai_server: OpenAIServer, client: OpenAI) -> None:
    first, again = (client.embeddings.create(model="e", input=["a"]).data for _ in range(2))
    assert first == again
    client.embeddings.create(model="e", input=["b"])
    assert len(openai_server.requests) == 2


def response(status: str) -> dict[str, Any]:
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": status,
        "content": [{"type": "output_text", "text": "three", "annotations": []}],
    }
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "gpt-x",
        "status": status,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def test_a_response_is_kept_once_it_is_complete(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.replies(Reply(response("incomplete")), Reply(response("completed")))
    for _ in range(3):
        assert client.responses.create(model="gpt-x", input="How many?").output_text == "three"
    assert len(openai_server.requests) == 2


def test_a_streamed_response_is_kept_with_its_last_event(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    whole = {"type": "response.completed", "sequence_number": 1, "response": response("completed")}
    openai_server.replies(stream(whole, done=False))
    for _ in range(2):
        events = client.responses.create(model="gpt-x", input="How many?", stream=True)
        assert [event.type for event in events] == ["response.completed"]
    assert len(openai_server.requests) == 1


def test_what_is_asked_in_the_background_goes_to_the_server(
    openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.replies(*[Reply(response("completed"))] * 2)
    for _ in range(2):
        client.responses.create(model="gpt-x", input="How many?", background=True)
    assert openai_server.unused == 0


@pytest.mark.parametrize(
    "options",
    [
        {"default_headers": {"X-Tenant": "b"}},
        {"default_headers": {"Cookie": "session=b"}},
        {"default_query": {"tenant": "b"}},
        {"api_key": "another"},
        {"organization": "another"},
        {"project": "another"},
    ],
)
def test_no_client_gets_what_another_was_told_with_other_defaults(
    options: dict[str, Any], openai_server: OpenAIServer, client: OpenAI
) -> None:
    openai_server.says("one", "two")
    assert client.chat.completions.create(**ASK).choices[0].message.content == "one"
    other = client.with_options(**options)
    assert other.chat.completions.create(**ASK).choices[0].message.content == "two"
    assert client.chat.completions.create(**ASK).choices[0].message.content == "one"


def test_what_an_http_client_adds_to_requests_is_compared_and_sent(
    openai_server: OpenAIServer, responses: Responses
) -> None:
    openai_server.says("one", "two")
    for tenant in "aba":
        http: Any = cached_http(httpx.Client(headers={"X-Tenant": tenant}), responses)
        with OpenAI(api_key="k", base_url=openai_server.base_url, http_client=http) as client:
            said = client.chat.completions.create(**ASK).choices[0].message.content
        assert said == {"a": "one", "b": "two"}[tenant]
    assert [request.headers["x-tenant"] for request in openai_server.requests] == ["a", "b"]


# Awaited ─────────────────────────────────────────────────────────────────────────────────────────


def awaited(
    server: OpenAIServer, responses: Responses, work: Callable[[AsyncOpenAI], Awaitable[T]]
) -> T:
    """Return what `work` does with a cached client that is awaited."""

    async def run() -> T:
        plain = AsyncOpenAI(api_key="k", base_url=server.base_url, max_retries=0)
        async with cached_openai(plain, responses) as client:
            return await work(client)

    return asyncio.run(run())


def test_coroutines_that_ask_the_same_at_once_make_one_call_and_share_it_with_threads(
    openai_server: OpenAIServer, client: OpenAI, responses: Responses
) -> None:
    openai_server.says("three")

    async def work(client: AsyncOpenAI) -> list[str | None]:
        answers = await asyncio.gather(*(client.chat.completions.create(**ASK) for _ in range(8)))
        return [answer.choices[0].message.content for answer in answers]

    assert awaited(openai_server, responses, work) == ["three"] * 8
    assert client.chat.completions.create(**ASK).choices[0].message.content == "three"
    assert len(openai_server.requests) == 1


def test_coroutines_that_wait_for_a_call_that_fails_hear_of_it_together(
    openai_server: OpenAIServer, responses: Responses
) -> None:
    openai_server.replies(Reply(instead="drop"))

    async def work(client: AsyncOpenAI) -> list[type]:
        asked = [client.chat.completions.create(**ASK) for _ in range(8)]
        return [type(e) for e in await asyncio.gather(*asked, return_exceptions=True)]

    assert awaited(openai_server, responses, work) == [openai.APIConnectionError] * 8
    assert len(openai_server.requests) == 1


def test_an_awaited_stream_is_kept_and_comes_back(
    openai_server: OpenAIServer, responses: Responses
) -> None:
    openai_server.replies(stream(chunk("th"), chunk("ree", "stop")))

    async def work(client: AsyncOpenAI) -> list[str]:
        texts = []
        for _ in range(2):
            chunks = await client.chat.completions.create(**ASK, stream=True)
            texts.append(said([each async for each in chunks]))
        return texts

    assert awaited(openai_server, responses, work) == ["three", "three"]
    assert len(openai_server.requests) == 1


def test_a_client_is_closed_with_its_drop_in(plain: OpenAI, responses: Responses) -> None:
    with cached_openai(plain, responses) as client:
        assert not client.is_closed()
    assert plain.is_closed()


@pytest.mark.parametrize("what", [cached_openai, cached_http])
def test_another_kind_of_client_is_refused(what: Any, responses: Responses) -> None:
    with pytest.raises(InvalidInput, match=r"client is of type object"):
        what(object(), responses)


def test_a_client_whose_hooks_change_requests_after_they_are_compared_is_refused(
    responses: Responses,
) -> None:
    def add(request: httpx.Request) -> None:
        request.headers["X-Tenant"] = "a"

    given = httpx.Client(event_hooks={"request": [add]})
    with given:
        http: Any = given
        with pytest.raises(InvalidInput, match="let its `auth` or `headers`"):
            cached_http(http, responses)
        client = OpenAI(api_key="k", http_client=http)
        with pytest.raises(InvalidInput, match="hooks of requests"):
            cached_openai(client, responses)
