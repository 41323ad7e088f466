"""Soak: processes at a fixed rate on one directory, killed at random moments, and then an audit.

    python benchmarks/soak.py [--minutes M] [--rate CALLS_A_SECOND] [--workers N] [--kill-every S]
                              [--entries N] [--json OUT] [--seed N] [--directory DIR]

Each worker looks prompts up and stores the plans of those that miss. What a store acknowledged is
written down by the worker as soon as the call returns, so that it can be asked for in the end.
Workers are killed by SIGKILL and started again. The audit: every acknowledged plan is there and is
served with the values of a new prompt; nobody was ever served another plan or other values;
`verify` finds nothing wrong with any record, binding or vector. The exit status is 1 otherwise.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from budgets import Timed, opened
from curves import Workload, options, write_json
from load import place, store

from semcache import Hit, PlanCache
from semcache.stores.disk.store import DiskStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.upkeep.verify import verify

REPORT_S = 1.0


@dataclass
class Audit:
    """What the soak came to."""

    seconds: float = 0.0
    calls: int = 0
    hits: int = 0
    failed: int = 0
    """Lookups that missed because the store could not be read."""
    acknowledged: int = 0
    kills: int = 0
    calls_a_second: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    lost: list[int] = field(default_factory=list)
    """Templates whose plan was acknowledged and is not there."""
    wrong: list[Any] = field(default_factory=list)
    """What was served and should not have been."""
    problems: list[str] = field(default_factory=list)
    """What `verify` found."""

    @property
    def clean(self) -> bool:
        """Whether nothing was lost and nothing wrong."""
        return not (self.lost or self.wrong or self.problems)


class Log:
    """Lines of JSON that survive the process: each is one `write` to the end of a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, **told: object) -> None:
        """Write one line."""
        os.write(self._file, f"{json.dumps(told)}\n".encode())


def worker(given: argparse.Namespace) -> int:
    """Call at a fixed rate until killed, or until the time is over."""
    work = Workload(given.entries, given.seed)
    rng = random.Random(f"{given.seed}:{os.getpid()}:{time.time_ns()}")  # noqa: S311 - a workload
    log = Log(given.worker / f"log-{given.number}.jsonl")
    pause = given.workers / given.rate
    end = time.time() + given.minutes * 60
    calls, hits, failed, took, told = 0, 0, 0, [], time.monotonic()
    with opened(given.worker / "cache", Timed()) as cache:
        due = time.monotonic()
        while time.time() < end:
            start = time.perf_counter()
            outcome = one_call(cache, work, log, rng)
            took.append(round(1000 * (time.perf_counter() - start), 3))
            calls, hits = calls + 1, hits + (outcome == "hit")
            failed += outcome == "store_failed"
            if time.monotonic() - told > REPORT_S:
                log.say(
                    calls=calls, hits=hits, failed=failed, took=rng.sample(took, min(20, len(took)))
                )
                calls, hits, failed, took, told = 0, 0, 0, [], time.monotonic()
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
        log.say(calls=calls, hits=hits, failed=failed, took=took[:20])
    return 0


def one_call(cache: PlanCache, work: Workload, log: Log, rng: random.Random) -> str:
    """Look one prompt up; store its plan if it missed. Return `hit` or why it missed."""
    number = rng.randrange(work.count)
    year, limit = rng.randrange(1990, 2030), rng.randrange(2, 99)
    found = cache.lookup(work.prompt(number, year, limit))
    if isinstance(found, Hit):
        if found.plan.to_dict() != work.plan(number, year, limit):
            log.say(wrong=number, served=found.plan.to_dict())
        return "hit"
    store(cache, work, number, year, limit)
    log.say(stored=number)
    return found.reason


def started(
    given: argparse.Namespace, folder: Path, number: int, end: float
) -> subprocess.Popen[bytes]:
    """Start worker `number`, for what is left of the time."""
    left = max(0.0, end - time.time()) / 60
    command = [sys.executable, __file__, "--worker", str(folder), "--number", str(number)]
    for name, value in (
        ("minutes", left), ("rate", given.rate), ("workers", given.workers),
        ("entries", given.entries), ("seed", given.seed),
    ):  # fmt: skip
        command += [f"--{name}", str(value)]
    return subprocess.Popen(command)  # noqa: S603 - this script itself


def soak(given: argparse.Namespace, folder: Path) -> int:
    """Keep workers running until the time is over, and kill some; return how many were killed."""
    rng = random.Random(given.seed)  # noqa: S311 - a workload, not a secret
    end = time.time() + given.minutes * 60
    running = [started(given, folder, n, end) for n in range(given.workers)]
    kills = 0
    while time.time() < end:
        time.sleep(rng.uniform(0.2, 1.8) * given.kill_every)
        if time.time() >= end - 0.5:
            break
        victim = rng.randrange(given.workers)
        if running[victim].poll() not in {None, 0}:
            raise SystemExit(f"worker {victim} failed by itself; see above")
        running[victim].kill()  # SIGKILL to a child of our own
        running[victim].wait()
        kills += 1
        running[victim] = started(given, folder, victim, end)
    for one in running:
        if one.wait():
            raise SystemExit("a worker failed by itself; see above")
    return kills


def audit(folder: Path, work: Workload, kills: int, seconds: float) -> Audit:
    """Return what became of everything."""
    found = Audit(seconds=round(seconds, 1), kills=kills)
    stored: set[int] = set()
    took: list[float] = []
    for line in lines(folder):
        found.calls += line.get("calls", 0)
        found.hits += line.get("hits", 0)
        found.failed += line.get("failed", 0)
        took += line.get("took", [])
        if "stored" in line:
            stored.add(line["stored"])
        if "wrong" in line:
            found.wrong.append(line)
    took.sort()
    if took:
        found.p50_ms, found.p99_ms = took[len(took) // 2], took[len(took) * 99 // 100]
    found.acknowledged = len(stored)
    found.calls_a_second = round(found.calls / seconds, 1)
    with opened(folder / "cache", Timed()) as cache:
        for number in sorted(stored):
            hit = cache.lookup(work.prompt(number, 2001, 7))
            if not isinstance(hit, Hit):
                found.lost.append(number)
            elif hit.plan.to_dict() != work.plan(number, 2001, 7):
                found.wrong.append({"wrong": number, "served": hit.plan.to_dict()})
    plain = DiskStore.open(folder / "cache")
    checked = verify(plain, embedder=Timed().fingerprint, make_index=FaissIndex)
    plain.close()
    found.problems = [str(problem) for problem in checked.problems]
    return found


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the workers wrote down."""
    for path in sorted(folder.glob("log-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, audit, print; return 0 if nothing was lost and nothing wrong."""
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second of all workers")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3.0, help="seconds on average")
    parser.add_argument("--entries", type=int, default=5_000, help="different templates")
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        return worker(given)
    with place(given.directory) as folder:
        start = time.time()
        kills = soak(given, folder)
        found = audit(folder, Workload(given.entries, given.seed), kills, time.time() - start)
    print(json.dumps({**asdict(found), "clean": found.clean}, indent=1))
    if given.json:
        asked = {"rate": given.rate, "workers": given.workers, "entries": given.entries}
        write_json(given.json, {"asked": asked, "audit": {**asdict(found), "clean": found.clean}})
    return 0 if found.clean else 1


if __name__ == "__main__":
    sys.exit(main())
