"""Options that several commands share, and what they name: operations, settings, a cache."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.cache.plan_cache import PlanCache
from semcache.catalog.builtin import Question
from semcache.catalog.catalog import Catalog
from semcache.commands import SUMMARIES
from semcache.errors import InvalidInput
from semcache.ports import Observer
from semcache.semcache import SemCache
from semcache.settings import PREFIX, Settings
from semcache.sources.functions import load
from semcache.stores.disk.directory import existing
from semcache.wiring import open_plan_cache

if TYPE_CHECKING:
    from semcache.sources.mcp import McpServer

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


# From options to what a command works with.


@contextmanager
def semcache_of(
    options: argparse.Namespace, *, observer: Observer | None = None, asks: bool = True
) -> Iterator[SemCache]:
    """Give the cache over the operations that the caller named.

    `asks`: whether plans may ask who sits at the terminal.

    Raises:
        InvalidInput: none are named.
    """
    with ExitStack() as stack:
        catalog = catalog_of(options, stack)
        yield stack.enter_context(opened(options, catalog, observer=observer, asks=asks))


def catalog_of(options: argparse.Namespace, stack: ExitStack) -> Catalog:
    """Return the operations of all sources that were named; code of the others is not loaded.

    Raises:
        InvalidInput: none are named.
    """
    catalogs: list[Catalog] = []
    if options.functions:
        # The console script, unlike `python -m`, does not look where the caller is.
        sys.path.insert(0, str(Path.cwd()))
        catalogs.append(load(options.functions))
    catalogs += _services(options, stack)
    if options.mcp:
        from semcache.sources.mcp import McpServers  # noqa: PLC0415 - of whom names a server

        catalogs.append(stack.enter_context(McpServers.open(_named_servers(options))).catalog())
    if options.demo:
        from semcache.demo import operations, sales  # noqa: PLC0415 - of whom asks for it

        catalogs.append(operations.catalog(stack.enter_context(closing(sales.memory()))))
    if not catalogs:
        # The demo's must be asked for: its plans would be stored beside those of the caller.
        raise InvalidInput(
            "no operations are named; name them by --functions, --openapi or --mcp, or take the "
            "demo's by --demo"
        )
    synonyms = {word: meant for catalog in catalogs for word, meant in catalog.synonyms.items()}
    closed: dict[str, list[str]] = {}
    for catalog in catalogs:
        for name, values in catalog.closed.items():
            closed.setdefault(name, []).extend(values)
    return Catalog((one for c in catalogs for one in c), closed=closed, synonyms=synonyms)


def _services(options: argparse.Namespace, stack: ExitStack) -> Iterator[Catalog]:
    if not options.openapi:
        return
    from semcache.sources.openapi import OpenApiService  # noqa: PLC0415 - of whom names a document
    from semcache.sources.openapi.exchange import Auth  # noqa: PLC0415 - the same

    token = os.environ.get("OPENAPI_TOKEN")
    for source in options.openapi:
        service = OpenApiService.open(
            source,
            auth=Auth.bearer(token) if token else None,
            base_url=options.server_url,
        )
        yield stack.enter_context(service).catalog


def _named_servers(options: argparse.Namespace) -> "dict[str, McpServer | str]":
    servers: dict[str, McpServer | str] = {}
    for number, given in enumerate(options.mcp, start=1):
        named = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", given)
        name = named[1] if named else "mcp" if number == 1 else f"mcp{number}"
        if name in servers:
            raise InvalidInput(f"two MCP servers are named {name!r}; write NAME=COMMAND_OR_URL")
        servers[name] = named[2] if named else given
    return servers


def names_a_source(options: argparse.Namespace) -> bool:
    """Return whether the caller said where operations come from."""
    return bool(options.functions or options.openapi or options.mcp or options.demo)


def opened(
    options: argparse.Namespace,
    catalog: Catalog,
    *,
    observer: Observer | None = None,
    asks: bool = True,
) -> SemCache:
    """Return a semcache over `catalog`, as the options ask.

    `asks`: whether its plans may ask who sits at the terminal, if there is one.
    """
    ask = _asked if asks and sys.stdin.isatty() else None
    return SemCache.open(settings=settings_of(options), catalog=catalog, ask=ask, observer=observer)


def _asked(question: Question) -> str:
    # On stderr: what is asked is no part of the answer that goes into a file or a pipe.
    print(question.text, end=": ", file=sys.stderr, flush=True)
    said = sys.stdin.readline()
    if not said:
        raise KeyboardInterrupt  # the terminal was closed: nobody is there any more
    return said


def cache_of(options: argparse.Namespace) -> PlanCache:
    """Return the cache of options and environment, without operations or model."""
    return open_plan_cache(place_of(options))


def existing_cache_of(options: argparse.Namespace) -> PlanCache:
    """Return the cache that the options name, for a command of no use on one that it would make.

    Raises:
        ForeignDirectory: there is none.
    """
    settings = place_of(options)
    if not settings.database:
        existing(options.directory)
    return open_plan_cache(settings)


def place_of(options: argparse.Namespace) -> Settings:
    """Return the settings of the environment, for the place that the options name."""
    return Settings.load(environ=os.environ, directory=options.directory, database=options.database)


def encryption_key() -> str:
    """Return the key that what is on disk is encrypted with; empty: it is not."""
    return Settings.load(environ=os.environ).encryption_key


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of options and environment, checked for what makes no sense.

    Raises:
        InvalidInput: a base URL without a model, or a model without a key.
    """
    settings = Settings.load(
        environ=os.environ,
        directory=options.directory,
        database=options.database,
        model=options.model,
        base_url=options.base_url,
        threshold=options.threshold,
        plan_format=options.plan_format,
    )
    if settings.base_url and not settings.model:
        raise InvalidInput("a base URL without a model does nothing; name one by --model")
    if settings.model and not (settings.api_key or settings.base_url):
        raise InvalidInput(
            f"model {settings.model!r} needs a key; set OPENAI_API_KEY, or give a --base-url"
        )
    return settings
