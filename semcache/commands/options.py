"""Options that several commands share."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.commands import SUMMARIES
from semcache.settings import PREFIX

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - has no public name

DIRECTORY = "indexes/default"
"""Where a checkout keeps its cache."""


def add_command(
    commands: "Commands", name: str, run: Callable[[argparse.Namespace], int], summary: str = ""
) -> argparse.ArgumentParser:
    """Add a command that `run` carries out, and return the parser of its own options.

    `summary` is of a command within a command; those of `semcache` have theirs in `SUMMARIES`.
    """
    summary = summary or SUMMARIES[name]
    options = commands.add_parser(name, help=summary, description=summary)
    options.set_defaults(run=run)
    return options


def add_common(options: argparse.ArgumentParser, *, demo: bool = False) -> None:
    """Add where the cache is, whose it is, and how to print; `demo` keeps nothing by default."""
    if demo:
        said = "where the cache is kept (default: a temporary directory)"
        options.add_argument("--directory", type=Path, help=said)
    else:
        add_directory(options)
    add_database(options)
    options.add_argument("--tenant", default="default", help="whose plans (default: default)")
    options.add_argument("--json", action="store_true", help="print JSON")


def add_directory(options: argparse.ArgumentParser) -> None:
    """Add which directory keeps the cache."""
    options.add_argument(
        "--directory",
        type=_path,
        default=os.environ.get(f"{PREFIX}DIRECTORY") or DIRECTORY,
        help=f"where the cache is kept (default: {PREFIX}DIRECTORY, else {DIRECTORY})",
    )


def _path(given: str) -> Path:
    try:
        return Path(given).expanduser()
    except RuntimeError as error:  # "~nobody/x" names the home of a user that there is not
        raise argparse.ArgumentTypeError(f"{given!r} is in no user's home") from error


def add_database(options: argparse.ArgumentParser) -> None:
    """Add which database keeps the cache instead of a directory."""
    options.add_argument(
        "--database",
        metavar="URL",
        help="the PostgreSQL that keeps it (SEMCACHE_DATABASE keeps a password out of sight)",
    )


def add_planning(options: argparse.ArgumentParser, *, demo: bool = False) -> None:
    """Add what plans are made with; `demo` has operations of its own."""
    if not demo:
        add_sources(options)
    options.add_argument("--threshold", type=float, help="cosine to exceed (default: 0.95)")
    add_model(options)


def add_sources(options: argparse.ArgumentParser) -> None:
    """Add where operations come from."""
    options.add_argument(
        "--functions",
        metavar="MODULE:NAME",
        help="your own operations: a catalog, functions, or one",
    )
    options.add_argument(
        "--demo", action="store_true", help="the operations of the demo, over made-up sales"
    )
    options.add_argument(
        "--openapi",
        action="append",
        default=[],
        metavar="FILE_OR_URL",
        help="operations of an OpenAPI document; OPENAPI_TOKEN is its bearer token",
    )
    options.add_argument(
        "--server-url", metavar="URL", help="address to call instead of the document's"
    )
    options.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="[NAME=]COMMAND_OR_URL",
        help="tools of an MCP server, named NAME.tool (default: mcp)",
    )


def add_model(options: argparse.ArgumentParser) -> None:
    """Add which language model helps."""
    options.add_argument("--model", help="language model that normalizes and plans (default: none)")
    options.add_argument(
        "--plan-format",
        choices=("routes", "tasks", "program"),
        help="format of the plans that the model is asked for (default: routes)",
    )
    options.add_argument(
        "--base-url", help="an OpenAI-compatible server; OPENAI_API_KEY is its key"
    )
