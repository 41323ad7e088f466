"""What grows with the number of entries: latency by tier, memory, open time, room on disk.

    python benchmarks/scale.py [--sizes 1000 10000 100000] [--tenants N]
                               [--keep DIR [--fill-only | --anew]] [--json OUT]
                               [--picture OUT.png] [--seed N] [--directory DIR]

One tenant of each size, and `--tenants` tenants of ten entries beside one huge one, which has as
many as the largest size up to `--beside`. Directories are filled by `bulk.py`. Everything is
measured in a process of its own that opens the filled directory, `--rounds` times, and the best of
each figure is told: what else the machine does can only take away. Latencies are of single calls;
from those of the semantic tier the seconds of the stand-in embedder are taken off. Memory is what
the process has at most, less what it has before it opens the cache.

`open_s` is with the snapshot that a cache leaves when it is closed; `derive_s` are seconds of
processor time where there is none, as after the first open of a filled database on a new machine.

Sizes up to 1,000,000 work. That one takes long to fill: `--keep DIR` keeps what was filled for
another run, or what a run that was stopped had filled so far, and `--fill-only` measures nothing.
What is there is compared, by a sample, with what this version makes; a directory that differs ends
the run. `--anew` derives a kept directory once more: another version may take another time.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any

import bulk
from curves import Workload, draw, options, write_json
from load import place
from workload import TAUGHT, TENANT, Timed, opened, teach

from semcache import Hit, PlanCache
from semcache.stores.disk.sidecar import VIEWS
from semcache.stores.disk.store import DiskStore

CALLS = 400
POLITE = "could you please "
"""What makes a prompt one of the semantic tier; each tenant learns of a few that it is harmless."""
SMALL = 10
"""Entries of each of the small tenants."""


@dataclass(frozen=True)
class Measured:
    """What a cache of one size takes."""

    entries: int
    tenants: int
    open_s: float
    """Seconds from opening to the first hit."""
    first_semantic_s: float
    """Seconds of the first lookup that reaches the semantic tier, embedding taken off: it counts
    the words that the plans of all entries share."""
    template_ms: float
    """Median of a hit of the template tier."""
    template_p99_ms: float
    semantic_ms: float
    """Median of a hit of the semantic tier, embedding taken off."""
    semantic_p99_ms: float
    semantic_share: float
    """Share of the semantic prompts that hit; the others are refused for their risk."""
    miss_ms: float
    """Median of a miss, embedding taken off."""
    memory_mb: float
    disk_mb: float
    fill_s: float
    """Seconds of processor time to write all records, in bulk."""
    derive_s: float
    """Seconds of processor time from opening without a snapshot to the first hit."""
    derive_memory_mb: float
    """The most that the process has meanwhile."""


def examined(directory: Path, work: Workload, tenants: int, seed: int) -> dict[str, Any]:
    """Open the cache as a new process does, and return its figures."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    embedder = Timed()
    imported(embedder)
    before = memory_mb()
    start = time.perf_counter()
    cache = opened(directory, embedder)
    expect(cache.lookup(work.prompt(0, 2000, 7)), "template")
    open_s = time.perf_counter() - start
    embedded, start = embedder.seconds, time.perf_counter()
    cache.lookup(f"{POLITE}{work.prompt(0, 2000, 7)}")
    first_s = time.perf_counter() - start - (embedder.seconds - embedded)

    def any_prompt() -> tuple[str, str]:
        tenant = f"small{rng.randrange(tenants)}" if tenants and rng.random() < 0.5 else TENANT
        number = rng.choice(stored(work, tenant, rng))
        return work.prompt(number, rng.randrange(1990, 2030), rng.randrange(2, 99)), tenant

    asked = [any_prompt() for _ in range(CALLS)]
    for tenant in dict.fromkeys(name for _, name in asked):
        taught = [work.prompt(number, 1999, 7) for number in stored(work, tenant, rng)]
        teach(cache, taught, POLITE, tenant=tenant)
    polite = [(f"{POLITE}{text}", tenant) for text, tenant in asked]
    nothing = [(f"{text} {n}word{n}", tenant) for n, (text, tenant) in enumerate(asked)]
    template = timed(cache, embedder, asked, "template")
    semantic = timed(cache, embedder, polite, "semantic")
    miss = timed(cache, embedder, nothing, "")
    found = {
        "open_s": round(open_s, 3),
        "first_semantic_s": round(first_s, 3),
        "template_ms": template[0],
        "template_p99_ms": template[1],
        "semantic_ms": semantic[0],
        "semantic_p99_ms": semantic[1],
        "semantic_share": semantic[2],
        "miss_ms": miss[0],
        "memory_mb": round(memory_mb() - before, 1),
    }
    cache.close()
    return found


