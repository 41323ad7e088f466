import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from semcache.cache.flight import Flights


def test_who_comes_first_did_not_wait() -> None:
    flights = Flights()
    with flights.enter("k") as waited:
        assert not waited
        assert len(flights) == 1
    assert len(flights) == 0


def test_one_at_a_time_is_inside_and_the_others_waited() -> None:
    flights, inside, most = Flights(), [0], [0]
    entered, go = threading.Event(), threading.Event()

    def fly(_: int) -> bool:
        with flights.enter("k") as waited:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            entered.set()
            assert go.wait(30)
            inside[0] -= 1
            return waited

    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(fly, 0)
        assert entered.wait(30)
        rest = [pool.submit(fly, n) for n in range(5)]
        while flights._seats["k"].users < 6:
            threading.Event().wait(0.001)
        go.set()
        assert not first.result(30)
        assert [future.result(30) for future in rest] == [True] * 5
    assert (most[0], len(flights)) == (1, 0)


def test_different_keys_do_not_wait_for_each_other() -> None:
    flights = Flights()
    with flights.enter("a") as a, flights.enter("b") as b:
        assert (a, b, len(flights)) == (False, False, 2)


def test_what_is_raised_inside_leaves_the_key_free() -> None:
    flights = Flights()
    with pytest.raises(LookupError), flights.enter("k"):
        raise LookupError
    assert len(flights) == 0
    with flights.enter("k") as waited:
        assert not waited
