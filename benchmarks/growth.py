"""How a cache grows that stores without end at a bound: memory, disk, and what is left of values.

    python benchmarks/growth.py 1000000 --where memory disk --json OUT

Each place is a process of its own. It stores so many plans of prompts that nobody asked before, of
words of their own, at `max_entries=100`. Every tenth has values, and is looked up with another.
There is a row at each power of ten from 1,000 on, and at the end. On disk it compacts at the
end; `residue` counts the values of removed entries that still stand in the files.
"""

import argparse
import gc
import hashlib
import json
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from semcache import Parameter, PlanCache
from semcache.ports import Vectors
from semcache.upkeep.checks import room
from semcache.upkeep.migrate import compact
from semcache.wiring import SystemClock

BOUND = 100
LETTERS = "bcdfghklmnprstvz"


def word(number: int) -> str:
    """Return a word that no other number has."""
    return "".join(LETTERS[int(digit, 16)] + "aeio"[int(digit, 16) % 4] for digit in f"{number:x}")


def resident() -> int:
    """Return the bytes of memory that this process has now."""
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


class Directions:
    """An embedder that keeps nothing of what it is asked: a direction of its own for each text."""

    fingerprint = "directions:64"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 a text."""
        bits = b"".join(hashlib.shake_256(text.encode()).digest(64) for text in texts)
        rows = np.frombuffer(bits, np.uint8).reshape(-1, 64).astype(np.float32) - 127.5
        found: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def fill(cache: PlanCache, numbers: range) -> None:
    """Store a plan for each number: every tenth has values, and is looked up with another."""
    for n in numbers:
        if n % 10:
            cache.store(word(n), {"operation": word(n)})
            continue
        city, code = f"{word(n)}ville".title(), f"ORD-{n:07}"
        cache.store(
            f"{word(n)} of {code} in {city}",
            {"operation": word(n), "order": code, "city": city},
            params=[Parameter("order", code, mention=code), Parameter("city", city, mention=city)],
        )
        cache.lookup(f"{word(n)} of ORD-9{n:07} in {city}")


def marks(count: int) -> list[int]:
    """Return after how many stores there is a row."""
    return [*[10**n for n in range(3, 10) if 10**n < count], count]


def measure(
    count: int, where: str, rows: "multiprocessing.Queue[dict[str, object] | None]"
) -> None:
    """Put what a cache is like on the way to `count` stores on `rows`, and None at the end."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "cache" if where == "disk" else None
        bounds = {"max_entries": BOUND, "max_wrong": 0.02}
        with PlanCache.open(directory, embedder=Directions(), **bounds) as cache:
            done, began = 0, time.process_time()
            for mark in marks(count):
                fill(cache, range(done, mark))
                done = mark
                gc.collect()
                row: dict[str, object] = {
                    "stores": mark,
                    "where": where,
                    "entries": len(cache.entries()),
                    "memory_mb": round(resident() / 2**20, 1),
                    "objects": len(gc.get_objects()),
                    "ms_per_store": round((time.process_time() - began) / mark * 1000, 2),
                }
                if directory:
                    row["disk_mb"] = round(room(directory) / 2**20, 2)
                rows.put(row)
        if directory:
            rows.put(_compacted(directory, count))
    rows.put(None)


def _compacted(directory: Path, count: int) -> dict[str, object]:
    done = compact(directory, clock=SystemClock())
    found = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    gone = range(max(0, count - 50 * BOUND) // 10 * 10, max(0, count - 2 * BOUND), 10)
    residue = sum(f"ORD-{n:07}".encode() in found for n in gone)
    return {"compacted_mb": round(done.bytes_after / 2**20, 2), "residue": residue, "of": len(gone)}


def main() -> None:
    """Print the rows of each place."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("stores", type=int)
    options.add_argument("--where", nargs="+", choices=("memory", "disk"), default=["memory"])
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    rows = []
    context = multiprocessing.get_context("spawn")
    for where in given.where:
        told: multiprocessing.Queue[dict[str, object] | None] = context.Queue()
        process = context.Process(target=measure, args=(given.stores, where, told))
        process.start()
        while (row := told.get()) is not None:
            rows.append(row)
            print(row, flush=True)
        process.join()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
