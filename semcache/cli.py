"""The command line: a thin door to `SemCache`; only it and `commands/` print."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import semcache as package
from semcache.commands import ask, demo, entries, mcp, plans, replays, upkeep
from semcache.commands.output import ERROR, INTERRUPTED, say_error
from semcache.errors import SemCacheError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; see `commands.output`."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except BrokenPipeError:
        # `semcache list | head` closed our output; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SemCacheError, OSError) as error:
        say_error(str(error) or type(error).__name__)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        say_error(f"{message}; see `{self.prog} --help`")
        sys.exit(ERROR)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="semcache", description="Make an execution plan once and reuse it.")
    parser.add_argument("--version", action="version", version=f"semcache {package.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in (ask, entries, upkeep, demo, mcp, plans, replays):
        group.add(commands)
    return parser
