"""One life of a connection to an MCP server: a thread with an event loop, from hello to goodbye."""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, TypeVar

from semcache.errors import SourceRejected, SourceUnavailable
from semcache.process.forks import ErrorCapture
from semcache.secrecy import remember_environment, remember_headers, remember_url

if TYPE_CHECKING:
    from mcp import Client, ServerNotification
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

log = logging.getLogger(__name__)

MAX_GARBAGE = 20  # lines that are no message before a server is given up
MAX_TOLD = 300  # characters of an error that are told
MAX_LAST_WORDS = 300  # characters of a dead server's stderr that are told
CLOSING_S = 10.0  # the SDK takes up to 7 s to stop a process that will not stop
SESSION_LOST = "Session terminated"  # what the SDK says where an HTTP server forgot the session

T = TypeVar("T")
Ask = Callable[["Client"], Awaitable[T]]
"""What to ask a connected server."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """How an MCP server is reached: by a command (stdio) or a URL (streamable HTTP)."""

    command: tuple[str, ...] = field(default=(), repr=False)
    """Program and arguments; empty for a URL. Not shown: arguments may hold secrets."""
    url: str = field(default="", repr=False)
    """Address of the endpoint; empty for a command."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the command, beside the few (PATH, HOME…) that it gets anyhow."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of each request to the URL: credentials go here."""

    def __post_init__(self) -> None:
        remember_headers(self.headers)
        remember_environment(self.environment)
        remember_url(self.url)


class Gone(Exception):
    """The server went away."""

    def __init__(self, why: str, *, ran: bool) -> None:
        super().__init__(why)
        self.ran = ran
        """Whether the request may have been carried out."""


class Session:
    """A thread, its loop, and a client of one server between hello and goodbye."""

    def __init__(
        self, name: str, server: McpServer, timeout_s: float, changed: Callable[[], None]
    ) -> None:
        self._name = name
        self._server = server
        self._timeout_s = timeout_s
        self._changed = changed
        self._ready = threading.Event()
        # The SDK and its transports raise whatever they meet, even groups of errors; all of it
        # is why there is no connection, told to whoever asks on their own thread.
        self._caught = ErrorCapture()
        self._garbage = 0
        self._lost = False
        self._client: Client | None = None
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._stderr = _Stderr()
        # A daemon that is waited for within bounds: a server that does not stop must keep neither
        # `close` nor the process from ending. anyio's blocking portal waits without end.
        self._thread = threading.Thread(target=self._run, name=f"semcache-mcp-{name}", daemon=True)

    @classmethod
    def started(
        cls, name: str, server: McpServer, timeout_s: float, changed: Callable[[], None]
    ) -> "Session":
        """Return a session whose server has said hello.

        Raises:
            SourceUnavailable: it did not, within the time.
        """
        session = cls(name, server, timeout_s, changed)
        session._thread.start()
        in_time = session._ready.wait(timeout_s)
        if session._client is None or not session.alive:
            session.stop()
            late = f"it did not say hello within {timeout_s:g} s"
            raise SourceUnavailable(
                f"MCP server {name!r} cannot be used: {session._told() if in_time else late}"
                f"{session._stderr.told()}"
            ) from session._caught.error
        return session

    @property
    def alive(self) -> bool:
        """Whether the server can be asked, as far as is known."""
        return self._thread.is_alive() and not self._over.is_set() and not self._lost

    def ask(self, question: Ask[T], timeout_s: float) -> T:
        """Return the answer.

        Raises:
            Gone: the server went away.
            SourceUnavailable: no answer in time, or one that cannot be read.
            SourceRejected: the server refuses.
        """
        client = self._client
        if client is None or not self.alive:
            raise Gone(self._told(), ran=False)

        async def asked() -> T:
            return await question(client)

        coroutine = asked()
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:  # the loop was closed this very moment
            coroutine.close()
            raise Gone(self._told(), ran=False) from error
        try:
            return future.result(timeout_s)
        except TimeoutError as error:
            future.cancel()
            raise SourceUnavailable(
                f"MCP server {self._name!r} gave no answer within {timeout_s:g} s; "
                "give it longer by `timeout_s`"
            ) from error
        except CancelledError as error:
            raise Gone(self._told(), ran=True) from error
        except Exception as error:
            raise self._refined(error) from error

    def stop(self) -> None:
        """End the session and wait for that, within bounds."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join(CLOSING_S)
        self._stderr.close()

    def _end(self) -> None:
        # A task that still says hello listens to nothing else.
        if self._client is None and self._task is not None:
            self._task.cancel()
        self._over.set()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            with self._caught:
                runner.run(self._live())
            self._over.set()
            self._ready.set()

    async def _live(self) -> None:
        from mcp import Client  # noqa: PLC0415 - an extra

        self._task = asyncio.current_task()
        client = Client(
            self._transport(),
            read_timeout_seconds=self._timeout_s,
            message_handler=self._heard,
            cache=None,
        )
        async with client:
            self._client = client
            listening = asyncio.create_task(self._listen(client))
            self._ready.set()
            try:
                await self._over.wait()
            finally:
                listening.cancel()
                (ended,) = await asyncio.gather(listening, return_exceptions=True)
                if isinstance(ended, Exception):
                    log.info("MCP server %r: listening ended: %r", self._name, ended)

    async def _listen(self, client: "Client") -> None:
        """Hear of changes to the list of tools as servers tell them since protocol 2026-07-28.

        Servers of earlier versions tell them unasked, see `_heard`. Where nobody tells, the list is
        asked for again when it is old.
        """
        from mcp import MCPError  # noqa: PLC0415 - an extra
        from mcp.client.subscriptions import (  # noqa: PLC0415 - the same
            ListenNotSupportedError,
            SubscriptionLost,
        )

        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._changed()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as error:
            log.debug("MCP server %r tells of no changes: %s", self._name, type(error).__name__)

    @asynccontextmanager
    async def _transport(self) -> "AsyncIterator[TransportStreams]":
        """Give the streams to the server; the end of what it says ends the session."""
        async with AsyncExitStack() as stack:
            if self._server.url:
                read, write = await self._http(stack)
            else:
                read, write = await self._stdio(stack)
            yield _Watched(read, self._over), write

    async def _stdio(self, stack: AsyncExitStack) -> "TransportStreams":
        from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415 - an extra

        program, *arguments = self._server.command
        parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env=dict(self._server.environment),
            encoding_error_handler="replace",
        )
        return await stack.enter_async_context(stdio_client(parameters, self._stderr.file))

    async def _http(self, stack: AsyncExitStack) -> "TransportStreams":
        import httpx2  # noqa: PLC0415 - comes with the extra
        from mcp.client.streamable_http import (  # noqa: PLC0415 - an extra
            streamable_http_client,
        )

        http = await stack.enter_async_context(
            httpx2.AsyncClient(
                headers=dict(self._server.headers), timeout=self._timeout_s, trust_env=False
            )
        )
        return await stack.enter_async_context(
            streamable_http_client(self._server.url, http_client=http)
        )

    async def _heard(self, message: "ServerNotification | Exception") -> None:
        """Take what the server says unasked; one that talks rubbish is given up."""
        from mcp_types import ToolListChangedNotification  # noqa: PLC0415 - comes with the extra

        if isinstance(message, ToolListChangedNotification):
            self._changed()
        if isinstance(message, Exception):
            self._garbage += 1
            if self._garbage == MAX_GARBAGE:
                self._end()

    def _told(self) -> str:
        """Return why there is no session."""
        if self._garbage >= MAX_GARBAGE:
            return f"it printed {MAX_GARBAGE} lines to stdout that are no MCP messages"
        error = self._caught.error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is None or isinstance(error, asyncio.CancelledError):
            return "it ended"
        return f"{type(error).__name__}: {error}"[:MAX_TOLD]

    def _refined(self, error: Exception) -> Exception:
        """Return what an error of the SDK means for the caller."""
        from mcp import MCPError  # noqa: PLC0415 - an extra
        from mcp_types import (  # noqa: PLC0415 - comes with the extra
            CONNECTION_CLOSED,
            REQUEST_TIMEOUT,
        )

        if isinstance(error, SourceRejected | SourceUnavailable):
            return error
        if not isinstance(error, MCPError):
            told = f"{type(error).__name__}: {error}"[:MAX_TOLD]
            return SourceUnavailable(
                f"MCP server {self._name!r} did not answer as the protocol has it: {told}"
            )
        said = error.message[:MAX_TOLD]
        if error.code == CONNECTION_CLOSED or said == SESSION_LOST:
            self._lost = True
            return Gone(f"{said}{self._stderr.told()}", ran=said != SESSION_LOST)
        if error.code == REQUEST_TIMEOUT:
            return SourceUnavailable(f"MCP server {self._name!r} gave no answer in time: {said}")
        return SourceRejected(f"MCP server {self._name!r} refused: {said}", excerpt=said)


