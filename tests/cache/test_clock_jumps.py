"""A clock that is set an hour or a year forward or back makes nothing last for ever."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from semcache import Hit, Miss, PlanCache
from semcache.errors import PlanSuspended
from semcache.planners.failures import FailureMemory
from semcache.planners.note_store import NoteStore
from semcache.ports import PlanStore, ResponseStore, Room
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.stores.memory_responses import MemoryResponses
from semcache.testing import FakeClock, HashEmbedder

if TYPE_CHECKING:
    from tests.conftest import Postgres

HOUR, DAY, YEAR = 3600.0, 86400.0, 365 * 86400.0
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR, YEAR, -YEAR])
PROMPT = "sales in 2024"
PLAN = {
    "start_node": {"route": "query"},
    "query": {"operation": "sales", "input": {"year": 2024}, "route": "done"},
    "done": {"completed": True, "vars": {"answer": "$.query.data"}},
}


@pytest.fixture(params=["memory", "disk", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PlanStore]:
    made: PlanStore = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "s")
    if request.param == "postgres":
        from semcache.stores.postgres.store import PostgresStore

        server: Postgres = request.getfixturevalue("postgres")
        made = PostgresStore.open(server.dsn, schema=server.schema(tmp_path))
    with closing(made):
        yield made


@pytest.fixture(params=["memory", "disk"])
def responses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ResponseStore]:
    made: ResponseStore = (
        MemoryResponses() if request.param == "memory" else DiskResponses(tmp_path / "r")
    )
    with closing(made):
        yield made


def opened(clock: FakeClock, ttl_s: float | None, directory: Path | None = None) -> PlanCache:
    return PlanCache.open(directory, clock=clock, ttl_s=ttl_s, embedder=HashEmbedder())


@JUMPS
def test_a_plan_without_a_ttl_is_served_whatever_the_clock_says(
    clock: FakeClock, jump: float
) -> None:
    with opened(clock, None) as cache:
        cache.store(PROMPT, PLAN)
        clock.jump(jump)
        assert isinstance(cache.lookup(PROMPT), Hit)
        assert cache.remove_expired() == 0


@JUMPS
def test_a_plan_lives_no_longer_than_twice_its_ttl(clock: FakeClock, jump: float) -> None:
    with opened(clock, 30 * DAY) as cache:
        cache.store(PROMPT, PLAN)
        clock.jump(jump)
        served = isinstance(cache.lookup(PROMPT), Hit)
        assert served == (abs(jump) == HOUR)
        assert cache.remove_expired() == (not served)
        clock.advance(60 * DAY)
        assert isinstance(cache.lookup(PROMPT), Miss)


@JUMPS
def test_what_is_stored_after_a_jump_is_served_at_once(clock: FakeClock, jump: float) -> None:
    with opened(clock, 30 * DAY) as cache:
        cache.store(PROMPT, PLAN)
        for by in (jump, -jump):
            clock.jump(by)
            cache.store(PROMPT, PLAN)
            assert isinstance(cache.lookup(PROMPT), Hit)


@JUMPS
def test_the_lease_of_a_holder_that_died_ends_within_twice_its_time(
    store: PlanStore, clock: FakeClock, jump: float
) -> None:
    assert store.lease("acme", "l", "dead", ttl_s=10.0, now_s=clock.now())
    clock.jump(jump)
    clock.advance(20.0)
    assert store.lease("acme", "l", "me", ttl_s=10.0, now_s=clock.now())


@JUMPS
def test_who_waits_for_a_maker_that_died_makes_the_plan_though_the_clock_jumps(
    tmp_path: Path, clock: FakeClock, jump: float
) -> None:
    with opened(clock, None, tmp_path / "c") as dead, opened(clock, None, tmp_path / "c") as cache:
        found = cache.lookup(PROMPT)
        holding = dead.planning(found)
        holding.__enter__()
        clock.jump(jump)
        start = clock.monotonic()
        with cache.planning(found):
            assert clock.monotonic() - start <= 40.0  # and not `flight_wait_s`, 120
        holding.__exit__(None, None, None)


@JUMPS
def test_a_plan_that_failed_is_suspended_for_its_back_off_at_most(
    store: PlanStore, clock: FakeClock, jump: float
) -> None:
    memory = FailureMemory(store, clock)
    for _ in range(20):
        memory.failed("acme", "k", "no such column")
    with pytest.raises(PlanSuspended):
        memory.check("acme", "k")
    clock.jump(jump)
    clock.advance(300.0)
    memory.check("acme", "k")
    clock.jump(-jump)
    clock.advance(2 * DAY)
    assert memory.get("acme", "k") is None


@JUMPS
def test_an_answer_lives_no_longer_than_twice_its_ttl_and_is_used_after_a_jump(
    responses: ResponseStore, clock: FakeClock, jump: float
) -> None:
    limit = Room(100, 10**6)
    for key in ("before", "after"):
        responses.set(key, "text", group="", ttl_s=DAY, now_s=clock.now(), limit=limit)
    clock.jump(jump)
    assert (responses.get("before", now_s=clock.now()) is not None) == (abs(jump) == HOUR)
    responses.set("after", "text", group="", ttl_s=DAY, now_s=clock.now(), limit=limit)
    clock.advance(DAY - 1)
    assert responses.get("after", now_s=clock.now()) == "text"
    clock.advance(2 * DAY)
    assert responses.get("after", now_s=clock.now()) is None


def test_a_clock_that_is_corrected_by_a_second_makes_no_waiting_run_forgotten(
    store: PlanStore, clock: FakeClock
) -> None:
    kept = NoteStore(store, clock, "waiting", ttl_s=HOUR)
    kept.put("acme", "token", {"prompt": PROMPT})
    clock.jump(-1.0)
    assert kept.get("acme", "token") == {"prompt": PROMPT}
    clock.jump(-YEAR)
    assert kept.get("acme", "token") is None
