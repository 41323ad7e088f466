"""A real HTTP service with the document it generates, one that listens, and an MCP server."""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

from semcache.canonical import JsonObject
from tests.listening import listening, serving

KEY = "s3cret-key"
Customer = Literal["Acme", "Initech"]


class Invoice(BaseModel):
    number: str
    customer: Customer
    status: Literal["open", "paid"]
    total: float
    parts: list["Invoice"] = []


def shop() -> FastAPI:
    """Return a service whose document FastAPI generates."""
    app = FastAPI(title="Shop", generate_unique_id_function=lambda route: route.name)
    invoices = [
        Invoice(number="INV-7", customer="Acme", status="open", total=120),
        Invoice(number="INV-8", customer="Initech", status="paid", total=80),
        Invoice(number="INV-9", customer="Acme", status="paid", total=45.5),
    ]

    @app.get("/invoices")
    def list_invoices(
        customer: Customer,
        status: Literal["open", "paid"],
        x_api_key: Annotated[str, Header()] = "",
    ) -> list[Invoice]:
        """List the invoices of a customer by status."""
        if x_api_key != KEY:
            raise HTTPException(401, f"not {x_api_key!r}")
        return [one for one in invoices if one.customer == customer and one.status == status]

    @app.get("/invoices/{number}")
    def get_invoice(number: str) -> Invoice:
        """Get an invoice."""
        for one in invoices:
            if one.number == number:
                return one
        raise HTTPException(404, f"no invoice {number}")

    @app.post("/invoices", status_code=201)
    def create_invoice(invoice: Invoice) -> Invoice:
        """Create an invoice."""
        invoices.append(invoice)
        return invoice

    return app


@pytest.fixture
def shop_url() -> Iterator[str]:
    """The address of a running shop; its document is at `/openapi.json`."""
    with serving(shop(), lifespan="off") as url:
        yield url


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    """Not decoded."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any


@dataclass(slots=True)
class Echo:
    """A service that keeps what it is sent and answers as it was told."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    status: int = 200
    failures: list[int] = field(default_factory=list)
    """Statuses of the next answers, before `status`."""
    body: bytes = b'{"ok":true}'
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    hang: threading.Event | None = None


@pytest.fixture
def echo() -> Iterator[Echo]:
    """A service on loopback that remembers every request and answers as it is told."""
    told = Echo()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = json.loads(body) if body else None
            told.seen.append(Seen(self.command, parts.path, parts.query, headers, sent))
            if told.hang is not None:
                told.hang.wait()
                return
            self.send_response(told.failures.pop(0) if told.failures else told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

        do_GET = do_POST = answer  # noqa: N815 - the base's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
            pass

    with listening(Handler) as told.url:
        yield told
        if told.hang is not None:
            told.hang.set()


Describe = Callable[..., JsonObject]


@pytest.fixture
def described(echo: Echo) -> Describe:
    """What makes an OpenAPI document of paths, served by `echo`."""

    def described(paths: JsonObject, *, version: str = "3.1.0", **more: Any) -> JsonObject:
        info: JsonObject = {"title": "Echo", "version": "1"}
        document = {"openapi": version, "info": info, "servers": [{"url": echo.url}]}
        return {**document, "paths": paths, **more}

    return described


SERVER = """
import os, sys
from typing import Literal
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

app = MCPServer("weather")
READ = ToolAnnotations(readOnlyHint=True)

@app.tool(annotations=READ)
def get_weather(city: Literal["Oslo", "Lima"]) -> dict[str, str]:
    '''Get the weather of a city.'''
    return {"city": city, "sky": "clear", "pid": str(os.getpid())}

@app.tool()
def set_alarm(city: str) -> str:
    '''Set an alarm for a city.'''
    return f"alarm for {city}"

attempts = []

@app.tool()
def book(seat: str, request: str) -> dict[str, list[str]]:
    '''Book a seat; the first attempt fails.'''
    attempts.append(request)
    if len(attempts) == 1:
        raise ValueError("the line was cut")
    return {"seat": [seat], "attempts": attempts}

@app.tool(annotations=READ)
def die_once(flag: str) -> str:
    '''Die, unless the flag is there.'''
    if os.path.exists(flag):
        return "alive"
    open(flag, "w").close()
    os._exit(3)

@app.tool()
def die(code: int) -> str:
    '''Die.'''
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(code)

@app.tool()
async def grow(context: Context) -> str:
    '''Offer one tool more, and say so.'''
    app.add_tool(set_alarm, name="wake")
    await context.notify_tools_changed()
    return "grown"

@app.tool(annotations=READ)
def refuse(why: str) -> str:
    '''Refuse.'''
    from mcp.server.mcpserver.exceptions import ToolError
    raise ToolError(why)

app.run(*sys.argv[1:2], **({"port": int(sys.argv[2])} if sys.argv[2:] else {}))
"""


@pytest.fixture(scope="session")
def weather_script() -> str:
    """The text of a real MCP server."""
    return SERVER


@pytest.fixture
def weather(tmp_path: Path, weather_script: str) -> str:
    """The command line of a real MCP server."""
    script = tmp_path / "weather.py"
    script.write_text(weather_script, encoding="utf-8")
    return f"{sys.executable} {script}"
