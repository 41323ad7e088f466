"""An interrupt at every line of what a store does: whole or not at all, and usable by all after."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from semcache.ports import Bounds, PlanStore
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import make_record
from tests.conftest import Postgres
from tests.interrupts import interrupted


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PlanStore]:
    made: PlanStore = MemoryStore()
    if request.param == "disk":
        made = DiskStore(tmp_path / "store", busy_timeout_s=30.0)
    with closing(made):
        made.put(make_record("old", created_s=0.0))
        yield made


def put(store: PlanStore) -> None:
    store.put(make_record("new", keys=("all", "new")), bounds=Bounds(3))


def replace(store: PlanStore) -> None:
    store.put(make_record("old", keys=("all",)), bounds=Bounds(entries=3))


def evict(store: PlanStore) -> None:
    for name in "ab":
        store.put(make_record(name, tenant=name, keys=("all",)), bounds=Bounds(entries=2))


def remove(store: PlanStore) -> None:
    store.put(make_record("gone", keys=("all",)))
    store.remove("acme", ["gone"])


def note(store: PlanStore) -> None:
    store.update_note("acme", "n", lambda old: f"{int(old or 0) + 1}")
    store.use("acme", {"old": 1}, now_s=9.0)
    store.lease("acme", "l", "me", ttl_s=1.0, now_s=0.0)
    store.release("acme", "l", "me")


def read(store: PlanStore) -> None:
    store.get("acme", "old")
    store.find("acme", "all")
    store.changes(store.last_change())
    store.last_change()


WORK: list[Callable[[PlanStore], None]] = [put, replace, evict, remove, note, read]


def used_by_another(store: PlanStore, number: int) -> bool:
    """Return whether another thread can write and read at once."""
    done: list[bool] = []

    def use() -> None:
        store.put(make_record("other", tenant="other", created_s=float(number)))
        done.append(store.get("other", "other") is not None)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(timeout=60)
    return done == [True]


def audit(store: PlanStore) -> None:
    """Fail unless all that a store tells of its records agrees."""
    kept = {tenant: store.scan(tenant) for tenant in store.tenants()}
    assert store.room().entries == sum(len(records) for records in kept.values())
    assert store.room().bytes == sum(r.size for records in kept.values() for r in records)
    alive: dict[tuple[str, str], int] = {}
    for change in store.changes(0) or ():
        if change.kind == "put":
            alive[change.tenant, change.id] = change.number
        else:
            alive.pop((change.tenant, change.id), None)
    assert {*alive} == {(r.tenant, r.id) for records in kept.values() for r in records}
    for tenant, records in kept.items():
        assert store.count(tenant) == len(records) == len(store.uses(tenant))
        assert [*store.labelled(tenant, "tag:sales")] == sorted(r.id for r in records)
        for record in records:
            assert all(record.id in [r.id for r in store.find(tenant, k)] for k in record.keys)


@pytest.mark.parametrize("work", WORK)
def test_an_interrupt_at_any_line_leaves_the_store_whole_and_free(
    store: PlanStore, work: Callable[[PlanStore], None]
) -> None:
    for number in interrupted(lambda: work(store)):
        assert used_by_another(store, number)
        audit(store)
    work(store)
    audit(store)


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError])
def test_every_other_way_to_be_stopped_is_as_harmless(
    store: PlanStore, error: type[BaseException]
) -> None:
    for number in interrupted(lambda: put(store), error=error, step=3):
        assert used_by_another(store, number)
        audit(store)


# What psycopg was in the middle of is thrown away with its connection, and complains about it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", WORK)
def test_an_interrupt_leaves_postgres_whole_and_free(
    work: Callable[[PlanStore], None], postgres: Postgres, schema: str
) -> None:
    from semcache.stores.postgres.store import PostgresStore

    with closing(PostgresStore.open(postgres.dsn, schema=schema, wait_s=30.0)) as store:
        store.put(make_record("old", created_s=0.0))
        for number in interrupted(lambda: work(store), step=31):
            assert used_by_another(store, number)
            audit(store)
