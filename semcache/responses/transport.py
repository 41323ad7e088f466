"""Transports of an HTTP client that answer from memory what was asked before."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from semcache.canonical import Json
from semcache.process.forks import Closeable
from semcache.responses.cache import ABSENT, Absent, Responses
from semcache.responses.openai_protocol import (
    CacheableRequest,
    answer_of,
    cacheable,
    is_whole,
    is_whole_stream,
)

if TYPE_CHECKING:
    import anyio

MARK = {"x-semcache": "hit"}
"""Header of an answer from memory."""

_OF_THE_CONNECTION = frozenset({
    "content-encoding", "content-length", "set-cookie", "transfer-encoding",
})  # fmt: skip
"""Headers of an answer that are not true of it any more once it was read."""


@dataclass(kw_only=True, eq=False)
class _Cached:
    """What both transports have in common: what is kept, and what comes out of it."""

    http: Any
    """The client of httpx or httpx2 that sends what is not kept; see `cached_http`."""
    library: Any
    """The package that it is of."""
    responses: Responses
    group: str
    ttl_s: float | None

    def _recalled(self, asked: CacheableRequest) -> "Json | Absent":
        return ABSENT if asked.bypass else self.responses.recall(asked.key, group=self.group)

    def _keep(self, key: str, answer: Json) -> None:
        self.responses.remember(key, answer, group=self.group, ttl_s=self.ttl_s)

    def _from_memory(self, answer: Json) -> Any:  # noqa: ANN401 - a response of either package
        return self.library.Response(200, headers=MARK, json=answer)

    def _stream_from_memory(self, events: str) -> Any:  # noqa: ANN401 - as above
        headers = {"content-type": "text/event-stream; charset=utf-8", **MARK}
        return self.library.Response(200, headers=headers, content=events.encode())

    def _as_it_came(self, response: Any) -> Any:  # noqa: ANN401 - as above
        """Return a response that was read, for a client that reads it again."""
        return self.library.Response(
            response.status_code, headers=_lasting(response), content=response.content
        )

    def _recorded(self, response: Any, recorded: object) -> Any:  # noqa: ANN401 - as above
        return self.library.Response(200, headers=_lasting(response), stream=recorded)


class CachedTransport(_Cached, Closeable):
    """A transport for `Client`. Safe from several threads."""

    def handle_request(self, request: Any) -> Any:  # noqa: ANN401 - of httpx or httpx2
        """Return the answer that is kept, else the server's. Raises what the HTTP client does."""
        asked = cacheable(request, request.read())
        if asked is None:
            return self._send(request)
        if asked.stream:
            return self._streamed(request, asked)
        came: list[Any] = []

        def make() -> Json:
            response = self._send(request)
            response.read()
            came.append(response)
            return answer_of(response)

        answer = self.responses.answer(
            asked.key,
            make,
            group=self.group,
            ttl_s=self.ttl_s,
            bypass=asked.bypass,
            keep=is_whole,
        )
        return self._as_it_came(came[0]) if came else self._from_memory(answer.value)

    def _streamed(self, request: Any, asked: CacheableRequest) -> Any:  # noqa: ANN401 - as above
        found = self._recalled(asked)
        if isinstance(found, str):
            return self._stream_from_memory(found)
        response = self._send(request)
        if response.status_code != 200:
            return response
        stream: Any = type("Recorded", (_Recorded, self.library.SyncByteStream), {})
        return self._recorded(response, stream(response, partial(self._keep, asked.key)))

    def _send(self, request: Any) -> Any:  # noqa: ANN401 - as above
        return self.http.send(request, stream=True, auth=None, follow_redirects=False)

    def close(self) -> None:
        """Close the HTTP client."""
        self.http.close()


@dataclass(slots=True)
class _Seat:
    """Where those wait who ask the same at once."""

    lock: "anyio.Lock"
    users: int = 0
    failures: int = 0
    error: Exception | None = None


