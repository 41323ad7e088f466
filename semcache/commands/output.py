"""What commands print, and the statuses they exit with."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

from semcache.canonical import Json, JsonObject, dumps

if TYPE_CHECKING:
    from semcache.runs.tree import Run

WRONG, ERROR, WAITING, INTERRUPTED = 1, 2, 3, 130
"""Exit statuses beside 0: a command found something wrong (`demo` a wrong answer, `tune` nothing to
recommend, `plan check` a finding), a command failed, the plan asks what nobody was there to answer,
somebody hit Ctrl-C."""


def print_json(value: Json) -> None:
    """Print `value` as one line of JSON."""
    print(dumps(value))


def print_pairs(pairs: JsonObject, *, as_json: bool) -> None:
    """Print one pair a line, or all as JSON."""
    if as_json:
        print_json(pairs)
        return
    for name, value in pairs.items():
        print(f"{name}: {value if isinstance(value, str) else dumps(value)}")


def print_run(run: "Run", *, to: TextIO) -> None:
    """Print what a run did as a tree, in colors on a terminal where rich is installed."""
    if to.isatty() and find_spec("rich"):
        from rich.console import Console  # noqa: PLC0415 - an extra

        from semcache.runs.drawing import rich_text  # noqa: PLC0415 - errors are printed without it

        Console(file=to).print(rich_text(run))
    else:
        print(run, file=to)


def progress(what: str) -> Callable[[int, int], None] | None:
    """Return what tells how far long work is, for those who sit before a terminal; else None."""
    if not sys.stderr.isatty():
        return None

    def told(done: int, total: int) -> None:
        over = done >= total
        if over or done % max(1, total // 100) == 0:
            shown = "" if over else f"{what}: {done:,} of {total:,}"
            print(f"\r{shown:60}", end="\r" if over else "", file=sys.stderr, flush=True)

    return told


def say_error(message: str) -> None:
    """Print an error in one line where errors go."""
    print("semcache:", " ".join(message.split()), file=sys.stderr)