def imported(embedder: Timed) -> None:
    """Import what takes its time, which is no part of opening a cache."""
    embedder.embed(["so that numpy is there"])
    for heavy in ("faiss", "semcache.wiring"):
        import_module(heavy)


def stored(work: Workload, tenant: str, rng: random.Random) -> list[int]:
    """Return numbers of templates that the tenant has: all of a small one's, some of the others."""
    if tenant == TENANT:
        return rng.choices(range(work.count), k=TAUGHT)
    return [(int(tenant.removeprefix("small")) + n) % work.count for n in range(SMALL)]


def timed(
    cache: PlanCache, embedder: Timed, prompts: Sequence[tuple[str, str]], tier: str
) -> tuple[float, float, float]:
    """Return median and 99th percentile of lookups in milliseconds, embedding taken off.

    Of those that `tier` answered, whose share comes last: among 100,000 templates of the same few
    words the risk of some is too high, and they miss. A fifth is the least that says anything.
    """
    took = []
    for text, tenant in prompts:
        embedded, start = embedder.seconds, time.perf_counter()
        found = cache.lookup(text, tenant=tenant)
        seconds = time.perf_counter() - start - (embedder.seconds - embedded)
        if (found.tier if isinstance(found, Hit) else "") == tier:
            took.append(seconds)
    if len(took) < len(prompts) / 5:
        raise SystemExit(f"{len(took)} of {len(prompts)} prompts came to {tier or 'a miss'!r}")
    took.sort()
    return (
        round(1000 * took[len(took) // 2], 4),
        round(1000 * took[len(took) * 99 // 100], 4),
        round(len(took) / len(prompts), 3),
    )


def expect(found: object, tier: str) -> None:
    """End the run unless the tier is the one that is to be measured."""
    had = found.tier if isinstance(found, Hit) else ""
    if had != tier:
        raise SystemExit(f"expected {tier or 'a miss'!r}, got {had or 'a miss'!r}: {found}")


def memory_mb() -> float:
    """Return the most that this process had; `ru_maxrss` would begin with what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def filled(folder: Path, work: Workload, tenants: int) -> dict[str, float]:
    """Fill the cache in `folder`, or what is missing of it; return what that took in all."""
    told = folder / "filled.json"
    before = json.loads(told.read_text(encoding="utf-8"))["fill_s"] if told.exists() else 0.0
    start = time.process_time()
    with closing(DiskStore.open(folder / "cache")) as store:
        for entries in bulk.fill(store, work, tenants, SMALL):
            took = before + time.process_time() - start
            told.write_text(json.dumps({"entries": entries, "fill_s": took}), encoding="utf-8")
    return {"fill_s": round(json.loads(told.read_text(encoding="utf-8"))["fill_s"], 1)}


def derived(folder: Path, work: Workload, given: argparse.Namespace) -> dict[str, float]:
    """Let another process open the cache in `folder` without a snapshot; return what that took."""
    told = folder / "derived.json"
    if given.anew or not told.exists():
        rmtree(folder / "cache" / VIEWS, ignore_errors=True)
        told.write_text(worker(folder, work.count, given, "--derive"), encoding="utf-8")
    figures: dict[str, float] = json.loads(told.read_text(encoding="utf-8"))
    return figures


def deriving(directory: Path, work: Workload) -> dict[str, float]:
    """Open a cache that has no snapshot, which leaves one; return what that took."""
    embedder = Timed()
    imported(embedder)
    before, start = memory_mb(), time.process_time()
    with opened(directory, embedder) as cache:
        expect(cache.lookup(work.prompt(0, 2000, 7)), "template")
        took = time.process_time() - start
    return {"derive_s": round(took, 2), "derive_memory_mb": round(memory_mb() - before, 1)}


def worker(folder: Path, size: int, given: argparse.Namespace, *more: str) -> str:
    """Return what another process of this script prints that measures the cache in `folder`."""
    command = [sys.executable, __file__, "--worker", str(folder / "cache"), "--sizes", str(size)]
    command += ["--seed", str(given.seed), *more]
    return subprocess.run(  # noqa: S603 - this script itself
        command, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


@contextmanager
def kept(directory: Path, size: int, tenants: int) -> Iterator[Path]:
    """Give the folder of this size, which stays."""
    folder = directory / f"{size}-{tenants}"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def measure(size: int, tenants: int, given: argparse.Namespace) -> Measured | None:
    """Fill a directory, and let another process open it."""
    work = Workload(size, given.seed)
    with kept(given.keep, size, tenants) if given.keep else place(given.directory) as folder:
        took = filled(folder, work, tenants)
        if given.fill_only:
            return None
        took |= derived(folder, work, given)
        files = [path for path in (folder / "cache").rglob("*") if path.is_file()]
        disk = sum(path.stat().st_size for path in files)
        more = ("--tenants", str(tenants))
        said = [worker(folder, size, given, *more) for _ in range(given.rounds)]
        rounds = [json.loads(text) for text in said]
    return Measured(
        entries=size + tenants * SMALL,
        tenants=1 + tenants,
        disk_mb=round(disk / 2**20, 2),
        **took,
        **{name: min(one[name] for one in rounds) for name in rounds[0]},
    )


def show(one: Measured) -> None:
    """Print one line."""
    print(
        f"{one.entries:9,} entries of {one.tenants:5,} tenants  open {one.open_s:6.2f} s, derive "
        f"{one.derive_s:.1f}  template {one.template_ms:.3f}  semantic {one.semantic_ms:.3f}  miss "
        f"{one.miss_ms:.3f} ms  {one.memory_mb:,.0f} MB  disk {one.disk_mb:,.0f} MB",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--tenants", type=int, default=2_000, help="small ones; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=int, default=10_000, help="entries of the huge one")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is filled, or reuse it")
    parser.add_argument("--fill-only", action="store_true", help="with --keep: measure nothing")
    parser.add_argument("--anew", action="store_true", help="with --keep: derive it once more")
    parser.add_argument("--derive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--picture", type=Path, metavar="OUT")
    given = parser.parse_args(arguments)
    if given.worker:
        work = Workload(given.sizes[0], given.seed)
        if given.derive:
            print(json.dumps(deriving(given.worker, work)))
            return 0
        print(json.dumps(examined(given.worker, work, given.tenants, given.seed)))
        return 0
    runs: list[tuple[int, int]] = [(size, 0) for size in given.sizes]
    if given.tenants:
        few = [size for size in given.sizes if size <= given.beside]
        runs.append((max(few, default=min(given.sizes)), given.tenants))
    found = []
    for size, tenants in runs:
        one = measure(size, tenants, given)
        if one is not None:
            show(one)
            found.append(one)
    if given.json:
        write_json(given.json, {"seed": given.seed, "measured": [asdict(one) for one in found]})
    if given.picture and found:
        draw_scale(given.picture, [one for one in found if one.tenants == 1])
    return 0


def draw_scale(path: Path, found: Sequence[Measured]) -> None:
    """Draw the curves over the number of entries."""
    sizes = [float(one.entries) for one in found]

    def curve(of: Callable[[Measured], float]) -> tuple[list[float], list[float]]:
        return sizes, [of(one) for one in found]

    latency = {
        "template": curve(lambda one: one.template_ms),
        "semantic - embedding": curve(lambda one: one.semantic_ms),
        "miss - embedding": curve(lambda one: one.miss_ms),
    }
    room = {
        "memory": curve(lambda one: one.memory_mb),
        "disk": curve(lambda one: one.disk_mb),
    }
    panels = [
        ("latency by tier (median)", "entries", "ms", latency),
        ("room", "entries", "MB", room),
        (
            "open, to the first hit",
            "entries",
            "s",
            {
                "with a snapshot": curve(lambda one: one.open_s),
                "derived (processor)": curve(lambda one: one.derive_s),
            },
        ),
    ]
    draw(path, panels, logarithmic=True)


if __name__ == "__main__":
    sys.exit(main())
