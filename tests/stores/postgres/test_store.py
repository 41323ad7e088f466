# ruff: noqa: S608 - statements of tests about tables of tests

import multiprocessing
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from semcache.errors import (
    ForeignDatabase,
    InvalidInput,
    InvalidSettings,
    NewerFormat,
    StoreCorrupt,
    StoreUnavailable,
)
from semcache.ports import Bounds, PlanStore
from semcache.stores.postgres.schema import migrations
from semcache.stores.postgres.store import PostgresStore
from semcache.testing import SharedStoreContract, make_record
from tests.conftest import Postgres


class TestPostgresStore(SharedStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: Postgres) -> None:
        self.server = postgres

    def make(self, tmp_path: Path) -> PlanStore:
        return PostgresStore.open(self.server.dsn, schema=self.server.schema(tmp_path))


def opened(dsn: str, schema: str) -> int:
    with closing(PostgresStore.open(dsn, schema=schema)) as store:
        return store.put(make_record(f"{multiprocessing.current_process().pid}")).change


def count_up(dsn: str, schema: str, times: int) -> None:
    with closing(PostgresStore.open(dsn, schema=schema)) as store:
        for i in range(times):
            store.update_note("acme", "n", lambda old: str(int(old or 0) + 1))
            own = f"{multiprocessing.current_process().pid}-{i}"
            store.put(make_record(own), bounds=Bounds(5))


