"""Operations from MCP servers: their tools, by the official SDK, for callers that are not async.

A tool is named `server.tool`, always: adding a server never renames the tools of another, so plans
that were made before stay good. A tool writes unless its server hints `readOnlyHint`.
"""

import logging
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from semcache.canonical import Json, JsonObject, as_object, loads, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Effect, Operation
from semcache.errors import (
    InvalidJson,
    InvalidOperation,
    InvalidSettings,
    MissingExtra,
    SourceError,
    SourceRejected,
    SourceUnavailable,
)
from semcache.ports import Clock
from semcache.process.forks import Closeable
from semcache.sources.definitions import Definitions, Uses, shortened
from semcache.sources.documents import Documents
from semcache.sources.mcp.connection import Connection
from semcache.sources.mcp.session import McpServer
from semcache.sources.overrides import Overrides

if TYPE_CHECKING:
    from mcp import Client, Tool
    from mcp_types import CallToolResult

log = logging.getLogger(__name__)

MAX_PAGES = 100  # of one list of tools
MAX_TOOLS = 5_000
FIRST_RETRY_S, LAST_RETRY_S = 5.0, 300.0
"""Seconds until a server that failed is asked for its tools again, doubled each time: a dead one
costs `timeout_s` each time, and one that is restarted is back within a few."""
MAX_EXCERPT = 500  # characters of a tool's error that are told


def server_at(address: str) -> McpServer:
    """Return the server at an http address, else the one that a command line starts.

    Raises:
        InvalidSettings: it is neither.
    """
    if address.startswith(("http://", "https://")):
        return McpServer(url=address)
    try:
        command = tuple(shlex.split(address))
    except ValueError as error:
        raise InvalidSettings(f"{address!r} is no command line: {error}") from error
    return McpServer(command=command)


class McpServers(Closeable):
    """MCP servers and their tools. Safe from several threads. Close it: it holds processes."""

    def __init__(
        self,
        connections: Mapping[str, Connection],
        stale: set[str],
        *,
        ttl_s: float,
        overrides: Overrides,
        clock: Callable[[], float],
    ) -> None:
        self._connections = dict(connections)
        self._overrides = overrides
        self._ttl_s = ttl_s
        self._clock = clock
        self._lists: dict[str, _Listed] = {}
        self._stale = stale
        self._failures: dict[str, _Failing] = {}
        self._lock = threading.Lock()
        """Held while lists are looked at, never while a server is asked."""
        self._asking = {name: threading.Lock() for name in self._connections}

    @classmethod
    def open(
        cls,
        servers: Mapping[str, McpServer | str],
        *,
        effects: Mapping[str, Effect] | None = None,
        idempotency_keys: Mapping[str, str] | None = None,
        ttl_s: float = 300.0,
        timeout_s: float = 30.0,
        clock: Clock | None = None,
    ) -> "McpServers":
        """Return the servers, each connected and asked for its tools.

        Args:
            servers: Name → server, or its URL or command line. Names stand before the tools'.
            effects: `server.tool` → its effect, where the server says otherwise or nothing.
            idempotency_keys: `server.tool` → the argument that takes its key, so that a write can
                be tried again.
            ttl_s: Seconds that a list of tools is good for.
            timeout_s: Seconds to connect, and seconds for one answer.
            clock: Tells how old a list is; None: the machine's own.

        Raises:
            InvalidSettings: an argument cannot be used.
            SourceUnavailable: a server does not start, or does not speak MCP; none is left running.
            MissingExtra: `semcache-plans[mcp]` is not installed.
        """
        if find_spec("mcp") is None:
            raise MissingExtra("MCP servers need the package `mcp`; install `semcache-plans[mcp]`")
        _check(servers, ttl_s, timeout_s)
        stale: set[str] = set()
        connections = {
            name: Connection(
                name,
                server_at(server) if isinstance(server, str) else server,
                timeout_s=timeout_s,
                changed=partial(stale.add, name),
            )
            for name, server in servers.items()
        }
        monotonic = clock.monotonic if clock is not None else time.monotonic
        overrides = Overrides(effects or {}, idempotency_keys or {})
        opened = cls(connections, stale, ttl_s=ttl_s, overrides=overrides, clock=monotonic)
        try:
            overrides.check(opened.catalog().names)
        except BaseException:
            opened.close()
            raise
        return opened

    def catalog(self) -> Catalog:
        """Return the tools of all servers as operations, asking where a list is too old.

        A server that cannot be asked keeps the tools that it had, and is asked again after a while
        that grows; one without any raises. One thread asks, and the others take the list there is.

        Raises:
            SourceUnavailable: a server has no list yet and cannot be asked.
        """
        for name, asking in self._asking.items():
            if not self._is_old(name) or not asking.acquire(blocking=name not in self._lists):
                continue
            try:
                if self._is_old(name):  # another thread may have asked meanwhile
                    self._refresh(name)
            finally:
                asking.release()
        with self._lock:
            return Catalog(one for listed in self._lists.values() for one in listed.operations)

    @property
    def names(self) -> tuple[str, ...]:
        """The servers, as they were named."""
        return tuple(self._connections)

    @property
    def skipped(self) -> dict[str, str]:
        """Tools that could not become operations → why."""
        with self._lock:
            return {k: v for listed in self._lists.values() for k, v in listed.skipped.items()}

    def close(self) -> None:
        """Stop every server; calling it twice is fine."""
        for connection in self._connections.values():
            connection.close()

    def __repr__(self) -> str:
        return f"McpServers({', '.join(self._connections)})"

    def _is_old(self, name: str) -> bool:
        with self._lock:
            listed, failing = self._lists.get(name), self._failures.get(name)
        if listed is None:
            return True
        if failing is not None and self._clock() < failing.until_s:
            return False
        return name in self._stale or self._clock() - listed.at_s >= self._ttl_s

    def _refresh(self, name: str) -> None:
        connection = self._connections[name]
        self._stale.discard(name)
        try:
            tools = connection.ask(_tools, repeatable=True)
        except SourceError as error:
            if name not in self._lists:
                raise
            self._stale.add(name)
            wait_s = self._failed(name)
            log.warning(
                "MCP server %r keeps the tools that it had, and is asked again in %g s: %s",
                name,
                wait_s,
                error,
            )
            return
        operations: list[Operation] = []
        skipped: dict[str, str] = {}
        for tool in tools:
            qualified = f"{name}.{tool.name}"
            try:
                operations.append(_operation(qualified, tool, connection, self._overrides))
            except InvalidOperation as error:
                skipped[qualified] = str(error)
                log.warning("tool %r is left out: %s", qualified, error)
        with self._lock:
            self._lists[name] = _Listed(tuple(operations), skipped, self._clock())
            self._failures.pop(name, None)

    def _failed(self, name: str) -> float:
        """Remember that a server could not be asked; return the seconds until it is asked again."""
        with self._lock:
            before = self._failures.get(name)
            times = 1 if before is None else before.times + 1
            wait_s: float = min(FIRST_RETRY_S * 2.0 ** min(times - 1, 10), LAST_RETRY_S)
            self._failures[name] = _Failing(times, self._clock() + wait_s)
        return wait_s


