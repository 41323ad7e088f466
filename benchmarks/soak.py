"""Soak: processes at a fixed rate on one store, with all that may go wrong, and then an audit.

    python benchmarks/soak.py [--minutes M] [--stores disk postgres] [--rate CALLS_A_SECOND]
                              [--workers N] [--fault-every S] [--entries N] [--json OUT] [--seed N]
                              [--directory DIR]

Each worker (soak_worker.py) looks prompts up, stores the plans of those that miss, stores wrong
plans and corrects them. What a call acknowledged is written down as soon as it returns. Meanwhile
workers are killed (SIGKILL) and started again, interrupted (SIGINT; and exceptions raised in
threads), stopped for seconds (SIGSTOP); the clock jumps by an hour or a year, either way; the
database is stopped as well, and the disk is full for seconds (on a small tmpfs, where one may be
mounted: as root on Linux). Disk and PostgreSQL (started by `pgserver`) soak side by side.

The audit of each: every plan that was acknowledged to a tenant without a bound is there and is
served with the values of a new prompt; nobody was ever served another plan, other values or
another tenant's plan, nor a plan that somebody else's correction had reached before the lookup
began; bounds hold; a worker that is never killed ends with the memory that it had after a third of
the time; no call raised; `verify` finds nothing wrong with any record, binding or vector. The exit
status is 1 otherwise.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import soak_worker
from curves import Workload, options, write_json
from load import place
from soak_worker import BOUND, CORRECTED, SMALL, opened, planned, workload
from workload import Timed

from semcache import Hit
from semcache.ports import PlanStore
from semcache.stores.disk.store import DiskStore
from semcache.stores.postgres.store import PostgresStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.upkeep.contents import verify

DISK_MB = 48
"""Room of the small disk."""
LAG_S = {"disk": 0.0, "postgres": 1.0}
"""Seconds within which another process sees a correction, as the settings say."""
GROWTH_MB = 6.0
"""More memory than this in the last third than in the second, is no flat memory."""
SETTLED = 60
"""Reports in a third of the time from which on its memory says something."""
JUMPS_S = (3600.0, -3600.0, 365 * 86400.0, -365 * 86400.0, 0.0, 0.0)


@dataclass
class Audit:
    """What the soak of one store came to."""

    store: str
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    hits: int = 0
    interrupted: int = 0
    """Calls that an interrupt ended."""
    failed: int = 0
    """Lookups that missed because the store could not be read."""
    acknowledged: int = 0
    corrections: int = 0
    corrections_pending: int = 0
    """Of them, those that the store could not take at once."""
    calls_a_second: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    memory_mb: tuple[float, float] = (0.0, 0.0)
    """Of the worker that is never killed, in the second and in the last third, in the median."""
    lost: list[Any] = field(default_factory=list)
    """Tenants and templates whose plan was acknowledged and is not there."""
    wrong: list[Any] = field(default_factory=list)
    """What was served and should not have been; another tenant's plan too."""
    after_correction: list[Any] = field(default_factory=list)
    """Wrong plans that were served after a correction."""
    over_bound: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What calls raised that were not interrupted."""
    problems: list[str] = field(default_factory=list)
    """What `verify` found."""

    @property
    def flat(self) -> bool:
        """Whether memory did not grow."""
        return self.memory_mb[1] - self.memory_mb[0] <= GROWTH_MB

    @property
    def clean(self) -> bool:
        """Whether nothing was lost and nothing wrong."""
        bad = (self.lost, self.wrong, self.after_correction, self.over_bound, self.errors)
        return self.flat and not any(bad) and not self.problems


@dataclass(frozen=True)
class SoakedStore:
    """A store that workers share."""

    name: str
    """`disk` or `postgres`."""
    folder: Path
    """Has the cache on a `disk`, the `clock` and what the workers wrote down."""
    database: str = ""
    """Connection string; empty: it is on disk."""

    def __post_init__(self) -> None:
        self.set_clock(0.0)

    def set_clock(self, off_s: float) -> None:
        """Let the clock of all workers be off from now on."""
        file = os.open(self.folder / "clock", os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(file, f"{off_s:<31.1f}\n".encode(), 0)
        os.close(file)

    def plain(self) -> PlanStore:
        """Return the store itself."""
        if self.database:
            return PostgresStore.open(self.database, schema="semcache")
        return DiskStore.open(self.folder / "disk" / "cache")


class Fleet:
    """Workers on one store, and what happens to them."""

    def __init__(
        self, name: str, folder: Path, given: argparse.Namespace, stack: ExitStack
    ) -> None:
        self.given = given
        self.rng = random.Random(f"{given.seed}:{name}")  # noqa: S311 - a workload
        self.faults: Counter[str] = Counter()
        self.begin = time.monotonic()
        self.until = self.begin + given.minutes * 60
        self._server: psutil.Process | None = None
        self._full: Path | None = None
        database = ""
        if name == "postgres":
            database, self._server = stack.enter_context(server(folder / "server"))
        elif mounted := small_disk(folder / "disk"):
            stack.callback(mounted)
            self._full = folder / "disk" / "filler"
        self.store = SoakedStore(name, folder, database)
        opened(folder, database).close()  # an empty disk that is full has no room for a cache
        self._running = [self._started(n) for n in range(given.workers)]

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        told = {
            "worker": self.store.folder, "number": number, "until": self.until, "begin": self.begin,
            "rate": self.given.rate, "workers": self.given.workers, "entries": self.given.entries,
            "seed": self.given.seed, "database": self.store.database,
        }  # fmt: skip
        command = [sys.executable, "-W", "ignore", __file__]
        for name, value in told.items():
            command += [f"--{name}", str(value)]
        # Inherited: a worker begins to heed interrupts when it works.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with (self.store.folder / f"stderr-{number}.log").open("ab") as errors:
                return subprocess.Popen(command, stderr=errors)  # noqa: S603 - this script itself
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self) -> None:
        """Let things go wrong until the time is over; then wait for the workers."""
        faults: list[Callable[[], None]] = [
            self._kill, self._kill, self._interrupt, self._interrupt, self._stop, self._jump,
        ]  # fmt: skip
        if self._server is not None:
            faults.append(self._stop_server)
        if self._full is not None:
            faults.append(self._fill_disk)
        while self._left() > 0:
            time.sleep(min(self._left(), self.rng.uniform(0.2, 1.8) * self.given.fault_every))
            if self._left() > 0:
                self.rng.choice(faults)()
        self.store.set_clock(0.0)
        for number, one in enumerate(self._running):
            try:
                status: object = one.wait(timeout=120)
            except subprocess.TimeoutExpired:
                one.kill()
                status = "it hangs"
            if status:
                raise self._failed(number, status)

    def _failed(self, number: int, how: object) -> SystemExit:
        told = (self.store.folder / f"stderr-{number}.log").read_text(encoding="utf-8")
        return SystemExit(f"{self.store.name}: worker {number} failed: {how}\n{told[-3000:]}")

    def _left(self) -> float:
        """Return the seconds in which something may still go wrong."""
        return self.until - 2 - time.monotonic()

    def _while(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self._left())))

    def _kill(self) -> None:
        self.faults["kill"] += 1
        victim = self.rng.randrange(1, self.given.workers)  # the first tells its memory
        if self._running[victim].poll() not in {None, 0}:
            raise self._failed(victim, "by itself")
        self._running[victim].kill()
        self._running[victim].wait()
        self._running[victim] = self._started(victim)

    def _interrupt(self) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            self.faults["interrupt"] += 1
            self.rng.choice(self._running).send_signal(signal.SIGINT)
            time.sleep(self.rng.uniform(0, 0.2))

    def _stop(self) -> None:
        self.faults["stop"] += 1
        victim = self.rng.choice(self._running)
        victim.send_signal(signal.SIGSTOP)
        self._while(self.rng.uniform(0.5, 8))
        victim.send_signal(signal.SIGCONT)

    def _jump(self) -> None:
        self.faults["clock"] += 1
        self.store.set_clock(self.rng.choice(JUMPS_S))

    def _stop_server(self) -> None:
        assert self._server is not None  # noqa: S101 - of this store
        self.faults["database stopped"] += 1
        processes = [self._server, *self._server.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        self._while(self.rng.uniform(0.5, 12))
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _fill_disk(self) -> None:
        assert self._full is not None  # noqa: S101 - of this store
        self.faults["disk full"] += 1
        with suppress(OSError), self._full.open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(65536))
        with suppress(OSError), self._full.open("ab", buffering=0) as filler:
            while True:
                filler.write(bytes(512))
        self._while(self.rng.uniform(0.5, 6))
        self._full.unlink()

    def audit(self) -> Audit:
        """Return what became of everything."""
        told = {**vars(self.given), "begin": self.begin, "until": self.until}
        work = workload(argparse.Namespace(**told))
        found = audit(self.store, work, time.monotonic() - self.begin)
        found.faults = dict(self.faults)
        return found


def small_disk(folder: Path) -> Callable[[], None] | None:
    """Mount a disk of `DISK_MB` at `folder`; return what takes it away, None if it may not be."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "tmpfs", str(folder)]
    with suppress(OSError):
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:  # noqa: S603
            # Lazily: a worker that hangs must not keep it.
            take = ["umount", "-l", str(folder)]
            return lambda: subprocess.run(take, check=False) and None  # noqa: S603
    return None


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Give the connection string and the process of a PostgreSQL of its own."""
    import pgserver  # noqa: PLC0415 - of the extra `test`

    folder.mkdir()
    started = pgserver.get_server(folder)
    try:
        yield started.get_uri(), psutil.Process(started.get_pid())
    finally:
        started.cleanup()


def audit(store: SoakedStore, work: Workload, seconds: float) -> Audit:
    """Return what became of everything."""
    found = Audit(store.name, seconds=round(seconds, 1))
    told = [*lines(store.folder)]
    stored = {(one["tenant"], one["stored"]) for one in told if "stored" in one}
    corrected = {one["corrected"]: one for one in told if "corrected" in one}
    for what in ("calls", "hits", "interrupted", "failed"):
        setattr(found, what, sum(one.get(what, 0) for one in told))
    found.wrong = [one for one in told if "wrong" in one]
    found.errors = [one["error"] for one in told if "error" in one]
    found.acknowledged, found.corrections = len(stored), len(corrected)
    found.corrections_pending = sum(one["pending"] for one in corrected.values())
    found.calls_a_second = round(found.calls / seconds, 1)
    found.after_correction = [
        one for one in told if "stale" in one and late(one, corrected, LAG_S[store.name])
    ]
    took = sorted(ms for one in told for ms in one.get("took", ()))
    if took:
        found.p50_ms, found.p99_ms = took[len(took) // 2], took[len(took) * 99 // 100]
    found.memory_mb = memory([one for one in told if one.get("worker") == 0])
    _ask_all(store, work, found, stored, corrected)
    plain = store.plain()
    checked = verify(plain, embedder=Timed().fingerprint, make_index=FaissIndex)
    plain.close()
    found.problems = [str(problem) for problem in checked.problems]
    return found


def _ask_all(
    store: SoakedStore,
    work: Workload,
    found: Audit,
    stored: set[tuple[str, int]],
    corrected: dict[int, Any],
) -> None:
    """Look up all that was acknowledged and all that was corrected, in a process of its own."""
    with opened(store.folder, store.database) as cache:
        cache.flush()
        for tenant, number in sorted(stored):
            hit = cache.lookup(work.prompt(number, 2001, 7), tenant=tenant)
            if not isinstance(hit, Hit):
                found.lost.append((tenant, number))
            elif hit.plan.to_dict() != planned(work, tenant, number, 2001, 7):
                found.wrong.append({"wrong": number, "tenant": tenant, "at": "the end"})
        for number in corrected:
            hit = cache.lookup(work.prompt(number, 2001, 7), tenant=CORRECTED)
            if isinstance(hit, Hit) and hit.plan.to_dict()["query"]["input"]["wrong"]:
                found.after_correction.append({"stale": number, "at": "the end"})
        found.over_bound = [t for t in SMALL if len(cache.entries(tenant=t)) > BOUND]


def late(stale: dict[str, Any], corrected: dict[int, Any], lag_s: float) -> bool:
    """Return whether a wrong plan was served by a lookup that began after its correction.

    One that the store could not take at once holds for the process that it was said to.
    """
    known = corrected.get(stale["stale"])
    if known is None:
        return False
    if stale["by"] == known["by"]:
        return bool(stale["start"] > known["at"])
    return not known["pending"] and bool(stale["start"] > known["at"] + lag_s)


def memory(reports: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return the memory of a worker in the second and in the last third, in the median.

    Zeros, if the soak was too short to tell.
    """
    sizes = [one["mb"] for one in sorted(reports, key=lambda one: float(one["at"]))]
    third = len(sizes) // 3
    if third < SETTLED:
        return 0.0, 0.0
    second, last = sorted(sizes[third : 2 * third]), sorted(sizes[2 * third :])
    return second[len(second) // 2], last[len(last) // 2]


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the workers wrote down."""
    for path in sorted(folder.glob("log-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def soak(given: argparse.Namespace, below: Path) -> list[Audit]:
    """Soak every store, side by side; return what each came to."""
    with ExitStack() as stack:
        fleets, failed = list[Fleet](), list[BaseException]()
        for name in given.stores:
            (below / name).mkdir()
            fleets.append(Fleet(name, below / name, given, stack))

        def run(fleet: Fleet) -> None:
            try:
                fleet.run()
            except BaseException as error:  # noqa: BLE001 - told by the main thread
                failed.append(error)

        threads = [threading.Thread(target=run, args=(fleet,)) for fleet in fleets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return [fleet.audit() for fleet in fleets]


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, audit, print; return 0 if nothing was lost and nothing wrong."""
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--stores", nargs="+", choices=["disk", "postgres"], default=["disk"])
    parser.add_argument("--rate", type=float, default=60.0, help="calls a second of all workers")
    parser.add_argument("--workers", type=int, default=4, help="of each store, at least 2")
    parser.add_argument("--fault-every", type=float, default=3.0, help="seconds on average")
    parser.add_argument("--entries", type=int, default=200, help="templates of a tenant")
    for hidden in ("number", "until", "begin"):
        parser.add_argument(f"--{hidden}", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--database", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    given.number, given.correcting = int(given.number), True
    if given.worker:
        return soak_worker.run(given)
    with place(given.directory) as folder:
        found = soak(given, folder)
    told = [{**asdict(one), "flat": one.flat, "clean": one.clean} for one in found]
    print(json.dumps(told, indent=1))
    if given.json:
        asked = {name: getattr(given, name) for name in ("rate", "workers", "entries", "minutes")}
        write_json(given.json, {"asked": asked, "audit": told})
    return 0 if all(one.clean for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
