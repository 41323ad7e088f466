"""Tools of MCP servers as operations: real servers, in processes of their own."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from semcache import SemCache
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    InvalidSettings,
    OperationFailed,
    SourceError,
    SourceRejected,
    SourceUnavailable,
)
from semcache.sources.mcp import McpServer, McpServers, server_at
from semcache.sources.mcp.connection import Connection
from semcache.sources.mcp.servers import FIRST_RETRY_S
from semcache.testing import FakeClock, HashEmbedder
from tests.waiting import until

PATIENT_S = 3600.0
"""Seconds to wait where something is sure to happen: a loaded machine takes its time."""


def opened(servers: Any, *, timeout_s: float = PATIENT_S, **more: Any) -> McpServers:
    return McpServers.open(servers, timeout_s=timeout_s, **more)


def call(servers: McpServers, name: str, **values: Json) -> Any:
    found = servers.catalog().get(name).call
    assert found is not None
    return found(values)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.sources.mcp.session.CLOSING_S", PATIENT_S)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, weather_script: str) -> Iterator[McpServers]:
    """One server for all tests that leave it alive: starting one takes a second."""
    script = tmp_path_factory.mktemp("mcp") / "weather.py"
    script.write_text(weather_script, encoding="utf-8")
    with opened({"weather": f"{sys.executable} {script}"}) as servers:
        yield servers


@pytest.fixture
def servers(weather: str, clock: FakeClock) -> Iterator[McpServers]:
    with opened({"weather": weather}, ttl_s=60, clock=clock) as servers:
        yield servers


def test_a_tool_that_takes_a_key_is_tried_again_with_the_same_one(
    weather: str, clock: FakeClock
) -> None:
    plan: JsonObject = {
        "tasks": [
            {"id": "task0", "input": {}},
            {"id": "task1", "service": "w.book", "input": {"seat": "4A"}},
        ]
    }
    with opened({"w": weather}, idempotency_keys={"w.book": "request"}) as servers:
        properties = servers.catalog().get("w.book").input_schema["properties"]
        with SemCache.open(
            catalog=servers.catalog(), embedder=HashEmbedder(), clock=clock
        ) as semcache:
            value: Any = semcache.execute(plan).nodes[-1].output
    assert list(properties) == ["seat"]  # type: ignore[arg-type]  # an object by the schema
    first, second = value["attempts"]
    assert first == second


def test_a_server_answers_prompts(lasting: McpServers) -> None:
    with SemCache.open(catalog=lasting.catalog(), embedder=HashEmbedder()) as semcache:
        first = semcache.run("Get the weather for Oslo")
        second = semcache.run("Get the weather for Lima")
    cities = [answer.value["answer"]["city"] for answer in (first, second)]  # type: ignore[index,call-overload]  # the plan's own shape
    assert cities == ["Oslo", "Lima"]
    assert (first.tier, second.tier) == ("planned", "template")


def test_tools_are_named_for_their_server_and_write_unless_they_say_otherwise(
    lasting: McpServers,
) -> None:
    effects = {one.name: one.effect for one in lasting.catalog()}
    assert effects["weather.get_weather"] == "read"
    assert effects["weather.set_alarm"] == "write"
    assert lasting.catalog().closed == {"city": ("Oslo", "Lima")}


def test_two_servers_may_have_tools_of_one_name(weather: str) -> None:
    with opened({"north": weather, "south": weather}) as servers:
        pids = {call(servers, f"{name}.get_weather", city="Oslo")["pid"] for name in servers.names}
        assert len(pids) == 2


def test_the_caller_may_know_the_effect_of_a_tool_better(weather: str) -> None:
    with opened({"w": weather}, effects={"w.set_alarm": "read"}) as servers:
        assert servers.catalog().get("w.set_alarm").effect == "read"
    with pytest.raises(InvalidSettings, match=r"'w\.dance'"):
        opened({"w": weather}, effects={"w.dance": "read"})


def test_a_list_of_tools_is_asked_for_again_when_it_is_old(
    servers: McpServers, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(servers, "_refresh", asked.append)
    servers.catalog()
    clock.advance(59)
    servers.catalog()
    assert asked == []
    clock.advance(1)
    servers.catalog()
    assert asked == ["weather"]


def test_a_server_that_cannot_be_asked_is_asked_again_after_a_while_that_grows(
    servers: McpServers, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def fail(*_: object, **__: object) -> None:
        asked.append(clock.monotonic())
        raise SourceUnavailable("gone")

    monkeypatch.setattr(Connection, "ask", fail)
    clock.advance(60)
    start = clock.monotonic()
    for _ in range(40):
        assert servers.catalog().names
        clock.advance(1)
    assert [at - start for at in asked] == [0, FIRST_RETRY_S, 3 * FIRST_RETRY_S, 7 * FIRST_RETRY_S]


def test_while_a_server_is_asked_the_others_take_the_list_that_there_is(
    servers: McpServers, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, goes_on = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        asking.set()
        assert goes_on.wait(30)
        raise SourceUnavailable("gone")

    monkeypatch.setattr(Connection, "ask", hang)
    clock.advance(60)
    thread = threading.Thread(target=servers.catalog)
    thread.start()
    assert asking.wait(30)
    assert servers.catalog().names
    goes_on.set()
    thread.join(30)


def test_a_list_of_tools_is_asked_for_again_when_the_server_says_so(servers: McpServers) -> None:
    assert "weather.wake" not in servers.catalog()

    def grown() -> bool:
        call(servers, "weather.grow")  # told once more where nobody listened yet
        return "weather.wake" in servers.catalog()

    until(grown)


def test_a_server_that_died_is_started_again_for_the_next_call(servers: McpServers) -> None:
    first = call(servers, "weather.get_weather", city="Oslo")
    with pytest.raises(SourceUnavailable, match=r"writes.*out of memory.*not repeated"):
        call(servers, "weather.die", code=3)
    second = call(servers, "weather.get_weather", city="Oslo")
    assert first["pid"] != second["pid"]


def test_a_call_that_only_reads_is_repeated_once(servers: McpServers, tmp_path: Path) -> None:
    assert call(servers, "weather.die_once", flag=str(tmp_path / "flag")) == {"result": "alive"}


def test_a_server_that_dies_again_and_again_is_given_up(weather: str) -> None:
    with (
        opened({"w": weather}, effects={"w.die": "read"}) as servers,
        pytest.raises(SourceUnavailable, match="died again"),
    ):
        call(servers, "w.die", code=1)


def test_a_tool_that_fails_ends_the_run_with_the_cause_kept(lasting: McpServers) -> None:
    with (
        SemCache.open(catalog=lasting.catalog(), embedder=HashEmbedder()) as semcache,
        pytest.raises(OperationFailed, match="too early") as caught,
    ):
        semcache.run('refuse why "too early"')
    assert isinstance(caught.value.__cause__, SourceRejected)


def test_what_the_server_refuses_is_an_error_of_its_own(lasting: McpServers) -> None:
    with pytest.raises(SourceRejected):
        call(lasting, "weather.get_weather", town="Oslo")


def test_a_server_that_is_gone_keeps_the_tools_that_it_had(
    servers: McpServers, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    before = servers.catalog()
    servers.close()
    clock.advance(60)
    assert servers.catalog() == before
    assert "keeps the tools that it had" in caplog.text
    with pytest.raises(SourceUnavailable, match="is closed"):
        call(servers, "weather.get_weather", city="Oslo")


# What is no server ---------------------------------------------------------------------------

PRINTS = f"{sys.executable} -u -c \"print('not json\\n' * 1000, flush=True); input()\""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (PRINTS, "no MCP messages"),
        (f"{sys.executable} -c 'import sys; sys.exit(\"no licence\")'", "no licence"),
        (f"{sys.executable} -c 'input()'", "hello|Connection closed|it ended"),
        ("/no/such/program", "FileNotFoundError"),
        ("http://127.0.0.1:1/mcp", "ConnectError"),
    ],
    ids=["garbage", "exits", "silent", "absent", "no port"],
)
def test_what_does_not_speak_mcp_is_a_typed_error_as_soon_as_that_shows(
    command: str, says: str
) -> None:
    with pytest.raises(SourceUnavailable, match=says):
        opened({"w": command})


def test_a_server_that_prints_without_end_is_given_up(tmp_path: Path) -> None:
    script = tmp_path / "flood.py"
    script.write_text("import sys\nwhile True: sys.stdout.write('x' * 65536)", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="hello"):
        opened({"w": f"{sys.executable} {script}"}, timeout_s=0.5)


def test_a_failing_server_does_not_leave_the_others_running(weather: str) -> None:
    with pytest.raises(SourceUnavailable):
        opened({"good": weather, "bad": "/no/such/program"})
    assert [one.name for one in threading.enumerate() if one.name.endswith("-good")] == []


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ({"a.b": "cat"}, "'a.b'"),
        ({"": "cat"}, "''"),
        ({"a": ""}, "neither"),
        ({"a": McpServer(("cat",), "http://h")}, "both"),
        ({"a": "cat 'x"}, "no command line"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(servers: Any, says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        opened(servers)


def test_secrets_of_a_server_are_not_shown() -> None:
    server = McpServer(("run", "s3cret"), environment={"KEY": "s3cret"}, headers={"K": "s3cret"})
    assert "s3cret" not in repr(server)


# Streamable HTTP -----------------------------------------------------------------------------


@pytest.fixture
def weather_at(weather: str) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """What starts the server at a port, and waits until it listens."""
    running: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> subprocess.Popen[bytes]:
        command = [*server_at(weather).command, "streamable-http", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603 - our own script
        running.append(process)
        while not _listens(port):
            assert process.poll() is None
            time.sleep(0.02)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    # Asked in HTTP: a bare connect to a free port may reach its own other end.
    asking = HTTPConnection("127.0.0.1", port, timeout=PATIENT_S)
    try:
        asking.request("GET", "/")
        return asking.getresponse().status == 404
    except (OSError, HTTPException):
        return False
    finally:
        asking.close()


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_server_over_http_may_be_restarted_between_calls(
    weather_at: Callable[[int], subprocess.Popen[bytes]], port: int
) -> None:
    process = weather_at(port)
    with opened({"w": f"http://127.0.0.1:{port}/mcp"}) as servers:
        first = call(servers, "w.get_weather", city="Oslo")
        process.kill()
        process.wait()
        with pytest.raises(SourceError):
            call(servers, "w.get_weather", city="Oslo")
        weather_at(port)
        second = call(servers, "w.get_weather", city="Oslo")
    assert first["pid"] != second["pid"]