@dataclass(frozen=True, slots=True)
class _Failing:
    """A server that could not be asked of late."""

    times: int
    until_s: float
    """When it is asked again, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The tools of one server."""

    operations: tuple[Operation, ...]
    skipped: Mapping[str, str]
    at_s: float
    """When the server said so, by the monotonic clock."""


def _check(servers: Mapping[str, McpServer | str], ttl_s: float, timeout_s: float) -> None:
    for name, server in servers.items():
        # A dot would let `a.b` + `c` and `a` + `b.c` be the same operation.
        if not name.replace("-", "_").isidentifier():
            raise InvalidSettings(
                f"an MCP server is named {name!r}; expected letters, digits, `_` and `-`"
            )
        given = server_at(server) if isinstance(server, str) else server
        if bool(given.command) == bool(given.url):
            raise InvalidSettings(
                f"MCP server {name!r} has {'both' if given.url else 'neither'} a command and a "
                "URL; give one"
            )
    if ttl_s < 0 or timeout_s <= 0:
        raise InvalidSettings(
            f"ttl_s is {ttl_s!r} and timeout_s {timeout_s!r}; expected seconds, timeout_s over 0"
        )


async def _tools(client: "Client") -> "list[Tool]":
    """Return all tools, page by page."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if len(tools) > MAX_TOOLS:
            break
        if not cursor:
            return tools
    raise SourceUnavailable(f"the list of tools has no end: over {len(tools)} tools so far")


def _operation(name: str, tool: "Tool", connection: Connection, overrides: Overrides) -> Operation:
    hints = tool.annotations
    operation = Operation(
        name=name,
        summary=shortened(tool.description or tool.title) or tool.name.replace("_", " "),
        input_schema=_schema(tool.input_schema, name),
        output_schema=_schema(tool.output_schema, name) if tool.output_schema else {},
        effect="read" if hints is not None and hints.read_only_hint else "write",
    )
    known = overrides.applied(operation)
    repeatable = known.effect == "read" or known.idempotency_key is not None
    return replace(known, call=McpCall(name, tool.name, connection, repeatable=repeatable))


def _schema(document: Mapping[str, object], name: str) -> JsonObject:
    """Return a tool's schema as one that refers only to itself, and ends."""
    try:
        root = plain(document, what=f"the schema of tool {name!r}")
    except InvalidJson as error:
        raise InvalidOperation(str(error)) from error
    if not isinstance(root, dict):
        raise InvalidOperation(f"the schema of tool {name!r} is no object")
    documents = Documents.open(root)
    definitions, uses = Definitions(documents, old=False), Uses()
    schema = definitions.schema(root, "", uses)
    gathered = definitions.gathered(uses)
    described = as_object(schema)
    return {**described, "$defs": gathered} if gathered else described


@dataclass(frozen=True, slots=True)
class McpCall:
    """The code behind an operation that is a tool of an MCP server."""

    name: str
    """The operation's."""
    tool: str
    """Its name on the server."""
    connection: Connection
    repeatable: bool
    """Whether calling it a second time does no harm."""

    def __call__(self, values: JsonObject) -> object:
        """Return what the tool gives: its structured content, else its text, read as JSON if it is.

        Raises:
            SourceRejected: the tool failed, or the server refuses.
            SourceUnavailable: there is no answer.
        """

        async def asked(client: "Client") -> "CallToolResult":
            return await client.call_tool(self.tool, dict(values))

        result = self.connection.ask(asked, repeatable=self.repeatable)
        value = _value(result)
        if result.is_error:
            excerpt = str(value)[:MAX_EXCERPT]
            raise SourceRejected(f"tool {self.name!r} failed: {excerpt}", excerpt=excerpt)
        return value


def _value(result: "CallToolResult") -> object:
    structured: object = result.structured_content
    if structured is not None:
        return structured
    parts: list[object] = [
        _read(block.text) if block.type == "text" else block.model_dump(mode="json", by_alias=True)
        for block in result.content
    ]
    return parts[0] if len(parts) == 1 else parts or None


def _read(text: str) -> Json:
    """Return an object or a list that `text` spells, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return loads(text)
    except InvalidJson:
        return text
