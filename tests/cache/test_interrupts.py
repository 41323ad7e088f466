"""An interrupt at any line of store, lookup, feedback or invalidate leaves the cache usable."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from semcache import Hit, PlanCache, Settings
from semcache.testing import HashEmbedder
from semcache.wiring import open_plan_cache
from tests.calling import calling
from tests.interrupts import interrupted

STEP = 211
"""Lines between two interrupts; see below."""


if TYPE_CHECKING:
    from tests.conftest import Postgres


@pytest.fixture(params=["memory", "disk"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PlanCache]:
    directory = None if request.param == "memory" else tmp_path / "plans"
    with closing(PlanCache.open(directory, embedder=HashEmbedder(), max_total_entries=50)) as made:
        keep(made, "sales")
        made.lookup("sales in 2019")
        yield made


def keep(cache: PlanCache, name: str, tenant: str = "default") -> bool:
    plan = calling("report", of=name, year=2024)
    return bool(cache.store(f"{name} in 2024", plan, params={"year": 2024}, tenant=tenant))


def store(cache: PlanCache) -> None:
    keep(cache, "taxes")


def look_up(cache: PlanCache) -> None:
    cache.lookup("sales in 2019")
    cache.lookup("could you show me the sales in 2018")
    cache.lookup("nothing like it")


def correct(cache: PlanCache) -> None:
    keep(cache, "rents")
    found = cache.lookup("rents in 2019")
    if isinstance(found, Hit):
        cache.feedback(found, right=False)


def invalidate(cache: PlanCache) -> None:
    keep(cache, "loans")
    cache.invalidate(operation="loans")
    cache.invalidate(id="unknown")


def plan_once(cache: PlanCache) -> None:
    with cache.planning(cache.lookup("tolls in 2019")):
        keep(cache, "tolls")


def used_by_another(cache: PlanCache) -> bool:
    """Return whether another thread is served, stores and plans."""
    done: list[bool] = []

    def use() -> None:
        done.append(bool(cache.lookup("sales in 2017")))
        done.append(keep(cache, "visits", tenant="other"))
        done.append(bool(cache.lookup("visits in 2017", tenant="other")))

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(timeout=60)
    return done == [True, True, True]


# Each is interrupted at some of its thousands of lines; the step is prime, so that no period of the
# code hides a line from all of the works. `STEP = 1` tries all of them.
@pytest.mark.parametrize("work", [store, look_up, correct, invalidate, plan_once])
def test_an_interrupt_at_any_line_leaves_the_cache_usable_by_all(
    cache: PlanCache, work: Callable[[PlanCache], None]
) -> None:
    for line in interrupted(lambda: work(cache), step=STEP):
        assert used_by_another(cache), line
    work(cache)


# What psycopg was in the middle of is thrown away with its connection, and complains about it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [store, look_up, correct, invalidate, plan_once])
def test_an_interrupt_leaves_a_cache_in_postgres_usable_by_all(
    work: Callable[[PlanCache], None], postgres: "Postgres", tmp_path: Path
) -> None:
    settings = Settings(
        directory=tmp_path, database=postgres.dsn, database_schema=postgres.schema(tmp_path)
    )
    with closing(open_plan_cache(settings, embedder=HashEmbedder())) as cache:
        keep(cache, "sales")
        for line in interrupted(lambda: work(cache), step=7 * STEP):
            assert used_by_another(cache), line
        work(cache)
