"""A process of soak.py: looks up, stores and corrects until it is killed or the time is over.

What a call acknowledged is written down as soon as it returns, for the audit to ask for.
"""

import argparse
import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from curves import Workload
from workload import Timed

from semcache import Hit, Miss, Parameter, PlanCache
from semcache.ports import Clock

TENANTS = ("north", "south", "east")
"""Have no bound: what they were acknowledged must be there in the end."""
SMALL = tuple(f"small-{n}" for n in range(4))
BOUND = 40
"""Entries that each of `SMALL` may have."""
CORRECTED = "corrected"
"""The tenant that is given wrong plans which somebody corrects."""
WINDOW_S = 4.0
"""Seconds in which a worker stores one wrong plan and corrects it."""
REPORT_S = 1.0


class Killed(BaseException):
    """Raised in a thread from outside."""


class Log:
    """Lines of JSON that survive the process: each is one `write` to the end of a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, **told: object) -> None:
        """Write one line."""
        os.write(self._file, f"{json.dumps(told)}\n".encode())


class JumpingClock:
    """The system's clock, as far off as a file says, which all workers share."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def now(self) -> float:
        """Return epoch seconds, off."""
        return time.time() + float(os.pread(self._file, 32, 0) or 0)

    def monotonic(self) -> float:
        """Return seconds that nobody sets."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)


def opened(
    folder: Path, database: str, *, max_entries: int | None = None, clock: Clock | None = None
) -> PlanCache:
    """Return the cache of a soak; without `database` it is on disk."""
    return PlanCache.open(
        folder / "disk" / "cache",
        database=database or None,
        embedder=Timed(),
        clock=clock,
        max_entries=max_entries,
        ttl_s=None,
    )


def workload(given: argparse.Namespace) -> Workload:
    """Return the templates that are asked for, and then one for each wrong plan."""
    windows = int((given.until - given.begin) / WINDOW_S) + 2
    return Workload(given.entries + windows * given.workers, given.seed)


def planned(
    work: Workload, tenant: str, number: int, year: int, limit: int, *, wrong: bool = False
) -> dict[str, Any]:
    """Return the plan of a template for a tenant, who is named in it."""
    plan = work.plan(number, year, limit)
    plan["query"]["input"] |= {"of": tenant, "wrong": wrong}
    return plan


def resident_mb() -> float:
    """Return the memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


class Worker:
    """What one thread of a process does, call by call."""

    def __init__(self, given: argparse.Namespace, log: Log, seed: str) -> None:
        self.given, self.log = given, log
        self.rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
        self.work = workload(given)
        self.cache: PlanCache
        self.bounded: PlanCache
        self.calling = False
        """Whether an interrupt falls into a call of the cache, and not into what is here."""
        self.counts: Counter[str] = Counter()
        self.took: list[float] = []
        self._window, self._wrong, self._patience = -1, -1, 0

    def call(self) -> None:
        """Do one thing; an interrupt ends it."""
        start = time.perf_counter()
        try:
            self.calling = True
            self._one()
            self.calling = False
        except (KeyboardInterrupt, Killed):
            self.counts["interrupted"] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the audit is to tell of it
            self.calling = False
            if interrupt(error):
                self.counts["interrupted"] += 1
            else:
                self.log.say(error="".join(traceback.format_exception(error))[-3000:])
        self.counts["calls"] += 1
        self.took.append(round(1000 * (time.perf_counter() - start), 3))

    def _one(self) -> None:
        kind = self.rng.random()
        if kind < 0.1:
            self._store(self.bounded, self.rng.choice(SMALL), self._any())
        elif kind < 0.3 and self.given.correcting:
            self._correct()
        elif kind < 0.4:
            self._look_at_corrected()
        else:
            self._ask(self.rng.choice(TENANTS), self._any())

    def _any(self) -> int:
        return self.rng.randrange(self.given.entries)

    def _ask(self, tenant: str, number: int) -> None:
        """Look a prompt up; store its plan if it missed."""
        year, limit = self.rng.randrange(1990, 2030), self.rng.randrange(2, 99)
        found = self.cache.lookup(self.work.prompt(number, year, limit), tenant=tenant)
        if isinstance(found, Miss):
            self.counts["failed"] += found.reason == "store_failed"
            if self._store(self.cache, tenant, number):
                self.log.say(stored=number, tenant=tenant)
            return
        self.counts["hits"] += 1
        served = found.plan.to_dict()
        if served != planned(self.work, tenant, number, year, limit):
            self.log.say(wrong=number, tenant=tenant, served=served)

    def _store(self, cache: PlanCache, tenant: str, number: int, *, wrong: bool = False) -> bool:
        """Store the plan of a template; return whether that was acknowledged."""
        year, limit = self.rng.randrange(1990, 2030), self.rng.randrange(2, 99)
        params = [
            Parameter("year", year, mention=str(year)),
            Parameter("limit", limit, mention=str(limit)),
        ]
        stored = cache.store(
            self.work.prompt(number, year, limit),
            planned(self.work, tenant, number, year, limit, wrong=wrong),
            params=params,
            tenant=tenant,
            tags=[f"n{number}"],
        )
        return bool(stored) and not stored.reason

    def _correct(self) -> None:
        """Store a wrong plan once in each window; some calls later, say that it is wrong."""
        window = int((time.monotonic() - self.given.begin) / WINDOW_S)
        number = self.given.entries + window * self.given.workers + self.given.number
        if window != self._window:
            self._window, self._wrong = window, -1
            if self._store(self.cache, CORRECTED, number, wrong=True):
                self._wrong, self._patience = number, self.rng.randrange(3)
        elif self._wrong == number and self._patience:
            self._patience -= 1
        elif self._wrong == number:
            how, pending = self._said_wrong(number)
            at = time.monotonic()
            self._wrong = -1
            self.log.say(corrected=number, at=at, pending=bool(pending), by=os.getpid(), how=how)
            self._store(self.cache, CORRECTED, number)

    def _said_wrong(self, number: int) -> tuple[str, str]:
        """Correct the plan of a template; return by which call, and why that is pending."""
        found = self.cache.lookup(self.work.prompt(number, 2001, 7), tenant=CORRECTED)
        if isinstance(found, Hit) and self.rng.random() < 0.5:
            return "feedback", self.cache.feedback(found, right=False).pending
        return "invalidate", self.cache.invalidate(tenant=CORRECTED, tag=f"n{number}").pending

    def _look_at_corrected(self) -> None:
        """Look up a template that may have been corrected; write down if its plan is wrong."""
        window = int((time.monotonic() - self.given.begin) / WINDOW_S)
        number = self.given.entries + self.rng.randrange((window + 1) * self.given.workers)
        start = time.monotonic()
        found = self.cache.lookup(self.work.prompt(number, 2001, 7), tenant=CORRECTED)
        if isinstance(found, Hit):
            served = found.plan.to_dict()["query"]["input"]
            if served["wrong"]:
                self.log.say(stale=number, start=start, by=os.getpid())
            if served["of"] != CORRECTED:
                self.log.say(wrong=number, tenant=CORRECTED, served=served)

    def report(self) -> None:
        """Write down what was done since the last report."""
        counts, self.counts = self.counts, Counter()
        took, self.took = self.took, []
        shown = self.rng.sample(took, min(20, len(took)))
        self.log.say(
            **counts, took=shown, mb=resident_mb(), at=time.monotonic(), worker=self.given.number
        )


