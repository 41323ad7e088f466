"""Many processes on one directory: what one changes, every other sees, and nothing is lost."""

import gc
import multiprocessing
import os
import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from semcache import Hit, PlanCache
from semcache.cache.single_flight import KeyLocks
from semcache.canonical import JsonObject
from semcache.process.forks import Lock
from semcache.stores.disk.database import damage
from semcache.stores.disk.store import DiskStore
from semcache.testing import HashEmbedder
from tests.calling import calling

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

WORDS = "sales taxes rents loans fines gifts wages costs".split()
STEPS = 40


def plan(version: int) -> JsonObject:
    return calling("report", version=version)


def opened(directory: Path) -> PlanCache:
    return PlanCache.open(directory, embedder=HashEmbedder())


def work(directory: Path, number: int, versions: Any, counted: Any, ready: Any) -> None:
    """Change what belongs to this process, and look up what belongs to anybody.

    `versions`: for each word a number that grows with each change, made known when the change is
    done: even numbers are versions of its plan, odd ones say that it was removed.
    """
    choose, entry = random.Random(number), ""
    with opened(directory) as cache:
        for _ in range(STEPS):
            which = choose.randrange(len(WORDS))
            if which != number:
                known = versions[which]
                served = looked_up(cache, which)
                assert served is None or served >= known, f"a ghost: {served} after {known}"
            elif entry and versions[number] % 2 == 0 and choose.random() < 0.4:
                assert cache.invalidate(id=entry) == 1
                versions[number] += 1
                assert looked_up(cache, number) is None
            else:
                version = versions[number] + 2 - versions[number] % 2
                entry = cache.store(f"{WORDS[number]} of the shop", plan(version)).id
                counted[number] += 1
                versions[number] = version
                assert looked_up(cache, number) == version
        ready.wait(60)
        for which, version in enumerate(versions):
            there = version and version % 2 == 0
            assert looked_up(cache, which) == (version if there else None)


def looked_up(cache: PlanCache, which: int) -> int | None:
    """Return the version of the plan that is served for a word; None if there is none."""
    found = cache.lookup(f"{WORDS[which]} of the shop")
    call: Any = found.plan.to_dict()["call"] if isinstance(found, Hit) else None
    return None if call is None else int(call["input"]["version"])


@pytest.mark.parametrize(("method", "count"), [("fork", 8), ("spawn", 3)])
def test_every_process_sees_each_change_at_once_and_nothing_is_lost(
    tmp_path: Path, method: str, count: int
) -> None:
    context: Any = multiprocessing.get_context(method)
    versions, counted = (context.Array("l", len(WORDS)) for _ in range(2))
    ready = context.Barrier(count)
    processes = [
        context.Process(target=work, args=(tmp_path / "plans", n, versions, counted, ready))
        for n in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * count
    with opened(tmp_path / "plans") as cache:
        there = {entry.prompt.split()[0] for entry in cache.entries()}
        assert there == {w for w, v in zip(WORDS, versions, strict=True) if v and v % 2 == 0}
        assert cache.stats().stored == sum(counted)


def elsewhere(directory: Path, what: str) -> None:
    with opened(directory) as cache:
        assert cache.lookup("sales of the shop")
        assert cache.store(f"{what} of the shop", plan(4))


def test_opening_it_twice_in_one_process_leaves_its_locks_alone(tmp_path: Path) -> None:
    # SQLite's locks are the process's: whoever closes the file by other means lets go of them all,
    # the next process takes itself for the last, and what is acknowledged goes to a removed log.
    directory, context = tmp_path / "plans", multiprocessing.get_context("spawn")
    with opened(directory) as cache:
        assert cache.store("sales of the shop", plan(2))
        for what in ("taxes", "rents"):
            opened(directory).close()
            process = context.Process(target=elsewhere, args=(directory, what))
            process.start()
            process.join(60)
            assert process.exitcode == 0
            assert cache.store(f"more {what} of the shop", plan(6))
            assert cache.lookup(f"{what} of the shop")
    with opened(directory) as cache:
        assert len(cache.entries()) == 5
    assert damage(directory / "semcache.db") == ""


# Forks ───────────────────────────────────────────────────────────────────────────────────────────


def in_a_child(action: Callable[[], bool]) -> bool:
    """Return what `action` says in a forked child; False if the child does not end in time."""

    def child() -> None:
        os._exit(0 if action() else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
        return False
    return process.exitcode == 0


@pytest.fixture
def filled(tmp_path: Path) -> PlanCache:
    cache = opened(tmp_path / "plans")
    cache.store("sales of the shop", plan(2))
    assert cache.lookup("sales of the shop")
    return cache


def locks_in(whole: object) -> list[Lock]:
    """Return every lock that is reached from an object through its parts."""
    known, waiting = {id(whole): whole}, [whole]
    for part in waiting:
        for other in gc.get_referents(part):
            if id(other) not in known and not isinstance(other, type | FunctionType | ModuleType):
                known[id(other)] = other
                waiting.append(other)
    return [part for part in known.values() if isinstance(part, Lock)]


def test_a_child_waits_for_no_lock_that_a_thread_of_its_parent_holds(filled: PlanCache) -> None:
    locks = locks_in(filled)
    assert len(locks) > 10
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(lock)
            holding.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(30)
    try:

        def use_it() -> bool:
            stored = filled.store("taxes of the shop", plan(4))
            filled.flush()
            return bool(stored and filled.lookup("taxes of the shop"))

        assert in_a_child(use_it)
    finally:
        done.set()
        thread.join(30)
    assert filled.lookup("taxes of the shop")
    filled.close()


def test_a_child_has_connections_of_its_own_and_leaves_its_parents_open(
    filled: PlanCache,
) -> None:
    def other() -> bool:
        found = filled.lookup("sales of the shop")
        filled.close()
        return bool(found)

    assert in_a_child(other)
    assert filled.store("taxes of the shop", plan(4))
    assert filled.lookup("taxes of the shop")
    filled.close()


def test_a_child_within_a_transaction_of_its_parent_is_outside_it(
    filled: PlanCache, tmp_path: Path
) -> None:
    store = DiskStore(tmp_path / "plans")

    def change(note: str | None) -> str:
        assert in_a_child(lambda: bool(filled.lookup("sales of the shop")))
        return "y"

    store.update_note("acme", "x", change)
    assert store.get_note("acme", "x") == "y"
    store.close()
    filled.close()


def test_what_a_parent_has_counted_is_counted_once(filled: PlanCache) -> None:
    def count() -> bool:
        filled.lookup("sales of the shop")
        filled.flush()
        return True

    assert in_a_child(count)
    filled.flush()
    assert sum(filled.stats().hits.values()) == 2
    filled.close()


def test_a_child_may_have_a_key_that_a_thread_of_its_parent_has() -> None:
    locks = KeyLocks()
    with locks.enter("rents of the shop"):

        def enters() -> bool:
            with locks.enter("rents of the shop") as waited:
                return not waited

        assert in_a_child(enters)
