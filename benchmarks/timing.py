"""Times as ratios: what budgets.py and its parts measure with, and the table of what they found."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workload import Timed

ROUNDS = 5
NEVER_COMPILED = "PYTHONDONTWRITEBYTECODE"
"""Set, each process would compile all modules anew, which no installed program does."""


NOTHING = "-"
"""What a line says that it measured where it could not."""


@dataclass(frozen=True)
class Line:
    """One budget, its bound, and what was measured."""

    budget: str
    bound: str
    measured: str
    met: bool | None
    """None: not measured here, or no budget."""
    details: str = ""


def each(call: Callable[[Any], object], items: Sequence[Any]) -> list[float]:
    """Return the seconds of `call` for each of `items`."""
    took = []
    for item in items:
        start = time.perf_counter()
        call(item)
        took.append(time.perf_counter() - start)
    return took


def medians(*sides: tuple[Callable[[Any], object], Sequence[Sequence[Any]]]) -> list[float]:
    """Return for each side its median seconds in the best of its rounds; sides take turns."""
    best = [float("inf")] * len(sides)
    for number in range(min(len(rounds) for _, rounds in sides)):
        for i, (call, rounds) in enumerate(sides):
            best[i] = min(best[i], statistics.median(each(call, rounds[number])))
    return best


def micro(seconds: float) -> str:
    """Return `seconds` as microseconds, or as milliseconds where there are many."""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def ratio(name: str, bound: float, value: float, details: str) -> Line:
    """Return the line of a ratio that must stay under `bound`."""
    shown = f"{value:.2f} x" if bound <= 1 else f"{value:.1f} x"
    return Line(name, f"< {bound:g} x", shown, value < bound, details)


def without_embedding(
    call: Callable[[Any], object], rounds: Sequence[Sequence[Any]], embedder: Timed
) -> float:
    """Return the median seconds of a call in the best round, what the embedder took taken off."""
    best = float("inf")
    for items in rounds:
        took = []
        for item in items:
            before, start = embedder.seconds, time.perf_counter()
            call(item)
            took.append(time.perf_counter() - start - (embedder.seconds - before))
        best = min(best, statistics.median(took))
    return best


def spent(*arguments: str) -> tuple[float, str]:
    """Return the seconds of processor time of a Python process and what it printed.

    Modules stay compiled in a folder, which the first process fills.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compiled = str(Path(tempfile.gettempdir()) / "semcache-budgets-compiled")
    environ = {name: value for name, value in os.environ.items() if name != NEVER_COMPILED}
    done = subprocess.run(  # noqa: S603 - our own words, no shell
        [sys.executable, *arguments],
        env={**environ, "PYTHONPYCACHEPREFIX": compiled},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, done.stdout


def table(lines: Sequence[Line]) -> str:
    """Return the lines as a table for a terminal."""
    rows = [("budget", "bound", "measured", "")]
    rows += [(line.budget, line.bound, line.measured, verdict(line)) for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    out = []
    for row, details in zip(rows, ["", *(line.details for line in lines)], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.append("  ".join([*cells, details]).rstrip())
    return "\n".join(out)


def verdict(line: Line) -> str:
    """Return what a line comes to, in a word or two."""
    if line.measured == NOTHING:
        return "not measured"
    return "" if line.met is None else "met" if line.met else "NOT MET"
