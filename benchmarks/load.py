"""Hits a second of 1 to 8 threads and 1 to 8 processes on one directory, reading alone and mixed.

    python benchmarks/load.py [--entries N] [--counts 1 2 4 8] [--seconds S] [--writes SHARE]
                              [--served N] [--rounds N] [--json OUT] [--picture OUT.png]
                              [--seed N] [--directory DIR]

Prompts have other values than those stored, all templates equally often; each worker looks up for
`--seconds`, and the sum of what all did in that time is told. `--served`: only so many templates
are asked for, each of which its process has served once before: else most hits of a process are the
first of their entry, which is read and decoded then. Mixed: that share of the calls stores
a plan anew. Everything is measured in `--rounds` rounds, one after the other, and the best of each
is told: what else the machine does can only take away. A lookup that does not hit, or gives other
values than its prompt's, ends the run.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import bulk
from curves import Workload, draw, options, write_json
from workload import Timed, opened

from semcache import Hit, Parameter, PlanCache
from semcache.stores.disk.store import DiskStore


@dataclass(frozen=True)
class Calls:
    """What each worker does."""

    seconds: float
    writes: float
    """Share of the calls that store."""
    seed: int
    served: int = 0
    """Templates that are asked for, each served once before; 0: all of them."""


@dataclass(frozen=True)
class Measured:
    """What some workers did at once."""

    workers: str
    """`threads` or `processes`."""
    count: int
    writes: float
    """Share of calls that stored."""
    hits_a_second: float
    stores_a_second: float
    p50_ms: float
    """Of a hit."""
    p99_ms: float


@dataclass
class Done:
    """What one worker did."""

    hits: int = 0
    stores: int = 0
    took: list[float] | None = None


def store(cache: PlanCache, work: Workload, number: int, year: int = 2024, limit: int = 5) -> None:
    """Store the plan of a template."""
    params = [
        Parameter("year", year, mention=str(year)),
        Parameter("limit", limit, mention=str(limit)),
    ]
    kept = cache.store(
        work.prompt(number, year, limit), work.plan(number, year, limit), params=params
    )
    if not kept or kept.reason:
        raise SystemExit(f"the workload cannot be stored: {kept.reason}")


def busy(cache: PlanCache, work: Workload, calls: Calls, number: int) -> Done:
    """Look up and store, as worker `number` of some."""
    rng = random.Random(f"{calls.seed}:{number}")  # noqa: S311 - a workload, not a secret
    done, took = Done(), []
    end = time.perf_counter() + calls.seconds
    while time.perf_counter() < end:
        template, year, limit = (
            rng.randrange(calls.served or work.count),
            rng.randrange(1990, 2030),
            rng.randrange(2, 99),
        )
        if rng.random() < calls.writes:
            store(cache, work, template)
            done.stores += 1
            continue
        start = time.perf_counter()
        found = cache.lookup(work.prompt(template, year, limit))
        took.append(time.perf_counter() - start)
        if not isinstance(found, Hit) or found.plan.to_dict() != work.plan(template, year, limit):
            raise SystemExit(f"expected a hit with its own values:\n{found.explain()}")
        done.hits += 1
    done.took = took
    return done


def begin(cache: PlanCache, work: Workload, calls: Calls) -> None:
    """Read the tenant, and serve the templates once that are to be served before."""
    for number in range(max(1, calls.served)):
        cache.lookup(work.prompt(number, 2000, 7))


def summed(workers: str, calls: Calls, done: Sequence[Done]) -> Measured:
    """Return what all did together."""
    took = sorted(one for each in done for one in each.took or ())
    return Measured(
        workers=workers,
        count=len(done),
        writes=calls.writes,
        hits_a_second=round(sum(each.hits for each in done) / calls.seconds, 1),
        stores_a_second=round(sum(each.stores for each in done) / calls.seconds, 1),
        p50_ms=round(1000 * took[len(took) // 2], 4),
        p99_ms=round(1000 * took[len(took) * 99 // 100], 4),
    )


def threads(directory: Path, work: Workload, count: int, calls: Calls) -> Measured:
    """Measure threads of one process."""
    results: list[Done] = []
    with opened(directory, Timed()) as cache:
        begin(cache, work, calls)
        ready = threading.Barrier(count)

        def run(number: int) -> None:
            ready.wait()
            results.append(busy(cache, work, calls, number))

        running = [threading.Thread(target=run, args=(n,)) for n in range(count)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    if len(results) != count:
        raise SystemExit("a thread failed; see above")
    return summed("threads", calls, results)


def processes(directory: Path, work: Workload, count: int, calls: Calls) -> Measured:
    """Measure processes that share the directory; they begin together once all have opened it."""
    command = [sys.executable, __file__, "--worker", str(directory), "--entries", str(work.count)]
    command += [part for name, value in asdict(calls).items() for part in (f"--{name}", str(value))]
    running = [
        subprocess.Popen(  # noqa: S603 - this script itself
            [*command, "--number", str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    for one in running:
        assert one.stdout is not None  # noqa: S101 - it is a pipe
        if one.stdout.readline() != "ready\n":
            raise SystemExit("a process could not open the cache; see above")
    for one in running:
        assert one.stdin is not None  # noqa: S101 - it is a pipe
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.communicate()[0] for one in running]
    if any(one.returncode for one in running):
        raise SystemExit("a process failed; see above")
    return summed("processes", calls, [Done(**json.loads(text)) for text in said])


def worker(given: argparse.Namespace) -> int:
    """Be one of the processes."""
    work = Workload(given.entries, given.seed)
    calls = Calls(given.seconds, given.writes, given.seed, given.served)
    with opened(given.worker, Timed()) as cache:
        begin(cache, work, calls)
        print("ready", flush=True)
        sys.stdin.readline()
        done = busy(cache, work, calls, given.number)
    print(json.dumps(asdict(done)))
    return 0


@contextmanager
def place(directory: Path | None) -> Iterator[Path]:
    """Give a folder for a cache, on tmpfs if there is one, removed afterwards."""
    tmpfs = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    below = directory or (tmpfs if tmpfs.is_dir() else None)
    with tempfile.TemporaryDirectory(dir=below, prefix="semcache-load-") as name:
        yield Path(name)


def measure(
    work: Workload, given: argparse.Namespace, told: Callable[[Measured], None]
) -> list[Measured]:
    """Fill a cache and measure everything that was asked for."""
    found: list[Measured] = []
    with place(given.directory) as folder:
        directory = folder / "cache"
        with closing(DiskStore.open(directory)) as store:
            deque(bulk.fill(store, work, 0, 0), maxlen=0)
        with opened(directory, Timed()) as cache:
            cache.lookup(work.prompt(0, 2000, 7))  # leaves a snapshot, as one that ran before does
        for _ in range(given.rounds):
            for run in (threads, processes):
                for writes in dict.fromkeys((0.0, given.writes)):
                    for count in given.counts:
                        calls = Calls(given.seconds, writes, given.seed, given.served)
                        one = run(directory, work, count, calls)
                        told(one)
                        found.append(one)
    best: dict[tuple[str, float, int], Measured] = {}
    for one in sorted(found, key=lambda one: one.hits_a_second):
        best[one.workers, one.writes, one.count] = one
    return [best[key] for key in dict.fromkeys((o.workers, o.writes, o.count) for o in found)]


def show(one: Measured) -> None:
    """Print one line."""
    print(
        f"{one.count} {one.workers:9}  {one.writes:4.0%} writes  {one.hits_a_second:9,.0f} hits/s  "
        f"{one.stores_a_second:7,.0f} stores/s  p50 {one.p50_ms:.3f} ms  p99 {one.p99_ms:.3f} ms",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0."""
    parser = options(__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--served", type=int, default=0, metavar="N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writes", type=float, default=0.05, help="share of the mixed runs")
    parser.add_argument("--picture", type=Path, metavar="OUT")
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        return worker(given)
    if not 0 <= given.served <= given.entries:
        raise SystemExit(f"--served {given.served}; expected 0 to {given.entries}, all entries")
    found = measure(Workload(given.entries, given.seed), given, show)
    print(f"\nbest of {given.rounds} rounds:")
    for one in found:
        show(one)
    if given.json:
        asked = {
            name: getattr(given, name)
            for name in ("entries", "served", "seconds", "rounds", "seed")
        }
        write_json(given.json, {"asked": asked, "measured": [asdict(one) for one in found]})
    if given.picture:
        draw_load(given.picture, found)
    return 0


def draw_load(path: Path, found: Sequence[Measured]) -> None:
    """Draw hits a second over how many work at once."""
    panels = []
    for workers in ("threads", "processes"):
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for one in found:
            if one.workers == workers:
                xs, ys = curves.setdefault(f"{one.writes:.0%} writes", ([], []))
                xs.append(one.count)
                ys.append(one.hits_a_second)
        panels.append((f"{workers} on one directory", workers, "hits a second", curves))
    draw(path, panels)


if __name__ == "__main__":
    sys.exit(main())
