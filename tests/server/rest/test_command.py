"""`semcache serve`, as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest

from semcache.commands.cli import main

TOKEN = "acme-token-0123456789"  # noqa: S105 - made up
HEADERS = {"Authorization": f"Bearer {TOKEN}"}

SLOW = """
import time
from pathlib import Path

from semcache import operation


@operation(effect="read")
def count_visits(town: str) -> int:
    "Count the visits to a town."
    Path("begun").touch()
    while not Path("go on").exists():
        time.sleep(0.01)
    return len(town)
"""


@contextmanager
def served(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; give its process, and where it is."""
    (directory / "tokens").write_text(f"{TOKEN} acme read,write,ask\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = ["-m", "semcache", "serve", "--at", "0", "--tokens", "tokens", *arguments]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, *command],
        cwd=directory,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("serving at http://127.0.0.1:")
            yield process, line.split()[2].rstrip(";")
        finally:
            process.kill()


def test_the_command_serves_a_bare_cache_that_outlives_it(tmp_path: Path) -> None:
    plan = [{"name": "refund", "arguments": {"order": "A-17"}}]
    for number, order in enumerate(("A-17", "B-2")):
        with served(tmp_path) as (process, address):
            with httpx.Client(base_url=address, headers=HEADERS, timeout=60) as client:
                assert client.get("/health").status_code == 200
                found = client.post("/v1/lookup", json={"prompt": f"refund order {order}"})
                assert found.json()["hit"] is (number == 1)
                body = {"prompt": f"refund order {order}", "plan": plan}
                if not number:
                    assert client.post("/v1/store", json=body).json()["stored"]
                assert client.get("/v1/stats").json()["lookups"] == number + 1
            process.terminate()
            assert process.wait(60) == 0


def test_sigterm_lets_what_is_under_way_end(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    got: list[httpx.Response] = []
    body = {"prompt": "count the visits to town 'Oslo'"}
    with served(tmp_path, "--functions", "slow:count_visits") as (process, address):

        def ask() -> None:
            got.append(httpx.post(f"{address}/v1/ask", json=body, headers=HEADERS, timeout=60))

        asking = Thread(target=ask)
        asking.start()
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            assert asking.is_alive()
        process.send_signal(signal.SIGTERM)
        while not _refused(address):
            assert process.poll() is None
        (tmp_path / "go on").touch()
        asking.join(60)
        assert process.wait(60) == 0
    assert got[0].json()["value"] == {"answer": 4}


def _refused(address: str) -> bool:
    try:
        httpx.get(f"{address}/health", timeout=60)
    except httpx.TransportError:
        return True
    return False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve"], "SEMCACHE_TOKENS"),
        (["serve", "--at", "port"], "--at is 'port'"),
        (["serve", "--deadline", "0"], "--deadline is 0"),
        (["serve", "--tokens", "tokens"], "unknown rights"),
        (["mcp", "--http", "0"], "--tokens"),
        (["mcp", "--http", "port"], "HOST:PORT"),
        (["mcp", "--http", "0", "--rights", "read"], "the tokens have rights"),
        (["mcp", "--demo", "--rights", "read,fly"], "1 unknown rights of 2"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens").write_text(f"{TOKEN} acme everything\n", encoding="utf-8")
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert TOKEN not in told


def test_the_container_runs_this_command_as_nobody_and_asks_whether_it_lives() -> None:
    text = (Path(__file__).parents[3] / "Containerfile").read_text(encoding="utf-8")
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line]
    said = {name: rest for name, rest in lines if name.isupper()}
    assert said["USER"] != "root"
    assert int(said["USER"]) > 0
    probe = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
    port = said["EXPOSE"]
    assert f"http://127.0.0.1:{port}/health" in probe[-1]
    command = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
    assert command == ["semcache", "serve", "--at", f"0.0.0.0:{port}"]


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_its_extra_the_command_names_it(missing: str, tmp_path: Path) -> None:
    # A process of its own, in which nothing of the extra was imported before.
    script = (
        f"import sys; sys.modules[{missing!r}] = None; "
        "from semcache.commands.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", script, "serve", "--directory", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("semcache: ")
    assert "pip install 'semcache-plans[serve]'" in done.stderr
    assert "Traceback" not in done.stderr
