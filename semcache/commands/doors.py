"""`semcache mcp`."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.commands.opening import semcache_of
from semcache.commands.options import add_command, add_common, add_planning
from semcache.errors import InvalidInput
from semcache.file_errors import unreadable
from semcache.server.calls import Calls
from semcache.server.mcp import serve_http, serve_stdio
from semcache.server.tokens import Tokens

if TYPE_CHECKING:
    from semcache.commands.options import Commands

TOKENS = "MCP_TOKENS"
"""Variable with the tokens of the HTTP door, as `--tokens` has them in a file."""


def add(commands: "Commands") -> None:
    """Add the command that serves other processes."""
    options = add_command(commands, "mcp", _mcp)
    options.add_argument(
        "--http", metavar="[HOST:]PORT", help="serve streamable HTTP at /mcp (default: stdio)"
    )
    add_tokens(options, TOKENS)
    options.add_argument(
        "--rights",
        metavar="RIGHT,…",
        help="what the caller over stdio may do (default: read,ask)",
    )
    options.add_argument(
        "--allow-writes", action="store_true", help="let callers run operations that write"
    )
    add_common(options)
    add_planning(options)


def _mcp(options: argparse.Namespace) -> int:
    import anyio  # noqa: PLC0415 - comes with the extra

    if options.http is None:
        with semcache_of(options) as semcache:
            calls = Calls(semcache, allow_writes=options.allow_writes)
            anyio.run(lambda: serve_stdio(calls, tenant=options.tenant))
        return 0
    host, port = _address(options.http)
    tokens = _tokens(options)
    with semcache_of(options) as semcache:
        calls = Calls(semcache, allow_writes=options.allow_writes)
        serve_http(calls, tokens, host=host, port=port, listening=_told)
    return 0


def _told(address: str) -> None:
    """Tell where the door is: on stderr, as stdout is for what a command gives."""
    print(f"serving MCP at {address}; Ctrl-C ends it", file=sys.stderr, flush=True)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"--http is {text!r}; expected PORT or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _read_tokens(file: Path) -> Tokens:
    expected = "lines `token tenant`, or a JSON object"
    try:
        return Tokens.read(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(unreadable(file, error, expected=expected)) from error
    except InvalidInput as error:
        raise InvalidInput(
            f"{str(file)!r} holds no tokens: {error}; expected {expected}"
        ) from error


def _tokens(options: argparse.Namespace) -> Tokens:
    if options.tokens is not None:
        return _read_tokens(options.tokens)
    if not os.environ.get(TOKENS):
        raise InvalidInput(
            f"the HTTP door serves those who hold a token alone; give --tokens or set {TOKENS}"
        )
    return Tokens.read(os.environ[TOKENS])
