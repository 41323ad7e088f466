"""The command line: a thin door to `SemCache`; only it and `commands/` print."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
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
        say_error(_flagged(str(error), options) or type(error).__name__)
        return ERROR
    except KeyboardInterrupt:
        say_error("interrupted")
        return INTERRUPTED
    return status


def _flagged(message: str, options: argparse.Namespace) -> str:
    """Return a message that begins with the name of a setting with the name of its flag instead."""
    first = message.partition(" ")[0]
    name = first.strip("`")
    given = {known for known, value in vars(options).items() if value is not None}
    option = "server_url" if name == "base_url" and "base_url" not in given else name
    if option not in given & _FLAGS:
        return message
    flag = f"--{option.replace('_', '-')}"
    return f"{flag}{message.removeprefix(first)}".replace(f"`{name}`", flag)


_FLAGS = {"base_url", "max_wrong", "plan_format", "server_url", "threshold"}
"""Options that errors of ours call by the name of a setting or argument."""


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        say_error(f"{message}; see `{self.prog} --help`")
        sys.exit(ERROR)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="semcache", description="Make an execution plan once and reuse it.")
    parser.add_argument("--version", action="version", version=f"semcache {package.__version__}")
    if find_spec("shtab"):
        import shtab  # noqa: PLC0415 - an extra

        shtab.add_argument_to(parser, ["--print-completion"])  # for bash, zsh or tcsh
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in (ask, entries, upkeep, demo, mcp, plans, replays):
        group.add(commands)
    return parser
