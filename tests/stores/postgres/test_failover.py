"""The server dies, and its standby takes over."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from semcache import Hit, PlanCache
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input
from tests.conftest import Postgres, postgres_folder
from tests.stores.postgres.conftest import ListeningStore
from tests.waiting import until


@dataclass
class Pair:
    """A server and the standby that confirms each of its transactions."""

    first: Postgres
    second: Postgres

    @property
    def dsn(self) -> str:
        """Names both; whoever connects gets the one that may be written to."""
        hosts = [str(conninfo_to_dict(one.dsn)["host"]) for one in (self.first, self.second)]
        return make_conninfo(self.first.dsn, host=",".join(hosts))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with postgres_folder() as folder, ExitStack() as stack:
        first = stack.enter_context(closing(Postgres(folder / "first")))
        second = stack.enter_context(closing(first.copy(folder / "second")))
        first.run(
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "ALTER SYSTEM SET synchronous_commit = 'on'",
            "SELECT pg_reload_conf()",
        )
        until(lambda: first.run("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        yield Pair(first, second)


def prompt(number: int) -> str:
    """Return a prompt of its own template."""
    return f"report about {''.join('abcdefghij'[int(digit)] for digit in str(number))}x"


def served(cache: PlanCache, number: int) -> bool:
    found = cache.lookup(prompt(number))
    if isinstance(found, Hit):
        assert given_input(found) == {"number": number}
    return isinstance(found, Hit)


@dataclass
class Writer:
    """Stores plan after plan, whatever becomes of the server."""

    cache: PlanCache
    acknowledged: list[int] = field(default_factory=list)
    refused: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in itertools.count():
            if self.done.is_set():
                return
            if self.cache.store(prompt(number), calling("report", number=number)):
                self.acknowledged.append(number)
            else:
                self.refused += 1

    def more(self) -> None:
        """Return when it has been told of ten more plans that they are stored."""
        wanted = len(self.acknowledged) + 10
        until(lambda: len(self.acknowledged) >= wanted)


def test_when_the_standby_takes_over_nothing_acknowledged_is_lost_and_the_cache_goes_on(
    pair: Pair,
) -> None:
    with ExitStack() as stack:
        caches = [
            stack.enter_context(
                PlanCache.open(database=pair.dsn, database_search=search, embedder=HashEmbedder(32))
            )
            for search in ("replica", "server", "replica")
        ]
        listening = stack.enter_context(closing(ListeningStore(pair.dsn, lag_s=3600.0)))
        until(lambda: listening.hears)
        writer = Writer(caches[0])
        thread = threading.Thread(target=writer.run)
        thread.start()
        stack.callback(thread.join)
        stack.callback(writer.done.set)
        writer.more()

        pair.first.kill()
        until(lambda: writer.refused > 0 and not listening.hears)
        for cache in caches:
            until(lambda cache=cache: not served(cache, 0))  # type: ignore[misc]  # bound now

        pair.second.promote()
        writer.more()
        writer.done.set()
        thread.join()
        fresh = stack.enter_context(PlanCache.open(database=pair.dsn, embedder=HashEmbedder(32)))
        for cache in (*caches, fresh):
            until(lambda cache=cache: served(cache, 0))  # type: ignore[misc]  # bound now
            assert [n for n in writer.acknowledged if not served(cache, n)] == []
        until(lambda: listening.hears)
        asking = stack.enter_context(closing(ListeningStore(pair.dsn)))
        for _ in range(3):  # it hears of each change, long before it would ask
            assert fresh.store(prompt(0), calling("report", number=0))
            number = asking.last_change()
            until(lambda number=number: listening.last_change() == number)  # type: ignore[misc]