class TestOpening:
    def test_making_a_store_touches_nothing_before_it_is_used(self) -> None:
        PostgresStore("postgresql://nobody@/nothing?host=/nowhere").close()

    def test_tables_are_made_once_however_many_open_at_once(
        self, postgres: Postgres, schema: str
    ) -> None:
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            numbers = pool.starmap(opened, [(postgres.dsn, schema)] * 3)
        assert sorted(numbers) == [1, 2, 3]
        latest = migrations()[-1].version
        assert postgres.run(f"SELECT version FROM {schema}.manifest") == [(latest,)]

    def test_a_newer_format_is_refused_with_the_way_out(
        self, postgres: Postgres, store: PostgresStore, schema: str
    ) -> None:
        postgres.run(f"UPDATE {schema}.manifest SET version = 99")
        with pytest.raises(NewerFormat, match=r"has format 99.*upgrade semcache"):
            PostgresStore.open(postgres.dsn, schema=schema)

    def test_an_older_format_is_brought_up_to_date_and_nothing_is_lost(
        self, postgres: Postgres, schema: str
    ) -> None:
        # A database as the first version left it: its files of SQL are never edited afterwards.
        first = migrations()[0].script
        postgres.run(
            f"CREATE SCHEMA {schema}",
            f"CREATE TABLE {schema}.manifest (format text, version integer)",
            f"INSERT INTO {schema}.manifest VALUES ('semcache-store', 1)",
            f"SET search_path TO {schema}, public; {first};"
            "INSERT INTO notes VALUES ('acme', 'n', 'sealed')",
        )
        PostgresStore.open(postgres.dsn, schema=schema).close()
        assert postgres.run(f"SELECT tenant, name FROM {schema}.notes") == [("acme", "n")]
        assert postgres.run(f"SELECT count(*) FROM {schema}.grants") == [(0,)]

    @pytest.mark.parametrize("table", ["things", "manifest"])
    def test_a_schema_with_something_else_in_it_is_left_alone(
        self, postgres: Postgres, schema: str, table: str
    ) -> None:
        postgres.run(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.{table} (version text)")
        with pytest.raises(ForeignDatabase, match=f"{table}.*name another schema"):
            PostgresStore.open(postgres.dsn, schema=schema)
        assert postgres.run(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'") == [
            (1,)
        ]

    @pytest.mark.parametrize(
        "dsn", ["", "postgresql//me:s3cret@host/db", "host=h password='s3cret", "s3cret\0"]
    )
    def test_a_connection_string_that_is_none_is_not_shown(self, dsn: str) -> None:
        with pytest.raises(InvalidSettings, match="connection string") as raised:
            PostgresStore.open(dsn)
        assert "s3cret" not in repr(raised.value)
        assert raised.value.__cause__ is None

    @pytest.mark.parametrize("schema", ["", "pg_mine", "x" * 64, "a\n"])
    def test_a_schema_that_cannot_be_one_is_refused(self, schema: str) -> None:
        with pytest.raises(InvalidSettings, match="schema"):
            PostgresStore.open("postgresql:///x", schema=schema)

    def test_a_name_that_would_be_sql_is_a_name(self, postgres: Postgres) -> None:
        name = 'x"; DROP SCHEMA public; --'
        with closing(PostgresStore.open(postgres.dsn, schema=name)) as store:
            assert store.put(make_record("a")).change == 1
        postgres.run(f'DROP SCHEMA "{name.replace(chr(34), chr(34) * 2)}" CASCADE')


class TestSecrets:
    def test_a_password_is_shown_nowhere(
        self, postgres: Postgres, caplog: pytest.LogCaptureFixture
    ) -> None:
        dsn = postgres.dsn.replace("postgres:@", "postgres:s3cret@").replace("?host=", "?host=/no")
        with pytest.raises(StoreUnavailable, match="cannot be reached") as raised:
            PostgresStore.open(dsn, wait_s=0.2)
        store = PostgresStore(dsn)
        said = [repr(raised.value), repr(store), repr(store.connections), caplog.text]
        assert not any("s3cret" in text for text in said)
        assert "user=postgres" in said[0]


class TestTrouble:
    def test_text_that_postgres_cannot_hold_is_refused_and_nothing_written(
        self, store: PostgresStore
    ) -> None:
        with pytest.raises(InvalidInput, match="NUL"):
            store.put(make_record("a", body='"\0"'))
        with pytest.raises(InvalidInput, match="NUL"):
            store.put_note("acme", "n\0", "1")
        with pytest.raises(InvalidInput, match="surrogate"):
            store.find("acme", "\ud800")
        assert (store.count("acme"), store.last_change()) == (0, 0)

    @pytest.mark.parametrize(
        "damage", ["body = '[]'", "tenant = 'other'", "created_s = 1", "keys = '{schema:s}'"]
    )
    def test_a_record_that_is_not_what_was_written_is_set_aside(
        self, postgres: Postgres, store: PostgresStore, schema: str, damage: str
    ) -> None:
        for name in "ab":
            store.put(make_record(name, keys=("schema:s", f"template:{name}")))
        tenant = "other" if "tenant" in damage else "acme"
        postgres.run(
            f"ALTER TABLE {schema}.vectors DROP CONSTRAINT vectors_tenant_id_fkey",
            f"ALTER TABLE {schema}.keys DROP CONSTRAINT keys_tenant_id_fkey",
            f"ALTER TABLE {schema}.labels DROP CONSTRAINT labels_tenant_id_fkey",
            f"UPDATE {schema}.records SET {damage} WHERE id = 'a'",
        )
        with pytest.raises(StoreCorrupt, match="set aside"):
            store.get(tenant, "a")
        assert store.get(tenant, "a") is None
        assert [r.id for r in store.find("acme", "schema:s")] == ["b"]
        assert store.set_aside_count(tenant) == 1

    def test_a_scan_passes_over_what_is_damaged_and_says_so(
        self,
        postgres: Postgres,
        store: PostgresStore,
        schema: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        for name in "abc":
            store.put(make_record(name))
        postgres.run(f"UPDATE {schema}.vectors SET embedding = '[1,0,0]' WHERE id = 'b'")
        assert [r.id for r in store.scan("acme")] == ["a", "c"]
        assert "'b'" in caplog.text
        assert store.changes(3) is not None
        assert store.count("acme") == 2

    def test_a_note_that_is_not_what_was_written_is_set_aside_and_begun_anew(
        self, postgres: Postgres, store: PostgresStore, schema: str
    ) -> None:
        store.put_note("acme", "n", "1")
        postgres.run(f"UPDATE {schema}.notes SET sealed = sealed || '2'")
        with pytest.raises(StoreCorrupt, match="begun anew"):
            store.get_note("acme", "n")
        store.update_note("acme", "n", lambda old: f"{old}")
        assert (store.get_note("acme", "n"), store.set_aside_count("acme")) == ("None", 1)

    def test_tables_that_are_gone_are_told(self, postgres: Postgres, schema: str) -> None:
        with closing(PostgresStore.open(postgres.dsn, schema=schema)) as store:
            postgres.run(f"DROP SCHEMA {schema} CASCADE")
            with pytest.raises(StoreCorrupt, match="name another schema"):
                store.get("acme", "a")

    def test_changes_that_are_forgotten_are_unknown(self, postgres: Postgres, schema: str) -> None:
        PostgresStore.open(postgres.dsn, schema=schema).close()
        with closing(PostgresStore(postgres.dsn, schema=schema, kept_changes=3)) as store:
            for name in "abcde":
                store.put(make_record(name))
            assert store.changes(1) is None
            assert [c.id for c in store.changes(2) or ()] == ["c", "d", "e"]


class TestManyProcesses:
    def test_no_update_is_lost_and_no_ghost_stays(
        self, postgres: Postgres, store: PostgresStore, schema: str
    ) -> None:
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            pool.starmap(count_up, [(postgres.dsn, schema, 20)] * 3)
        assert store.get_note("acme", "n") == "60"
        changes = store.changes(0)
        assert changes is not None
        assert [c.number for c in changes] == list(range(1, 60 + 55 + 1))
        living = {c.id for c in changes if c.kind == "put"} - {
            c.id for c in changes if c.kind == "remove"
        }
        assert {r.id for r in store.scan("acme")} == living
        assert store.count("acme") == 5
        ghosts = f"SELECT count(*) FROM {schema}.vectors"
        assert postgres.run(ghosts) == [(5,)]

    def test_a_forked_process_has_connections_of_its_own(self, store: PostgresStore) -> None:
        store.put(make_record("a"))
        _shared[:] = [store]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(_change_of, ["a"] * 4) == [1] * 4
        assert store.last_change() == 1


_shared: list[PostgresStore] = []
"""What forked processes find; it could not be sent to them."""


def _change_of(known: str) -> int:
    record = _shared[0].get("acme", known)
    return 0 if record is None else record.change


def test_a_replaced_record_is_found_by_its_new_vector_alone(
    postgres: Postgres, store: PostgresStore, schema: str
) -> None:
    record = make_record("a")
    store.put(record)
    store.put(replace(record, embedder="other:3"))
    store.put(replace(record, vector=None, embedder=""))
    assert postgres.run(f"SELECT count(*) FROM {schema}.vectors") == [(0,)]
