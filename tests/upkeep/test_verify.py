import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from semcache.cache.entries.entry import from_record
from semcache.canonical import spelled
from semcache.ports import PlanStore, Record
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder
from semcache.upkeep.contents import Verified, verify
from tests.caching import cache_over


def verified(store: PlanStore) -> Verified:
    return verify(store, embedder=HashEmbedder().fingerprint, make_index=FaissIndex)


def test_what_a_cache_wrote_is_right(kept: Path) -> None:
    with closing(DiskStore.open(kept)) as store:
        assert verified(store) == Verified(tenants=2, entries=6, problems=())


def test_an_empty_store_is_right() -> None:
    assert verified(MemoryStore()) == Verified(0, 0, ())


def test_entries_of_every_kind_are_right(clock: FakeClock) -> None:
    store = MemoryStore()
    with cache_over(store, clock=clock, redact=lambda t: t) as cache:
        cache.store("tell 5 of 7", {"text": "{{params.n}} of 7", "n": 5}, params={"n": 5})
        cache.store("sales of yesterday", {"day": "2023-11-13"})
        cache.store("report of ORD1", {"id": 17})
        assert verified(store).problems == ()


def spoiled(record: Record, name: str) -> Record:
    entry = from_record(record)
    doc = entry.to_json()
    if name == "binding":
        doc["plan"]["bindings"][0][2] = "no such codec"  # type: ignore[index,call-overload]  # JSON
    elif name == "template":
        doc["template"]["text"] = "something else in <year>"  # type: ignore[index,call-overload]  # JSON
    return replace(record, body=spelled(doc))


@pytest.mark.parametrize(
    ("name", "says"),
    [("binding", "which this version lacks"), ("template", "its content is that of entry")],
)
def test_an_entry_that_would_not_be_served_rightly_is_told(
    name: str, says: str, kept: Path
) -> None:
    with closing(DiskStore.open(kept)) as store:
        record = store.scan("acme")[0]
        store.put(spoiled(record, name))
        (problem, *_) = verified(store).problems
        assert (problem.tenant, problem.entry) == ("acme", record.id)
        assert says in problem.what
        assert str(problem).startswith(f"acme/{record.id}: ")


def test_a_flipped_byte_is_told_once(kept: Path) -> None:
    flip = "UPDATE records SET body = replace(body, 'visits', 'vizits') WHERE tenant = 'acme'"
    with closing(sqlite3.connect(kept / "semcache.db")) as database, database:
        database.execute(flip)
    with closing(DiskStore.open(kept)) as store:
        (problem,) = verified(store).problems
        assert str(problem) == "acme: 1 of 3 records are not what was written"
        assert verified(store).problems == ()


def test_many_entries_with_one_vector_are_all_found(clock: FakeClock) -> None:
    store = MemoryStore()
    with cache_over(store, clock=clock) as cache:
        for n in range(40):
            cache.store(f"report of ORD{n}", {"id": n}, params={"order": f"ORD{n}"})
        assert verified(store) == Verified(1, 40, ())
