"""The MCP door, asked by the SDK's own client over both transports."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from semcache import SemCache
from semcache.server.calls import Calls
from semcache.server.connections import ImpatientProtocol, listening_socket
from semcache.server.mcp import http_app
from semcache.server.pools import SHARE
from semcache.server.tokens import Holder, Tokens
from tests.listening import serving

ACME, INITECH = "acme-token-0123456789", "initech-token-0123456789"
GIVEN = {"prompt": "yearly visits to Bergen", "params": {"town": "Bergen"}}

Session = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def address(calls: Calls) -> Iterator[str]:
    app = http_app(calls, Tokens({ACME: "acme", INITECH: "initech"}))
    with serving(app) as url:
        yield f"{url}/mcp"


def over_http(address: str, token: str, work: Session) -> Any:
    async def main() -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=None, trust_env=False) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            return await work(client)

    return asyncio.run(main())


async def said(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(tool, arguments)
    content: Any = result.content[0]
    return content.text if result.is_error else result.structured_content


def test_over_http_each_token_sees_its_own_tenant(address: str) -> None:
    async def ask(client: Client) -> Any:
        answer = await said(client, "ask", GIVEN)
        outputs = await said(client, "list_siblings_children", {"type": "children"})
        return answer, outputs, await said(client, "statistics", {})

    answer, children, counts = over_http(address, ACME, ask)
    assert (answer["value"], answer["tier"]) == ({"answer": 6}, "template")
    assert [n["name"] for n in children["nodes"]] == ["lookup", "execute"]
    assert (counts["entries"], counts["lookups"]) == (1, 1)

    async def peek(client: Client) -> Any:
        return await said(client, "inspect_current_node", {"runId": answer["run"]})

    assert "you have no run" in over_http(address, INITECH, peek)


def test_over_http_plans_are_stored_and_removed_by_who_may_write(
    calls: Calls, semcache: SemCache
) -> None:
    plan = {"prompt": "refund order A-17", "plan": [{"name": "refund", "order": "A-17"}]}
    writer = Holder("acme", frozenset({"read", "write"}))
    app = http_app(calls, Tokens({ACME: writer, INITECH: Holder("acme", frozenset({"read"}))}))

    async def write(client: Client) -> Any:
        stored = await said(client, "store", plan)
        found = await said(client, "lookup", {"prompt": "refund order B-2"})
        removed = await said(client, "invalidate", {"id": stored["id"]})
        return found["plan"], removed, await said(client, "ask", GIVEN)

    async def read(client: Client) -> Any:
        tools = await client.list_tools()
        return [tool.name for tool in tools.tools][:3], await said(client, "store", plan)

    with serving(app) as url:
        bound, removed, asked = over_http(f"{url}/mcp", ACME, write)
        names, refused = over_http(f"{url}/mcp", INITECH, read)
    assert (bound, removed["removed"]) == ([{"name": "refund", "order": "B-2"}], 1)
    assert asked.startswith("NotAllowed: ask needs the right 'ask'")
    assert names == ["lookup", "explain", "statistics"]
    assert refused.startswith("NotAllowed: store needs the right 'write'")


def test_over_http_nobody_is_served_without_a_token_that_is_known(address: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for token in ("", "Bearer nobody-0123456789", f"Basic {ACME}", f"Bearer {ACME}x"):
        headers = {"Accept": "application/json, text/event-stream"}
        headers |= {"Authorization": token} if token else {}
        reply = httpx2.post(address, json=body, headers=headers, timeout=None)
        assert reply.status_code == 401
        assert "entries" not in reply.text


def test_over_http_a_session_cannot_be_entered_with_another_tenants_token(address: str) -> None:
    start = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }  # fmt: skip
    headers = {"Accept": "application/json, text/event-stream"}
    with httpx2.Client(timeout=None, trust_env=False) as http:
        ours = http.post(
            address, json=start, headers={**headers, "Authorization": f"Bearer {ACME}"}
        )
        session = ours.headers["mcp-session-id"]
        theirs = http.post(
            address,
            json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            headers={**headers, "Authorization": f"Bearer {INITECH}", "mcp-session-id": session},
        )
    assert theirs.status_code in {401, 403, 404}


def test_slow_asks_of_one_tenant_delay_nobody_else(
    calls: Calls, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, goes_on = threading.Barrier(SHARE + 1), threading.Event()
    answered = calls.call

    def call(name: str, arguments: Any, *, tenant: str, rights: Any) -> Any:
        if (name, tenant) == ("ask", "acme"):
            slow.wait(30)
            assert goes_on.wait(30)
        return answered(name, arguments, tenant=tenant, rights=rights)

    monkeypatch.setattr(calls, "call", call)

    async def many(client: Client) -> Any:
        return await asyncio.gather(*(said(client, "ask", GIVEN) for _ in range(SHARE)))

    async def ask(client: Client) -> Any:
        return await said(client, "ask", GIVEN)

    async def look(client: Client) -> Any:
        return await said(client, "lookup", GIVEN)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(over_http, address, ACME, many)
        slow.wait(30)
        assert over_http(address, INITECH, ask)["value"] == {"answer": 6}
        assert over_http(address, ACME, look)["hit"]
        goes_on.set()
        assert len(asked.result(30)) == SHARE


def test_what_a_door_sends_does_not_wait_for_an_acknowledgment() -> None:
    with listening_socket("127.0.0.1", 0) as door:
        place = ("127.0.0.1", door.getsockname()[1])
        with socket.create_connection(place, 30):
            accepted, _ = door.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_half_a_request_is_not_waited_for_for_ever(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.server.connections.WHOLE_S", 0.05)
    app = http_app(calls, Tokens({ACME: "acme"}))
    with serving(app, http=ImpatientProtocol) as url:
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        head = b"POST /mcp HTTP/1.1\r\nHost: a\r\n"
        for half in (b"", head, head + b"Content-Length: 9\r\n\r\n{"):
            with socket.create_connection(place, 30) as held:
                held.sendall(half)
                while held.recv(65536):
                    pass


def test_over_http_errors_are_told_and_the_session_goes_on(address: str) -> None:
    async def work(client: Client) -> Any:
        wrong = [
            await said(client, "ask", {"prompt": "   "}),
            await said(client, "drop_tables", {}),
            await said(client, "ask", {"prompt": "visits", "tenant": "initech"}),
        ]
        return wrong, await said(client, "ask", GIVEN)

    wrong, answer = over_http(address, ACME, work)
    assert [text.partition(":")[0] for text in wrong] == [
        "InvalidPrompt", "UnknownTool", "InvalidInput",
    ]  # fmt: skip
    assert "known: ask, answer, lookup" in wrong[1]
    assert answer["value"] == {"answer": 6}


DOOR = """
import anyio
from semcache import SemCache, catalog_from, operation
from semcache import SemCache
from semcache.server.calls import Calls
from semcache.server.mcp import serve_stdio
from semcache.testing import HashEmbedder

