import asyncio
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from semcache.process.forks import ForkBarrier, Forked, Lock, follow_forks
from semcache.stores.disk.store import DiskStore
from semcache.stores.vectors.shared_lock import SharedLock
from tests.interrupts import interrupted


def _same(lock: Lock) -> Lock:
    return lock


ENTER: dict[str, Callable[[], Callable[[], AbstractContextManager[None]]]] = {
    "lock": lambda: partial(_same, Lock()),
    "reader": lambda: SharedLock().reading,
    "writer": lambda: SharedLock().writing,
}


def elsewhere(work: Callable[[], object]) -> bool:
    """Return whether another thread gets through `work`."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout=10)
    return not thread.is_alive()


@pytest.mark.parametrize("kind", ENTER)
def test_an_interrupt_at_any_line_leaves_a_lock_free_for_every_thread(kind: str) -> None:
    enter = ENTER[kind]()

    def work() -> None:
        with enter():
            sum((1, 2))
            sum((3, 4))

    for line in interrupted(work, within=str(Path(__file__).parent.parent)):
        assert elsewhere(work), line
        work()


def test_a_thread_that_is_inside_enters_again_and_others_wait_until_it_is_out() -> None:
    lock, steps = Lock(), list[str]()

    def other() -> None:
        with lock:
            steps.append("other")

    thread = threading.Thread(target=other)
    with lock:
        with lock:
            thread.start()
        thread.join(timeout=0.05)
        steps.append("own")
    thread.join(timeout=10)
    assert steps == ["own", "other"]


def test_who_waits_for_long_enough_is_told() -> None:
    lock = Lock(patience_s=0.01)
    with lock:
        found: list[BaseException] = []

        def other() -> None:
            try:
                with lock:
                    pass
            except TimeoutError as error:
                found.append(error)

        assert elsewhere(other)
    assert len(found) == 1
    assert elsewhere(lock.__enter__)


def test_a_block_that_a_generator_manages_keeps_the_lock() -> None:
    lock, inside = Lock(), [0]

    @contextmanager
    def entered() -> Iterator[None]:
        with lock:
            yield

    def work() -> None:
        for _ in range(200):
            with entered():
                inside[0] += 1
                assert inside[0] == 1
                sum(range(50))
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert inside == [0]


class MakesLocks(Forked):
    """Makes a lock anew in a child, which follows forks itself."""

    def __init__(self) -> None:
        self.lock = Lock()
        follow_forks(self)

    def forked(self) -> None:
        self.lock = Lock()


def test_a_child_may_make_locks_anew() -> None:
    owner = MakesLocks()
    child = multiprocessing.get_context("fork").Process(target=owner.lock.__enter__)
    child.start()
    child.join(timeout=30)
    status = child.exitcode
    child.kill()
    assert status == 0


def test_a_fork_waits_for_a_transaction_under_way_so_that_the_child_can_write(
    tmp_path: Path,
) -> None:
    store, inside, never = DiskStore(tmp_path / "s"), threading.Event(), threading.Event()

    def slow(_: str | None) -> str:
        inside.set()
        never.wait(timeout=0.1)
        return "parent"

    def write() -> None:
        store.update_note("acme", "n", slow)

    def child() -> None:
        store.update_note("acme", "n", lambda old: f"{old} child")

    writer = threading.Thread(target=write)
    writer.start()
    inside.wait(timeout=10)
    forked = multiprocessing.get_context("fork").Process(target=child)
    forked.start()
    forked.join(timeout=30)
    status = forked.exitcode
    forked.kill()
    writer.join(timeout=10)
    assert (status, store.get_note("acme", "n")) == (0, "parent child")


def test_a_call_that_was_interrupted_inside_holds_no_fork_back() -> None:
    barrier = ForkBarrier()

    def interrupted() -> None:
        barrier.enter()

    def call() -> None:
        interrupted()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(timeout=10)
    barrier.close(sys._getframe())
    barrier.open(sys._getframe())


def test_who_comes_while_a_fork_is_made_waits_for_its_end() -> None:
    barrier, steps = ForkBarrier(), list[str]()

    def interrupted() -> None:
        barrier.enter()
        steps.append("inside")
        barrier.leave()

    def call() -> None:
        interrupted()

    thread = threading.Thread(target=call)
    barrier.close(sys._getframe())
    thread.start()
    thread.join(timeout=0.05)
    steps.append("forked")
    barrier.open(sys._getframe())
    thread.join(timeout=10)
    assert steps == ["forked", "inside"]


def test_a_suspended_coroutine_that_holds_a_lock_is_not_ended_by_who_waits() -> None:
    lock = Lock(patience_s=0.1)

    async def holding() -> str:
        with lock:
            await asyncio.sleep(0)
            return "whole"

    def other() -> None:
        with suppress(TimeoutError), lock:
            pass

    coroutine = holding()
    coroutine.send(None)
    assert elsewhere(other)
    with pytest.raises(StopIteration, match="whole"):
        coroutine.send(None)


def test_a_lock_of_a_thread_that_ended_inside_is_free() -> None:
    lock = Lock(patience_s=10.0)
    assert elsewhere(lock.__enter__)
    assert elsewhere(lock.__enter__)
    with lock:
        pass
