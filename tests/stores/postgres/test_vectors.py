# ruff: noqa: S608 - statements of tests about tables of tests

from pathlib import Path

import numpy as np
import pytest

from semcache.ports import Vector, VectorIndex
from semcache.stores.postgres.store import PostgresStore
from semcache.stores.postgres.vectors import PostgresIndex
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import VectorIndexContract, make_record, unit
from tests.conftest import Postgres


class Written(PostgresIndex):
    """Writes what it is told of, as a store has done when it is told in earnest."""

    def __init__(self, store: PostgresStore, *, exact_below: int = 10_000) -> None:
        place = {"tenant": "acme", "embedder": "hash:3"}
        super().__init__(store.connections, **place, exact_below=exact_below)
        self.store = store

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        super().add(id, vector)
        self.store.put(make_record(id, vector=vector))

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        self.store.remove("acme", [id])
        return super().remove(id)


class TestPostgresIndex(VectorIndexContract):
    @pytest.fixture(autouse=True)
    def _store(self, store: PostgresStore) -> None:
        self.store = store

    def make(self, tmp_path: Path) -> VectorIndex:
        return Written(self.store)


def filled(store: PostgresStore, count: int, *, exact_below: int) -> tuple[Written, list[Vector]]:
    random = np.random.default_rng(5)
    vectors = [unit(*row) for row in random.standard_normal((count, 16))]
    index = Written(store, exact_below=exact_below)
    for number, vector in enumerate(vectors):
        index.add(f"{number:03}", vector)
    return index, vectors


class TestLarge:
    def test_an_hnsw_index_finds_what_comparing_with_all_finds(
        self, postgres: Postgres, store: PostgresStore
    ) -> None:
        index, vectors = filled(store, 300, exact_below=10_000)
        exact = [index.search(vector, 5) for vector in vectors[:20]]
        assert (index.approximate, index.build(), index.approximate) == (False, True, True)
        found = [index.search(vector, 5) for vector in vectors[:20]]
        for near, same in zip(found, exact, strict=True):
            assert [n.id for n in near] == [n.id for n in same]
            assert np.allclose([n.similarity for n in near], [n.similarity for n in same])
        store.connections.read(lambda c: c.execute("SELECT pg_stat_force_next_flush()"))
        scans = (
            "SELECT sum(idx_scan) FROM pg_stat_user_indexes"
            f" WHERE indexrelname LIKE 'vectors_hnsw%' AND schemaname = '{store.schema}'"
        )
        assert postgres.run(scans)[0][0] == 20
        assert Written(store).build() is False  # it knows no dimension yet

    def test_a_filter_or_removed_rows_never_leave_too_few(self, store: PostgresStore) -> None:
        index, vectors = filled(store, 300, exact_below=10_000)
        # Another tenant's vectors are all nearer than any of ours.
        for number in range(200):
            store.put(make_record(f"{number}", tenant="other", vector=vectors[0]))
        assert index.build()
        assert len(index.search(vectors[0], 64)) == 64
        # Rows that are gone stay in an HNSW index until they are vacuumed: it finds 0 living ones.
        near = [n.id for n in index.search(vectors[0], 280)]
        for known in near:
            index.remove(known)
        found = index.search(vectors[0], 64)
        assert len(found) == len(index) == 20
        assert not {n.id for n in found} & set(near)

    @pytest.mark.parametrize("tenant", ["100%", "%s", "%(x)s; '", "a\\b", "line\nbreak", ""])
    def test_a_tenant_of_any_name_is_searched_by_its_index(
        self, store: PostgresStore, tenant: str
    ) -> None:
        index = PostgresIndex(
            store.connections, tenant=tenant, embedder="hash:3", exact_below=10_000
        )
        for number in range(12):
            vector = unit(*np.random.default_rng(number).standard_normal(16))
            index.add(f"{number}", vector)
            store.put(make_record(f"{number}", tenant=tenant, vector=vector))
        assert index.build()
        assert index.search(vector, 1)[0].id == "11"

    def test_a_large_tenant_gets_its_index_by_being_searched(self, store: PostgresStore) -> None:
        index, vectors = filled(store, 40, exact_below=40)
        assert len(index.search(vectors[0], 3)) == 3
        index.wait()
        assert index.approximate
        assert [n.id for n in index.search(vectors[7], 1)] == ["007"]

    def test_an_index_that_was_never_finished_is_made_again(
        self, postgres: Postgres, store: PostgresStore
    ) -> None:
        index, _ = filled(store, 10, exact_below=10_000)
        assert index.build()
        postgres.run(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid::regclass::text LIKE '%hnsw%'"
        )
        again = Written(store)
        again.add("000", unit(*range(1, 17)))
        assert again.build()

    def test_a_snapshot_is_one_that_faiss_can_load(
        self, store: PostgresStore, tmp_path: Path
    ) -> None:
        index, vectors = filled(store, 20, exact_below=10_000)
        index.save(str(tmp_path / "index"), change=20)
        loaded, change = FaissIndex.load(str(tmp_path / "index"))
        assert (len(loaded), change) == (20, 20)
        assert loaded.search(vectors[3], 4)[0].id == "003"