@dataclass(slots=True)
class _Seats:
    """One caller at a time for each key, as `cache.single_flight` has it for threads."""

    taken: dict[str, _Seat] = field(default_factory=dict)

    @asynccontextmanager
    async def enter(self, key: str) -> AsyncIterator[None]:
        """Hold `key` alone. What the holder raises, all raise who wait for it."""
        import anyio  # noqa: PLC0415 - comes with the HTTP client

        seat = self.taken.setdefault(key, _Seat(anyio.Lock()))
        seat.users += 1
        failures = seat.failures
        try:
            async with seat.lock:
                if seat.error is not None and seat.failures > failures:
                    raise seat.error
                try:
                    yield
                except Exception as error:
                    seat.error = error
                    seat.failures += 1
                    raise
        finally:
            seat.users -= 1
            if not seat.users:
                del self.taken[key]


@dataclass(kw_only=True, eq=False)
class AsyncCachedTransport(_Cached):
    """A transport for `AsyncClient`. One event loop uses it; the store is asked in threads."""

    seats: _Seats = field(default_factory=_Seats)

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401 - of either package
        """Return the answer that is kept, else the server's. Raises what the HTTP client does."""
        asked = cacheable(request, await request.aread())
        if asked is None:
            return await self._send(request)
        if asked.stream:
            return await self._streamed(request, asked)
        if asked.bypass:
            return await self._made(request, asked)
        async with self.seats.enter(asked.key):
            found = await _in_thread(partial(self._recalled, asked))
            if found is not ABSENT:
                return self._from_memory(found)
            return await self._made(request, asked)

    async def _made(self, request: Any, asked: CacheableRequest) -> Any:  # noqa: ANN401 - as above
        response = await self._send(request)
        await response.aread()
        answer = answer_of(response)
        if is_whole(answer):
            await _in_thread(partial(self._keep, asked.key, answer))
        return self._as_it_came(response)

    async def _streamed(self, request: Any, asked: CacheableRequest) -> Any:  # noqa: ANN401 - as above
        found = await _in_thread(partial(self._recalled, asked))
        if isinstance(found, str):
            return self._stream_from_memory(found)
        response = await self._send(request)
        if response.status_code != 200:
            return response
        stream: Any = type("Recorded", (_AsyncRecorded, self.library.AsyncByteStream), {})
        return self._recorded(response, stream(response, partial(self._keep, asked.key)))

    async def _send(self, request: Any) -> Any:  # noqa: ANN401 - as above
        return await self.http.send(request, stream=True, auth=None, follow_redirects=False)

    async def aclose(self) -> None:
        """Close the HTTP client."""
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Record:
    """What came of a stream, kept once it is known to be whole."""

    def __init__(self, response: Any, keep: "partial[None]") -> None:  # noqa: ANN401 - as above
        self._response = response
        self._keep = keep
        self._pieces: list[bytes] = []

    def _whole(self, *, over: bool) -> str | None:
        """Return all that came, if it is a whole answer, and forget it."""
        text = b"".join(self._pieces).decode("utf-8", "replace")
        self._pieces = []
        return text if is_whole_stream(text, over=over) else None


class _Recorded(_Record):
    """A stream that is read piece by piece; it becomes a `SyncByteStream` of the HTTP library."""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._response.iter_bytes():
            self._pieces.append(piece)
            yield piece
        self._end(over=True)

    def close(self) -> None:
        # The client stops at "[DONE]", before the stream has ended.
        self._end(over=False)
        self._response.close()

    def _end(self, *, over: bool) -> None:
        text = self._whole(over=over)
        if text is not None:
            self._keep(text)


class _AsyncRecorded(_Record):
    """The same for a client that is awaited: an `AsyncByteStream`."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            self._pieces.append(piece)
            yield piece
        await self._end(over=True)

    async def aclose(self) -> None:
        await self._end(over=False)
        await self._response.aclose()

    async def _end(self, *, over: bool) -> None:
        text = self._whole(over=over)
        if text is not None:
            await _in_thread(partial(self._keep, text))


async def _in_thread(work: "partial[Any]") -> Any:  # noqa: ANN401 - what the work gives
    import anyio  # noqa: PLC0415 - comes with the HTTP client

    with anyio.CancelScope(shield=True):  # who is cancelled still keeps what has come
        return await anyio.to_thread.run_sync(work)


def _lasting(response: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - as above
    headers = response.headers.multi_items()
    return [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
