"""The budgets of sharing: threads, processes and tenants that use one cache."""

import random
import shutil
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import bulk
import load
from curves import Workload
from timing import ROUNDS, Line, each, micro, ratio, without_embedding
from workload import Shape, Timed, asked, opened, polite, scratch, shapes

from semcache import Parameter, PlanCache, Settings
from semcache.cache.context import CacheContext
from semcache.ports import PAGE, Record
from semcache.stores.disk.store import BUSY_TIMEOUT_S, DiskStore
from semcache.stores.relational.tables import Tables
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.wiring.models import SystemClock

T = TypeVar("T")

SECONDS = 1.0
"""How long each side of a pair of rounds of processes works."""
ASKED = 16_000
"""Prompts a round of threads: a second or more, so that one collection of garbage weighs little."""
SERVED = 2_000
"""Templates, at most, whose entries were served before: hits of the rest are slower."""
TENANTS = 5_000
ENTRIES = 2
"""Of each of these tenants."""
STORES = 40
"""Plans stored a round."""
TURNS = 3
"""Rounds of lookups, of each template once, while another tenant is held up."""
NEIGHBOR = "neighbor"
"""The tenant whose reading and writing is held up."""


def threads(cache: PlanCache, templates: Sequence[Shape], rng: random.Random) -> Iterator[Line]:
    """Measure hits a second of eight threads against one, in pairs of rounds.

    Of templates that were served once, by prompts never asked before.
    """
    picked = templates[:SERVED]
    each(cache.lookup, [shape.prompt(1989, 5) for shape in picked])
    pairs = [
        [hits_a_second(cache, asked(picked, ASKED, rng), count) for count in (8, 1)]
        for _ in range(ROUNDS)
    ]
    yield speed_up("8 threads / 1 thread, template-tier hits a second", 1, pairs)


def speed_up(name: str, bound: float | None, pairs: Sequence[Sequence[float]]) -> Line:
    """Return the line of what many do against what a single one does, pair by pair."""
    ratios = [many / one for many, one in pairs]
    middle = statistics.median(ratios)
    many, one = pairs[max(range(len(pairs)), key=ratios.__getitem__)]
    details = f"median of {len(pairs)} pairs; best {many:,.0f} / {one:,.0f} a second"
    if bound is None:
        return Line(name, "", f"{middle:.2f} x", None, details)
    return Line(name, f">= {bound:g} x", f"{middle:.2f} x", middle >= bound, details)


def hits_a_second(cache: PlanCache, prompts: Sequence[str], count: int) -> float:
    """Return hits a second of `count` threads that share out `prompts`; each has connected."""
    ready = threading.Barrier(count + 1)

    def work(share: Sequence[str]) -> None:
        cache.lookup(share[0])
        ready.wait()
        for prompt in share:
            cache.lookup(prompt)

    running = [threading.Thread(target=work, args=(prompts[i::count],)) for i in range(count)]
    for thread in running:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in running:
        thread.join()
    return len(prompts) / (time.perf_counter() - start)


def processes(directory: Path, count: int, seed: int) -> Iterator[Line]:
    """Measure hits a second of eight processes against one, in pairs of rounds.

    Of templates that each process has served once; and, as no budget, of all: most hits are the
    first of their entry then, which a process reads and decodes.
    """
    work = Workload(count, seed)
    with scratch(directory) as folder:
        with closing(DiskStore.open(folder / "cache")) as store:
            deque(bulk.fill(store, work, 0, 0), maxlen=0)
        with opened(folder / "cache", Timed()) as cache:
            cache.lookup(work.prompt(0, 2000, 7))  # leaves a snapshot, as one that ran before does

        def hits(many: int, served: int) -> float:
            calls = load.Calls(SECONDS, writes=0.0, seed=seed, served=served)
            return load.processes(folder / "cache", work, many, calls).hits_a_second

        name = f"8 processes / 1 process, template-tier hits a second, {count:,} entries"
        for shown, bound, served in (
            (name, 1.6, min(count, SERVED)),
            (f"{name}, most of them the first of their entry", None, 0),
        ):
            pairs = [[hits(many, served) for many in (8, 1)] for _ in range(ROUNDS)]
            yield speed_up(shown, bound, pairs)