def interrupt(error: BaseException | None) -> bool:
    """Return whether an interrupt is what `error` comes from."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | Killed):
            return True
        error = error.__cause__ or error.__context__
    return False


def repeat(worker: Worker, pause_s: float, *, once: Callable[[], None] = lambda: None) -> None:
    """Call at a fixed rate until the time is over."""
    due = told = time.monotonic()
    while time.monotonic() < worker.given.until:
        worker.call()
        once()
        if time.monotonic() - told > REPORT_S:
            worker.report()
            told = time.monotonic()
        due = max(due + pause_s, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
    worker.report()


class SecondThread:
    """A thread beside the main one that is killed now and then, and started again."""

    def __init__(self, worker: Worker, pause_s: float) -> None:
        self._worker, self._pause_s = worker, pause_s
        self._thread = self._started()

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while time.monotonic() < self._worker.given.until:
            with suppress(Killed):
                repeat(self._worker, self._pause_s)

    def strike(self) -> None:
        """Raise `Killed` in it, one time in a hundred; start it again if it ended."""
        if not self._thread.is_alive():
            self._thread = self._started()
        elif self._worker.rng.random() < 0.01 and self._thread.ident is not None:
            target = ctypes.c_ulong(self._thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(Killed))

    def end(self) -> None:
        """Wait for it; a thread that hangs is an error."""
        self._thread.join(timeout=60)
        if self._thread.is_alive():
            self._worker.log.say(error="the second thread hangs")


def run(given: argparse.Namespace) -> int:
    """Work until the time is over."""
    log = Log(given.worker / f"log-{given.number}.jsonl")
    seed = f"{given.seed}:{os.getpid()}:{time.time_ns()}"
    first, second = Worker(given, log, seed), Worker(given, log, f"{seed}:2")
    second.given = argparse.Namespace(**{**vars(given), "correcting": False})
    threading.excepthook = lambda told: (
        None if interrupt(told.exc_value) else sys.__excepthook__(*told[:3])
    )

    def interrupted(*_: object) -> None:
        if first.calling:
            first.calling = False
            raise KeyboardInterrupt
        # It is to fall into a call: soon again.
        signal.setitimer(signal.ITIMER_REAL, first.rng.uniform(0.0005, 0.02))

    pause_s = 2 * given.workers / given.rate  # two threads
    clock = JumpingClock(given.worker / "clock")
    with ExitStack() as stack:
        for name, bound in (("cache", None), ("bounded", BOUND)):
            cache = stack.enter_context(
                opened(given.worker, given.database, max_entries=bound, clock=clock)
            )
            setattr(first, name, cache)
            setattr(second, name, cache)
        beside = SecondThread(second, pause_s)
        for number in (signal.SIGINT, signal.SIGALRM):
            signal.signal(number, interrupted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # it was started so
        repeat(first, pause_s, once=beside.strike)
        for number in (signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        beside.end()
    return 0
