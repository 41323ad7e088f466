"""How a cache grows that stores without end at a bound: memory, disk, and what is left of values.

    python benchmarks/growth.py 1000 20000 200000 --where memory disk --json OUT

Each row is a process of its own: it stores so many plans of prompts that nobody asked before, with
values and words of their own, at `max_entries=100`, looks each up once with another value, and
compacts at the end. `residue` counts the values of removed entries that still stand in the files.
"""

import argparse
import gc
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

from semcache import Parameter, PlanCache
from semcache.testing import HashEmbedder

BOUND = 100
LETTERS = "bcdfghklmnprstvz"


def word(number: int) -> str:
    """Return a word that no other number has."""
    return "".join(LETTERS[int(digit, 16)] + "aeio"[int(digit, 16) % 4] for digit in f"{number:x}")


def resident() -> int:
    """Return the bytes of memory that this process has now."""
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def fill(cache: PlanCache, count: int) -> None:
    """Store `count` plans, and look each up with another value."""
    for n in range(count):
        city, code = f"{word(n)}ville".title(), f"ORD-{n:07}"
        cache.store(
            f"{word(n)} of {code} in {city}",
            {"operation": word(n), "order": code, "city": city},
            params=[Parameter("order", code, mention=code), Parameter("city", city, mention=city)],
        )
        cache.lookup(f"{word(n)} of ORD-9{n:07} in {city}")


def measure(count: int, where: str, answers: "multiprocessing.Queue[dict[str, object]]") -> None:
    """Put what a cache is like after `count` stores on `answers`."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "cache" if where == "disk" else None
        with PlanCache.open(
            directory, embedder=HashEmbedder(), max_entries=BOUND, max_wrong=0.02
        ) as cache:
            fill(cache, 10)
            gc.collect()
            before, began = resident(), time.perf_counter()
            fill(cache, count)
            took = time.perf_counter() - began
            gc.collect()
            after, kept = resident(), len(cache.entries())
            cache.flush()
        answers.put(
            {
                "stores": count,
                "where": where,
                "entries": kept,
                "before_mb": round(before / 2**20, 1),
                "after_mb": round(after / 2**20, 1),
                "ms_per_store": round(took / count * 1000, 2),
                **(_on_disk(directory, count) if directory else {}),
            }
        )


def _on_disk(directory: Path, count: int) -> dict[str, object]:
    from semcache.upkeep.compact import compact  # noqa: PLC0415
    from semcache.wiring.clock import SystemClock  # noqa: PLC0415

    done = compact(directory, clock=SystemClock())
    found = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    gone = range(max(0, count - 5 * BOUND), max(0, count - 2 * BOUND))
    residue = sum(f"ORD-{n:07}".encode() in found for n in gone)
    return {"disk_mb": round(done.bytes_after / 2**20, 2), "residue": residue, "of": len(gone)}


def main() -> None:
    """Print one row for each size and place."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("stores", type=int, nargs="+")
    options.add_argument("--where", nargs="+", choices=("memory", "disk"), default=["memory"])
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    rows = []
    context = multiprocessing.get_context("spawn")
    for where in given.where:
        for count in given.stores:
            answers = context.Queue()
            process = context.Process(target=measure, args=(count, where, answers))
            process.start()
            rows.append(answers.get())
            process.join()
            print(rows[-1], flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
