"""A server that is gone, or hangs: it holds its connections open and says nothing."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

import pytest

from semcache import Hit, Miss, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.errors import StoreUnavailable
from semcache.events import TierFailed
from semcache.semcache import SemCache
from semcache.settings import Settings
from semcache.stores.postgres.connection import PatientConnection
from semcache.stores.postgres.store import PostgresStore
from semcache.testing import HashEmbedder, RecordingObserver, make_record
from semcache.testing.fakes import together
from tests.conftest import Postgres
from tests.waiting import until

T = TypeVar("T")

PROMPT = "sales in 2024 by category"
PLAN: JsonObject = {
    "start_node": {"route": "end"},
    "end": {"completed": True, "vars": {"answer": "2024"}},
}


def in_time(work: Callable[[], T]) -> T:
    """Return what `work` comes to; fail if it hangs with the server."""
    done: list[T] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert done, "it never returned, or failed"
    return done[0]


def failure(work: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as raised:
        work()
    return str(raised.value)


@pytest.fixture
def store(postgres: Postgres, tmp_path: Path) -> Iterator[PostgresStore]:
    schema = postgres.schema(tmp_path)
    PostgresStore.open(postgres.dsn, schema=schema).close()
    store = PostgresStore(
        postgres.dsn, schema=schema, statement_timeout_s=0.1, wait_s=30.0, retry_s=0.01
    )
    with closing(store):
        assert store.put(make_record("a")).change == 1
        yield store


@pytest.mark.parametrize("search", ["replica", "server"])
@pytest.mark.parametrize(("how", "lag_s"), [("stop", 0.2), ("hang", 0.0), ("hang", 0.2)])
def test_a_server_that_is_gone_or_hangs_is_a_miss_and_one_warning_and_comes_back_by_itself(
    postgres: Postgres,
    tmp_path: Path,
    *,
    search: Literal["replica", "server"],
    how: str,
    lag_s: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fail, mend = getattr(postgres, how), {"stop": postgres.start, "hang": postgres.go_on}[how]
    name = postgres.schema(tmp_path)
    postgres.run(f"CREATE DATABASE {name}")
    observer = RecordingObserver()
    settings = Settings(
        database=postgres.dsn.replace("/postgres?", f"/{name}?"),
        database_timeout_s=0.1,
        database_lag_s=lag_s,
        database_search=search,
    )
    with SemCache.open(
        catalog=Catalog([]), settings=settings, embedder=HashEmbedder(), observer=observer
    ) as whole:
        cache: PlanCache = whole.cache

        def hits() -> bool:
            return isinstance(cache.lookup("sales in 2023 by category"), Hit)

        assert cache.store(PROMPT, PLAN, params=[Parameter("year", "2024", mention="2024")])
        assert hits()
        for _ in range(2):
            caplog.clear()  # before it hangs: the warning may come at once
            fail()
            in_time(lambda: until(lambda: not hits()))
            found = in_time(lambda: [cache.lookup(PROMPT) for _ in range(200)])
            assert {one.reason for one in found if isinstance(one, Miss)} == {"store_failed"}
            assert not in_time(lambda: cache.store("refunds in 2024", PLAN))
            warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
            assert len(warned) == 1, warned
            assert ("does not answer" in warned[0]) == (how == "hang")
            assert len(observer.of(TierFailed)) >= 200
            mend()
            until(hits)
            until(lambda: bool(cache.store("refunds in 2024", PLAN)))


def connected(store: PostgresStore, count: int) -> None:
    """Let `store` have `count` connections, none of them in use."""
    all_of_them = threading.Barrier(count)
    together(count, lambda _: store.connections.read(lambda _: all_of_them.wait(60)))


def test_when_one_has_found_out_nobody_else_waits_whatever_connections_there_are(
    postgres: Postgres, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(store, 8)
    postgres.hang()
    assert "does not answer" in in_time(lambda: failure(lambda: store.get("acme", "a")))
    waited: list[object] = []
    monkeypatch.setattr(PatientConnection, "wait", lambda *asked: waited.append(asked))
    for _ in range(20):
        assert "cannot be reached" in failure(lambda: store.get("acme", "a"))
    assert waited == []
    monkeypatch.undo()
    postgres.go_on()
    until(lambda: store.reachable(wait_s=0.1))
    assert store.count("acme") == 1


def test_those_who_wait_at_once_are_all_let_go(postgres: Postgres, store: PostgresStore) -> None:
    connected(store, 8)
    postgres.hang()
    said = together(20, lambda _: failure(lambda: store.get("acme", "a")))
    assert {"cannot be reached" in one for one in said} == {True}


def test_a_write_that_nobody_confirmed_is_not_said_to_be_done_and_nothing_is_lost(
    postgres: Postgres, store: PostgresStore
) -> None:
    postgres.hang()
    assert "cannot be reached" in in_time(lambda: failure(lambda: store.put(make_record("b"))))
    postgres.go_on()
    until(lambda: store.reachable(wait_s=0.1))
    number = store.put(make_record("b")).change
    changes = store.changes(0)
    assert changes is not None
    assert (changes[-1].number, store.count("acme")) == (number, 2)


def test_a_statement_that_is_answered_late_is_waited_for_as_long_as_the_server_may_take(
    postgres: Postgres, store: PostgresStore
) -> None:
    said = failure(lambda: store.connections.read(lambda c: c.execute("SELECT pg_sleep(20)")))
    assert "took too long" in said  # the server itself said so: nothing hangs
    assert store.count("acme") == 1


def test_a_server_that_hangs_while_a_store_is_closed_holds_nobody_up(
    postgres: Postgres, store: PostgresStore
) -> None:
    postgres.hang()
    in_time(lambda: failure(lambda: store.get("acme", "a")))
    in_time(store.close)