@operation(effect="read")
def count_visits(town: str) -> int:
    'Count the visits to a town.'
    return len(town)

with SemCache.open(catalog=catalog_from(count_visits), embedder=HashEmbedder()) as semcache:
    anyio.run(lambda: serve_stdio(Calls(semcache), tenant="acme"))
"""


def over_stdio(directory: Path, arguments: list[str], work: Session) -> Any:
    started = StdioServerParameters(
        command=sys.executable,
        args=arguments,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=directory,
    )

    async def main() -> Any:
        async with Client(stdio_client(started)) as client:
            return await work(client)

    return asyncio.run(main())


def test_over_stdio_the_tenant_is_fixed_at_the_start(tmp_path: Path) -> None:
    async def work(client: Client) -> Any:
        answer = await said(client, "ask", {"prompt": "Count the visits of town 'Oslo'"})
        return answer, await said(client, "inspect_current_node", {})

    answer, node = over_stdio(tmp_path, ["-c", DOOR], work)
    assert answer["value"] == {"answer": 4}
    assert (node["name"], node["status"]) == ("Count the visits of town 'Oslo'", "completed")


def test_the_command_serves_what_the_rights_cover_over_stdio(tmp_path: Path) -> None:
    async def work(client: Client) -> Any:
        tools = await client.list_tools()
        return [tool.name for tool in tools.tools], await said(client, "statistics", {})

    arguments = ["-m", "semcache", "mcp", "--demo", "--directory", "kept", "--tenant", "acme"]
    names, counts = over_stdio(tmp_path, arguments, work)
    assert names[:6] == ["ask", "answer", "lookup", "explain", "feedback", "statistics"]
    assert (len(names), counts["entries"]) == (12, 0)
    names, _ = over_stdio(tmp_path, [*arguments, "--rights", "read,write"], work)
    assert names[:5] == ["lookup", "explain", "store", "feedback", "invalidate"]


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.host.invalid"])
def test_a_door_that_cannot_be_opened_is_told_in_one_line(
    host: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from semcache.commands.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens").write_text(f"{ACME} acme\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"{host}:{taken.getsockname()[1]}"
        assert main(["mcp", "--demo", "--http", place, "--tokens", "tokens"]) == 2
    said = capsys.readouterr().err
    assert f"nothing can be served at {place}" in said
    assert said.count("\n") == 1


def test_the_command_serves_http_until_it_is_told_to_end(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "tokens").write_text(f"{ACME} acme\n", encoding="utf-8")
    command = ["-m", "semcache", "mcp", "--demo", "--http", str(port), "--tokens", "tokens"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    address = f"http://127.0.0.1:{port}/mcp"

    async def work(client: Client) -> Any:
        return await said(client, "statistics", {})

    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, *command], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == f"serving MCP at {address}; Ctrl-C ends it\n"
            assert httpx2.post(address, json={}, timeout=None).status_code == 401
            assert over_http(address, ACME, work)["entries"] == 0
        finally:
            process.terminate()
    assert process.returncode in {0, -signal.SIGTERM}
