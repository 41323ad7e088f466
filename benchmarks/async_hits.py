"""Time awaited template hits while misses wait for a slow embedder; print a table, write JSON.

python benchmarks/async_hits.py --json OUT
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from semcache import AsyncPlanCache, PlanCache
from semcache.ports import Vectors
from semcache.testing import HashEmbedder

HITS = 200


class Slow(HashEmbedder):
    """An embedder behind a network: each call takes `seconds`."""

    seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors, late."""
        time.sleep(self.seconds)
        return super().embed(texts)


async def measured(misses: int, seconds: float) -> dict[str, float]:
    """Return milliseconds of hits one after another while `misses` lookups wait."""
    embedder = Slow()
    async with AsyncPlanCache(PlanCache.open(embedder=embedder)) as cache:
        await cache.store("sales in 2024 by city", {"call": {"year": "2024"}})
        embedder.seconds = seconds
        waiting = [asyncio.create_task(cache.lookup(f"thing{n} of its own")) for n in range(misses)]
        await asyncio.sleep(0)
        took = []
        for n in range(HITS):
            start = time.perf_counter()
            found = await cache.lookup(f"sales in {2000 + n % 24} by city")
            took.append(1000 * (time.perf_counter() - start))
            if not found:
                raise SystemExit(found.explain())
        still = sum(not task.done() for task in waiting)
        await asyncio.gather(*waiting)
    cuts = statistics.quantiles(took, n=100)
    return {"misses": misses, "waiting_at_end": still, "p50_ms": cuts[49], "max_ms": max(took)}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--seconds", type=float, default=5.0, help="what an embedding takes")
    chosen = options.parse_args()
    rows = [asyncio.run(measured(misses, chosen.seconds)) for misses in (0, 18, 100)]
    for row in rows:
        print("  ".join(f"{name} {value:.2f}" for name, value in row.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
