"""`semcache serve` and `semcache mcp`."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from semcache.commands.options import (
    add_command,
    add_common,
    add_database,
    add_directory,
    add_planning,
    names_a_source,
    semcache_of,
    settings_of,
)
from semcache.errors import InvalidInput
from semcache.events import TokenPrices
from semcache.files import unreadable
from semcache.server.calls import Calls
from semcache.server.mcp import serve_http, serve_stdio
from semcache.server.tokens import USUAL, Tokens, rights_of
from semcache.telemetry.prometheus import PrometheusCounters
from semcache.wiring import open_plan_cache

if TYPE_CHECKING:
    from semcache.cache.plan_cache import PlanCache
    from semcache.commands.options import Commands
    from semcache.semcache import SemCache

TOKENS = "SEMCACHE_TOKENS"
"""Variable with the tokens of a door, as `--tokens` has them in a file."""
MCP_TOKENS = "MCP_TOKENS"
"""The same for `mcp`, by the name that it had first."""


def add(commands: "Commands") -> None:
    """Add the commands that serve other processes."""
    options = add_command(commands, "serve", _serve)
    options.add_argument(
        "--at",
        metavar="[HOST:]PORT",
        default="8080",
        help="where (default: 127.0.0.1:8080; 0 is any port that is free)",
    )
    options.add_argument(
        "--deadline",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="within which each request is answered (default: 60)",
    )
    add_directory(options)
    add_database(options)
    _add_door(options)
    options = add_command(commands, "mcp", _mcp)
    options.add_argument(
        "--http", metavar="[HOST:]PORT", help="serve streamable HTTP at /mcp (default: stdio)"
    )
    options.add_argument(
        "--rights",
        metavar="RIGHT,…",
        help="what the caller over stdio may do: read, ask, write (default: read,ask)",
    )
    add_common(options)
    _add_door(options)


def _add_door(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help=f"lines `token tenant [rights]`, or JSON (default: what {TOKENS} holds)",
    )
    options.add_argument(
        "--allow-writes", action="store_true", help="let callers run operations that write"
    )
    add_planning(options)


def _serve(options: argparse.Namespace) -> int:
    from semcache.server.connections import serve_app  # noqa: PLC0415 - an extra
    from semcache.server.rest.app import rest_app  # noqa: PLC0415 - an extra

    host, port = _address("--at", options.at)
    if not options.deadline > 0:
        raise InvalidInput(f"--deadline is {options.deadline:g}; expected more than 0 seconds")
    tokens = _tokens(options, TOKENS)
    settings = settings_of(options)
    prices = TokenPrices(settings.prompt_token_price, settings.completion_token_price)
    with ExitStack() as stack:
        stack.enter_context(_ended_by_sigterm())
        counters = stack.enter_context(PrometheusCounters(prices=prices))
        cache: SemCache | PlanCache
        if names_a_source(options) or settings.model:
            cache = stack.enter_context(semcache_of(options, observer=counters, asks=False))
        else:  # one that others plan for needs no operations
            cache = stack.enter_context(open_plan_cache(settings, observer=counters))
        app = rest_app(
            Calls(cache, allow_writes=options.allow_writes),
            tokens,
            metrics=counters.text,
            deadline_s=options.deadline,
        )
        serve_app(app, host=host, port=port, listening=_told("serving"))
    return 0


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what is inside as an exit does, so that counts are written."""

    def end(_: int, __: FrameType | None) -> None:
        sys.exit(0)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _mcp(options: argparse.Namespace) -> int:
    import anyio  # noqa: PLC0415 - comes with the extra

    if options.http is None:
        rights = USUAL if options.rights is None else rights_of(options.rights.split(","))
        with semcache_of(options) as semcache:
            calls = Calls(semcache, allow_writes=options.allow_writes)
            anyio.run(lambda: serve_stdio(calls, tenant=options.tenant, rights=rights))
        return 0
    if options.rights is not None:
        raise InvalidInput("--rights is for stdio; over HTTP the tokens have rights")
    host, port = _address("--http", options.http)
    tokens = _tokens(options, TOKENS, MCP_TOKENS)
    with _ended_by_sigterm(), semcache_of(options, asks=False) as semcache:
        calls = Calls(semcache, allow_writes=options.allow_writes)
        serve_http(calls, tokens, host=host, port=port, listening=_told("serving MCP"))
    return 0


def _told(what: str) -> Callable[[str], None]:
    """Return what tells where a door is: on stderr, as stdout is for what a command gives."""
    return lambda address: print(
        f"{what} at {address}; Ctrl-C ends it", file=sys.stderr, flush=True
    )


def _address(flag: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"{flag} is {text!r}; expected PORT or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _read_tokens(file: Path) -> Tokens:
    expected = "lines `token tenant [rights]`, or a JSON object"
    try:
        return Tokens.read(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(unreadable(file, error, expected=expected)) from error
    except InvalidInput as error:
        raise InvalidInput(
            f"{str(file)!r} holds no tokens: {error}; expected {expected}"
        ) from error


def _tokens(options: argparse.Namespace, *variables: str) -> Tokens:
    if options.tokens is not None:
        return _read_tokens(options.tokens)
    said = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    if not said:
        raise InvalidInput(
            "an HTTP door serves those who hold a token alone; give --tokens FILE, with lines "
            f"`token tenant [rights]`, or set {variables[0]}"
        )
    return Tokens.read(said)
