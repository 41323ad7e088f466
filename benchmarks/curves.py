"""What load.py, scale.py and soak.py share: options, a workload of any size, and pictures."""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workload import Shape, machine, shapes

NEAR = (
    "airports borders castles deserts estuaries forests glaciers harbors islands junctions".split()
)
"""One word more than workload.py has, for more than 100,000 templates."""


class Workload:
    """Templates with a plan each; any number of them up to a million, the same for a seed."""

    def __init__(self, count: int, seed: int) -> None:
        if not 1 <= count <= 1_000_000:
            raise SystemExit(f"{count:,} templates; expected 1 to 1,000,000")
        rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
        self._shapes = shapes(min(count, 100_000), rng)
        self.count = count

    def prompt(self, number: int, year: int, limit: int) -> str:
        """Return the prompt of template `number` with these values."""
        text = self.shape(number).prompt(year, limit)
        return text if number < 100_000 else f"{text} near {self.near(number)}"

    def plan(self, number: int, year: int, limit: int) -> dict[str, Any]:
        """Return the plan of template `number` with these values."""
        plan = self.shape(number).plan(year, limit)
        plan["query"]["input"]["near"] = self.near(number)
        return plan

    def near(self, number: int) -> str:
        """Return the word that only templates from 100,000 on say."""
        return NEAR[number // 100_000]

    def shape(self, number: int) -> Shape:
        """Return the words of template `number`."""
        return self._shapes[number % len(self._shapes)]


def options(about: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all three can be told; `about`: the docstring of the script."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n", 1)[0])
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where caches are made")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    return parser


def write_json(path: Path, figures: Mapping[str, Any]) -> None:
    """Write figures with what they depend on, small enough for a repository."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(), **figures}, indent=1, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def draw(
    path: Path,
    panels: Sequence[tuple[str, str, str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]],
    *,
    logarithmic: bool = False,
) -> None:
    """Draw panels of (title, x label, y label, curves by name) side by side, as PNG or SVG."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - takes a second

    mpl.rcParams["svg.hashsalt"] = "semcache"  # the same picture for the same figures
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False)
    for axis, (title, across, up, curves) in zip(axes[0], panels, strict=True):
        for name, (xs, ys) in curves.items():
            axis.plot(xs, ys, marker="o", label=name)
        axis.set(title=title, xlabel=across, ylabel=up)
        if logarithmic:
            axis.set(xscale="log", yscale="log")
        else:
            axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    print(f"drawn: {path}", file=sys.stderr)
