# ruff: noqa: S608 - statements of tests about tables of tests

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial

import pytest

from semcache.testing import make_record
from tests.conftest import Postgres
from tests.stores.postgres.conftest import ListeningStore
from tests.waiting import until

Open = Callable[[float], ListeningStore]


@pytest.fixture
def opened(postgres: Postgres, schema: str) -> Iterator[Open]:
    """Open stores of one schema with a lag of so many seconds; all are closed at the end."""
    with ExitStack() as stack:

        def one(lag_s: float) -> ListeningStore:
            ListeningStore.open(postgres.dsn, schema=schema).close()
            made = ListeningStore(postgres.dsn, schema=schema, lag_s=lag_s, retry_s=0.01)
            return stack.enter_context(closing(made))

        yield one


def reached(store: ListeningStore, number: int) -> bool:
    return store.last_change() == number


def listening(store: ListeningStore) -> None:
    """Return when `store` answers without asking the server."""
    until(lambda: store.hears)


def test_who_listens_hears_of_a_change_long_before_it_would_ask(opened: Open) -> None:
    store, other = opened(3600.0), opened(0.0)
    listening(store)
    for number in (1, 2, 3):
        other.put(make_record(f"{number}"))
        until(partial(reached, store, number))


def test_a_change_that_nobody_was_told_of_is_seen_within_the_lag(
    postgres: Postgres, opened: Open
) -> None:
    store = opened(0.5)
    listening(store)
    postgres.run(f"UPDATE {store.schema}.state SET last_change = 7")
    until(lambda: store.last_change() == 7)


def test_a_change_of_its_own_is_seen_at_once(opened: Open) -> None:
    store = opened(3600.0)
    listening(store)
    for number in range(1, 30):
        assert store.put(make_record("a")).change == store.last_change() == number
    store.remove("acme", ["a"])
    assert store.last_change() == 30


def test_who_has_lost_the_connection_it_listens_on_asks_and_listens_again(
    postgres: Postgres, opened: Open
) -> None:
    store, other = opened(3600.0), opened(0.0)
    listening(store)
    for number in (1, 2):
        postgres.run(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE application_name = 'semcache' AND query LIKE '%last_change%'"
        )
        other.put(make_record("a"))
        until(partial(reached, store, number))
        listening(store)


def test_while_the_server_is_gone_nothing_is_known_and_afterwards_it_is(
    postgres: Postgres, opened: Open
) -> None:
    store = opened(3600.0)
    store.put(make_record("a"))
    listening(store)
    postgres.stop()
    until(lambda: not store.hears)
    postgres.start()
    listening(store)
    assert store.last_change() == 1


def test_who_asks_for_a_lease_learns_what_its_last_holder_wrote(
    postgres: Postgres, opened: Open
) -> None:
    store = opened(3600.0)
    listening(store)
    postgres.run(f"UPDATE {store.schema}.state SET last_change = 7")  # and tells nobody
    assert store.last_change() == 0
    assert store.lease("acme", "plan", "me", ttl_s=10, now_s=0.0)
    assert store.last_change() == 7


_shared: list[ListeningStore] = []
"""What a forked process finds."""


def _seen(_: int) -> tuple[int, int]:
    store = _shared[0]
    before = store.last_change()
    return before, store.put(make_record(f"{os.getpid()}")).change


def test_a_forked_process_listens_for_itself_and_leaves_its_parents_connection_alone(
    opened: Open,
) -> None:
    store = opened(3600.0)
    store.put(make_record("a"))
    listening(store)
    _shared[:] = [store]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(_seen, [0]) == [(1, 2)]
    until(partial(reached, store, 2))
    assert store.put(make_record("b")).change == store.last_change() == 3


def test_closing_ends_the_thread(opened: Open) -> None:
    store = opened(3600.0)
    listening(store)
    store.close()
    assert not [t for t in threading.enumerate() if t.name == "semcache-listener"]
