"""Signals, and exceptions raised in threads, wherever they fall: all that was told is true."""

import ctypes
import multiprocessing
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from semcache import Hit, PlanCache
from semcache.stores.disk.store import DiskStore
from semcache.testing import HashEmbedder, make_record
from tests.calling import calling

ROUNDS = 120
pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that signal")


class Killed(BaseException):
    """Raised in a thread from outside."""


def named(number: int) -> str:
    """Return a word for a number; digits would be a value."""
    return "item" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def rounds(
    cache: PlanCache,
    numbers: Iterator[int],
    attempt: Callable[[Callable[[], bool]], bool],
    kept: list[str],
    gone: list[str],
) -> None:
    """Store, look up and invalidate, each of which may be stopped; note what was acknowledged."""
    for number in numbers:
        name = named(number)
        plan = calling("report", of=name, year=2024)
        if not attempt(lambda: bool(cache.store(f"{name} in 2024", plan, params={"year": 2024}))):  # noqa: B023 - called at once
            continue
        attempt(lambda: bool(cache.lookup(f"{name} in 2019")))  # noqa: B023
        if number % 3:
            kept.append(name)
        elif attempt(lambda: bool(cache.invalidate(operation=name))):  # noqa: B023
            gone.append(name)


def signalled(rng: random.Random, cache: PlanCache, kept: list[str], gone: list[str]) -> int:
    """Do the rounds while signals arrive, each some time after a call began; return how many."""
    caught = 0
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # what Ctrl-C comes to

    def attempt(work: Callable[[], bool]) -> bool:
        nonlocal caught
        try:
            signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-4, -1.5))
            done = work()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            caught += 1
            return False
        return done

    rounds(cache, iter(range(ROUNDS)), attempt, kept, gone)
    return caught


def killed(rng: random.Random, cache: PlanCache, kept: list[str], gone: list[str]) -> int:
    """Do the rounds in a thread in which exceptions are raised; return how many were."""
    numbers = iter(range(ROUNDS))
    caught, calling_, over = 0, threading.Event(), threading.Event()

    def attempt(work: Callable[[], bool]) -> bool:
        nonlocal caught
        try:
            calling_.set()
            return work()
        except Killed:
            caught += 1
            return False

    def work() -> None:
        while not over.is_set():
            try:
                rounds(cache, numbers, attempt, kept, gone)
                over.set()
            except Killed:
                continue

    thread = threading.Thread(target=work)
    thread.start()
    while not over.is_set():
        calling_.wait(timeout=1)
        calling_.clear()
        over.wait(timeout=10 ** rng.uniform(-4, -1.5))
        if not over.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Killed)
            )
    thread.join(timeout=60)
    return caught


def child(how: str, directory: Path, told: Connection) -> None:
    """Do the rounds; tell what was acknowledged, and whether the cache can be used after."""
    sys.unraisablehook = lambda _: None  # an exception may fall into a destructor as well
    kept, gone, used = list[str](), list[str](), list[bool]()
    cache = PlanCache.open(directory, embedder=HashEmbedder())
    caught = {"signals": signalled, "kills": killed}[how](random.Random(7), cache, kept, gone)

    def use() -> None:
        plan = calling("report", of="after", year=2024)
        used.append(bool(cache.store("after in 2024", plan, params={"year": 2024})))

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(timeout=60)
    # Still open, so that a transaction which an interrupt left open would keep others out.
    with closing(DiskStore(directory, busy_timeout_s=1.0)) as other:
        other.put(make_record("other", tenant="other"))
    told.send((caught, used, kept, gone))


@pytest.mark.parametrize("how", ["signals", "kills"])
def test_whatever_is_stopped_all_that_was_acknowledged_is_so_and_nothing_is_locked(
    how: str, tmp_path: Path
) -> None:
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=child, args=(how, tmp_path / "plans", there)
    )
    process.start()
    there.close()
    caught, used, kept, gone = here.recv() if here.poll(300) else (0, [], [], [])
    process.join(timeout=60)
    process.kill()
    assert caught > 0
    assert used == [True]
    with closing(PlanCache.open(tmp_path / "plans", embedder=HashEmbedder())) as cache:
        found = {name: cache.lookup(f"{name} in 2019") for name in {*kept, *gone}}
    assert all(isinstance(found[name], Hit) for name in kept)
    assert not any(isinstance(found[name], Hit) for name in gone)
