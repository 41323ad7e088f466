"""Print the files of the package that one hit by meaning enters, in the order of entering.

    python benchmarks/path.py

A cache in memory is warmed by one hit, so that nothing is loaded or derived in the one that is
traced. Each file is printed once, with the function by which it was entered first; below, how often
control went from one file to another. What the embedder does inside is left out.
"""

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import semcache
from semcache import Hit, PlanCache
from semcache.testing import HashEmbedder

PACKAGE = Path(semcache.__file__).parent


def traced(lookup: Callable[[], object]) -> list[tuple[str, str]]:
    """Return file and function of each call inside the package while `lookup` runs."""
    calls: list[tuple[str, str]] = []

    def called(frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as sys wants it
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            calls.append((str(path.relative_to(PACKAGE)), frame.f_code.co_name))

    sys.setprofile(called)
    try:
        lookup()
    finally:
        sys.setprofile(None)
    return calls


def main() -> int:
    """Run the command."""
    cache = PlanCache.open(embedder=HashEmbedder())
    plan = {"operation": "sales", "input": {"year": 2024}}
    cache.store("sales in 2024 by category", plan, params={"year": 2024})
    cache.lookup("show me the sales in 2022 by category, please")
    found: list[object] = []
    calls = traced(lambda: found.append(cache.lookup("give me sales in 2023 by category")))
    if not isinstance(found[0], Hit) or found[0].tier != "semantic":
        print(f"the prompt was to hit by meaning; found {found[0]}", file=sys.stderr)
        return 1
    first: dict[str, str] = {}
    for path, function in calls:
        if path != "testing.py":
            first.setdefault(path, function)
    for number, (path, function) in enumerate(first.items(), start=1):
        print(f"{number:3d}  {path}  {function}")
    changes = sum(a[0] != b[0] for a, b in pairwise(calls))
    print(f"{len(first)} files, {len(set(calls))} functions, {changes} changes of file")
    return 0


if __name__ == "__main__":
    sys.exit(main())
