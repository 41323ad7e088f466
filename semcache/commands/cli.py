"""The command line: a thin door to `SemCache`; only it and `commands/` print."""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn

import semcache as package
from semcache.commands import GROUPS
from semcache.commands.output import ERROR, INTERRUPTED, say_error
from semcache.errors import SemCacheError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; see `commands.output`."""
    arguments = sys.argv[1:] if argv is None else argv
    # No option that stands before the command has a value, except the one that ends the program.
    command = next((word for word in arguments if not word.startswith("-")), "")
    options = _parser(lambda group: command in group).parse_args(arguments)
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


class _Completion(argparse.Action):
    """Print the script that completes commands and options in a shell."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002 - the contract of argparse
        values: object,
        option_string: str | None = None,  # noqa: ARG002 - the same
    ) -> NoReturn:
        import shtab  # noqa: PLC0415 - an extra

        print(shtab.complete(_parser(lambda _: True), str(values)))
        parser.exit()


def _parser(loaded: Callable[[Collection[str]], bool]) -> argparse.ArgumentParser:
    """Return a parser that knows all commands, and the options of the `loaded` groups of them.

    A group with its options brings all that its commands work with: half a second.
    """
    parser = _Parser(prog="semcache", description="Make an execution plan once and reuse it.")
    parser.add_argument("--version", action="version", version=f"semcache {package.__version__}")
    if find_spec("shtab"):
        parser.add_argument(
            "--print-completion",
            action=_Completion,
            choices=("bash", "zsh", "tcsh"),
            help="print a script that completes commands and options",
        )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module, group in GROUPS.items():
        if loaded(group):
            import_module(f"semcache.commands.{module}").add(commands)
            continue
        for name, summary in group.items():
            commands.add_parser(name, help=summary)
    return parser