def bounded_stores(directory: Path, rng: random.Random) -> Iterator[Line]:
    """Measure stores that must make room among all tenants against stores that need not.

    Both caches have the same entries to begin with, and the same plans are stored in both; each
    goes to another tenant.
    """
    work = Workload(ENTRIES, 7)
    full = work.count + TENANTS * ENTRIES
    with scratch(directory) as folder:
        with closing(DiskStore.open(folder / "bounded")) as store:
            deque(bulk.fill(store, work, TENANTS, ENTRIES), maxlen=0)
        shutil.copytree(folder / "bounded", folder / "free")
        embedders = [Timed(), Timed()]
        with (
            opened(folder / "bounded", embedders[0], bound=full) as bounded,
            opened(folder / "free", embedders[1]) as free,
        ):
            best = [float("inf"), float("inf")]
            for _ in range(ROUNDS + 1):
                items = [(shape, f"small{rng.randrange(TENANTS)}") for shape in shapes(STORES, rng)]
                for side, cache in enumerate((bounded, free)):
                    took = without_embedding(storing(cache), [items], embedders[side])
                    best[side] = min(best[side], took)
            kept = bounded._context.store.room().entries  # noqa: SLF001 - that it is at its bound
        if kept > full:
            raise SystemExit(f"{kept:,} entries are kept; expected at most {full:,}")
    details = f"{micro(best[0])} / {micro(best[1])}; {full:,} entries"
    yield ratio(
        f"a store at a bound of all / without, {TENANTS:,} tenants", 3, best[0] / best[1], details
    )


def storing(cache: PlanCache) -> Callable[[tuple[Shape, str]], object]:
    """Return what stores the plan of a template for a tenant."""
    params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]

    def store(item: tuple[Shape, str]) -> object:
        shape, tenant = item
        prompt, plan = shape.prompt(2024, 5), shape.plan(2024, 5)
        return cache.store(prompt, plan, params=params, tenant=tenant)

    return store


class HeldStore(DiskStore):
    """A store in which one thread stops, in the middle of a write or before it reads a tenant."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._held: threading.Thread | None = None
        self._stopped = threading.Event()
        self._go_on = threading.Event()

    @contextmanager
    def holding(self, work: Callable[[], object]) -> Iterator[None]:
        """Let a thread do `work` until it comes to the store; at the end it may go on."""
        self._stopped.clear()
        self._go_on.clear()
        self._held = threading.Thread(target=work)
        self._held.start()
        try:
            if not self._stopped.wait(60):
                raise SystemExit("the work that was to be held never came to the store")
            yield
        finally:
            self._go_on.set()
            self._held.join()

    def _stop(self) -> None:
        if threading.current_thread() is self._held:
            self._stopped.set()
            self._go_on.wait()

    def _write(self, work: Callable[[Tables], T]) -> T:
        def stopping(tables: Tables) -> T:
            done = work(tables)
            self._stop()  # in the transaction: nobody else can write
            return done

        return super()._write(stopping)

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield the records of a tenant."""
        self._stop()
        return super().pages(tenant, size=size)


def waiting(directory: Path, rng: random.Random) -> Iterator[Line]:
    """Look up for one tenant while another's write, and its first reading, stand still.

    They go on once all lookups have ended, so that a lookup that waits for them would take as long
    as the store has patience. There are enough lookups that counts of them are written meanwhile.
    """
    work = Workload(400, 7)
    with scratch(directory) as folder:
        with closing(DiskStore.open(folder / "cache")) as store:
            deque(bulk.fill(store, work, 0, 0), maxlen=0)
        held = HeldStore(folder / "cache")
        context = CacheContext.of(
            Settings(ttl_s=None, max_entries=None),
            store=held,
            embedder=Timed(),
            clock=SystemClock(),
            make_index=lambda _: FaissIndex(),
        )
        prompt, plan = work.prompt(0, 2024, 5), work.plan(0, 2024, 5)
        with PlanCache(context) as cache:
            tasks = {
                "reading": lambda: cache.lookup(prompt, tenant=NEIGHBOR),
                "writing": lambda: cache.store(prompt, plan, tenant=NEIGHBOR),
            }
            for what, task in tasks.items():
                free, longest, waited = wait(cache, held, task, Asking(work, rng))
                count = TURNS * work.count
                yield Line(
                    f"a lookup's wait for another tenant's {what}",
                    "none",
                    "as long as it lasts" if waited else "none",
                    not waited,
                    f"longest of {count:,} lookups {micro(longest)}, without it {micro(free)}",
                )


@dataclass
class Asking:
    """Prompts of a workload, half of them paraphrases; other ones each time."""

    work: Workload
    rng: random.Random

    def prompts(self) -> list[str]:
        """Return a prompt of each template."""
        count = self.work.count
        plain = [self.work.prompt(n, self.rng.randrange(1990, 2030), 7) for n in range(count)]
        return [*plain[::2], *polite(plain[1::2])]


def wait(
    cache: PlanCache, held: HeldStore, task: Callable[[], object], asking: Asking
) -> tuple[float, float, bool]:
    """Return the longest lookup, the longest while `task` is held, and if one waited for that."""

    def longest() -> float:
        return max(max(each(cache.lookup, asking.prompts())) for _ in range(TURNS))

    longest()  # reads the tenant's own records
    free = longest()
    with held.holding(task):
        beside = longest()
    return free, beside, beside >= BUSY_TIMEOUT_S