class _Watched:
    """The stream of what a server says, which tells when it ends."""

    def __init__(
        self, inner: "ReadStream[SessionMessage | Exception]", over: asyncio.Event
    ) -> None:
        self._inner = inner
        self._over = over

    @property
    def last_context(self) -> object:
        """What the SDK keeps beside each message; None on stdio."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> "SessionMessage | Exception":
        """Return the next message."""
        return await self._inner.receive()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Stderr:
    """Where a server's stderr goes: logged line by line, the last of it kept for errors."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=5)
        self._reader, writer = os.pipe()
        self.file: TextIO = os.fdopen(writer, "w", encoding="utf-8")
        """What the server writes to."""
        self._thread = threading.Thread(target=self._read, name="semcache-mcp-err", daemon=True)
        self._thread.start()

    def told(self) -> str:
        """Return the last words, to be appended to an error; empty if there were none."""
        words = " ".join(" ".join(self._lines).split())
        return f"; its last words: {words[-MAX_LAST_WORDS:]!r}" if words else ""

    def close(self) -> None:
        """Close our end, once the server has closed its own."""
        self.file.close()
        self._thread.join(1)

    def _read(self) -> None:
        with os.fdopen(self._reader, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(10_000):
                self._lines.append(line)
                log.debug("MCP server: %s", line.rstrip())
