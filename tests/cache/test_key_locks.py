import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from semcache.cache.single_flight import KeyLocks
from tests.waiting import count_waiting_threads, until


def test_all_who_wait_for_a_holder_that_fails_hear_of_it_and_none_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = count_waiting_threads(monkeypatch)
    flights, tries = KeyLocks(), [0]
    entered, go = threading.Event(), threading.Event()

    def fly(_: int) -> None:
        with flights.enter("k"):
            tries[0] += 1
            entered.set()
            assert go.wait(30)
            raise LookupError("no plan")

    with ThreadPoolExecutor(16) as pool:
        callers = [pool.submit(fly, 0)]
        assert entered.wait(30)
        callers += [pool.submit(fly, n) for n in range(1, 16)]
        until(lambda: waiting() == 15)
        go.set()
        assert [type(caller.exception(30)) for caller in callers] == [LookupError] * 16
    assert (tries[0], len(flights)) == (1, 0)


def test_an_interrupt_of_the_holder_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = count_waiting_threads(monkeypatch)
    flights, inside = KeyLocks(), threading.Event()

    def interrupted() -> None:
        with flights.enter("k"):
            inside.set()
            until(lambda: waiting() == 1)
            raise SystemExit

    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(interrupted)
        assert inside.wait(30)
        with flights.enter("k") as waited:  # what ends a thread is not shared
            assert waited
        assert isinstance(caller.exception(30), SystemExit)
