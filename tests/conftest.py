"""What every room's tests may ask for: a clean environment, a real embedder, an OpenAI server."""

import atexit
import hashlib
import json
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import hypothesis
import psutil
import psycopg
import pytest

from semcache import secrecy
from semcache.canonical import Json, JsonObject
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.testing import FakeClock, RecordingObserver

# huggingface_hub reads it once, when it is first imported: a fixture would come too late.
os.environ["HF_HUB_OFFLINE"] = "1"
# Workers of pytest share the cores: more threads of torch than one each wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# LiteLLM would load a list of prices from the network when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

# How long an example takes says what else the machine does. CI judges a submission by the same
# examples each time; a developer's runs go on exploring.
hypothesis.settings.register_profile(
    "semcache",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("semcache")

AMBIENT = ("OPENAI_", "SEMCACHE_", "HF_", "TRANSFORMERS_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what the machine happens to have set: a key there must not change what is tested."""
    for name in list(os.environ):
        if name.startswith(AMBIENT) or name.upper() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with no secret: those of another test would be cut out of what this one tells."""
    monkeypatch.setattr(secrecy, "KNOWN", secrecy.KnownSecrets())


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test sets it."""
    return FakeClock()


@pytest.fixture
def observer() -> RecordingObserver:
    """An observer that keeps what it hears."""
    return RecordingObserver()


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The default embedder with its real weights, loaded once for all tests that need meaning."""
    return MiniLMEmbedder(shipped_weights())


@pytest.fixture(scope="session")
def tidb() -> str:
    """The example of StackVM's document to the letter: a list, with raw line breaks in texts."""
    return (Path(__file__).parent / "data" / "tidb_program.txt").read_text(encoding="utf-8")


class Postgres:
    """A PostgreSQL with pgvector in a directory, which tests may stop and start again."""

    def __init__(self, directory: Path) -> None:
        import pgserver

        self._control = pgserver.pg_ctl
        self._server = pgserver.get_server(directory)
        self.dsn: str = self._server.get_uri()
        """Logs in as the superuser; no password is asked for."""
        # What a power cut would do to it is not what is tested here.
        self.run("ALTER SYSTEM SET fsync = off")
        self.run("SELECT pg_reload_conf()")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute `statements` as the superuser; return the rows of the last."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def schema(self, path: Path) -> str:
        """Return the name of the schema that the tests under `path` use alone."""
        return f"t{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"

    def stop(self) -> None:
        """End the server and every connection to it, and return when it is gone."""
        # Run from a directory that the server's own user may enter.
        self._control(
            ["-w", "-m", "fast", "stop"],
            pgdata=self._server.pgdata,
            user=self._server.system_user,
            cwd="/",
        )

    def hang(self) -> None:
        """Let every process of the server stand still: connections stay open and say nothing."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):  # a connection's may end meanwhile
                process.suspend()

    def go_on(self) -> None:
        """End what `hang` did."""
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def kill(self) -> None:
        """End every process of the server as a crash does, and return when they are gone."""
        processes = self._processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes)

    def copy(self, directory: Path) -> "Postgres":
        """Return a standby that follows this server, with all that it has now."""
        import pgserver

        directory.mkdir(mode=0o700)
        user = self._server.system_user
        if user is not None:
            shutil.chown(directory, user)
        pgserver.pg_basebackup(
            ["-d", self.dsn, "-R", "-c", "fast", "--no-sync"],
            pgdata=directory,
            user=user,
            cwd="/",
        )
        for lock in directory.glob(".s.PGSQL.*.lock"):  # of the first one's socket
            lock.unlink()
        return Postgres(directory)

    def promote(self) -> None:
        """Make a standby the server that may be written to."""
        self._control(
            ["-w", "promote"],
            pgdata=self._server.pgdata,
            user=self._server.system_user,
            cwd="/",
        )

    def _processes(self) -> list[psutil.Process]:
        first = psutil.Process(self._server.get_pid())
        return [first, *first.children(recursive=True)]

    def start(self) -> None:
        """Start the server, if it is not running; return when it takes connections."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop the server for good."""
        self._server.cleanup()
        atexit.unregister(self._server._cleanup)  # it would make its folder again


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A real server, started when the first test asks and stopped after the last.

    Not in `tmp_path`: as root it runs as a user of its own, and the next pytest to start on this
    machine shuts the folder of this one's temporary files for everyone else.
    """
    with postgres_folder() as folder, closing(Postgres(folder / "data")) as server:
        yield server


@contextmanager
def postgres_folder() -> Iterator[Path]:
    """Give a folder for servers, removed afterwards."""
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory(prefix="semcache-", ignore_cleanup_errors=True) as folder,
    ):
        # pgserver asks for it when it is imported; short, as names of sockets must be.
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """The real server, running; whatever a test did to it is mended afterwards."""
    yield postgres_server
    with suppress(psutil.NoSuchProcess):
        postgres_server.go_on()
    postgres_server.start()


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer of the server."""

    body: "Json | bytes" = None
    """JSON to send, or the bytes as they are."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    instead: Literal["", "drop", "hang", "drip"] = ""
    """`drop`: close the connection unanswered. `hang`: answer nothing until the server stops.
    `drip`: send a byte now and then until the server stops."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the server received."""

    path: str
    body: JsonObject
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def messages(self) -> list[str]:
        """The contents of its messages."""
        messages = self.body["messages"]
        assert isinstance(messages, list)
        return [str(message["content"]) for message in messages if isinstance(message, dict)]


class OpenAIServer:
    """A local HTTP server that speaks the OpenAI protocol and answers as it was told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.released = threading.Event()
        self._replies: deque[Reply] = deque()
        self._answer: Callable[[Request], str | Reply] | None = None
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server.next_reply(Request(self.path, body, headers))
                # A client that gave up has closed its end.
                with suppress(ConnectionError):
                    server.send(self, reply)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def says(self, *texts: str) -> None:
        """Answer the next chat requests with `texts`, one each."""
        self._replies.extend(Reply(completion(text)) for text in texts)

    def replies(self, *replies: Reply) -> None:
        """Answer the next requests with `replies`, one each, whatever they ask."""
        self._replies.extend(replies)

    def answers(self, answer: Callable[[Request], "str | Reply"]) -> None:
        """Answer every chat request that no scripted reply is left for with `answer(request)`."""
        self._answer = answer

    @property
    def unused(self) -> int:
        """How many scripted replies nobody asked for."""
        return len(self._replies)

    def stop(self) -> None:
        """Let hanging requests go and close the port."""
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def next_reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self._replies:
                return self._replies.popleft()
        if request.path.endswith("/embeddings"):
            return Reply(embeddings(request.body))
        if self._answer is not None:
            said = self._answer(request)
            return said if isinstance(said, Reply) else Reply(completion(said))
        return Reply({"error": {"message": "the test scripted no reply for this"}}, status=400)

    def send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.instead == "drip":
            handler.send_response(200)
            while not self.released.wait(0.01):
                handler.wfile.write(b"X-A: b\r\n")
                handler.wfile.flush()
        if reply.instead == "hang":
            self.released.wait()
        if reply.instead:
            handler.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in ({"Content-Type": "application/json"} | dict(reply.headers)).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


def completion(text: str | None, *, finish: str = "stop", refusal: str | None = None) -> JsonObject:
    """Return a chat completion that says `text`."""
    message: JsonObject = {"role": "assistant", "content": text, "refusal": refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted-1",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def embeddings(body: JsonObject) -> JsonObject:
    """Return embeddings that depend on the text alone; in reverse order, as the protocol allows."""
    texts = body["input"]
    assert isinstance(texts, list)
    data: list[Json] = [
        {"object": "embedding", "index": i, "embedding": _numbers(str(text))}
        for i, text in enumerate(texts)
    ]
    usage: JsonObject = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": str(body["model"]), "data": data[::-1], "usage": usage}


def _numbers(text: str) -> list[Json]:
    return [byte / 16 - 8 for byte in hashlib.sha256(text.encode()).digest()[:8]]


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A server that speaks /v1/chat/completions and /v1/embeddings on loopback."""
    server = OpenAIServer()
    yield server
    server.stop()
