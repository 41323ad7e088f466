# ruff: noqa: S608 - statements of tests about tables of tests

from collections.abc import Iterator
from contextlib import closing

import pytest

from semcache.errors import StoreUnavailable
from semcache.stores.postgres.store import PostgresStore
from semcache.testing import make_record, same_records
from tests.conftest import Postgres


@pytest.fixture
def role(postgres: Postgres, schema: str) -> Iterator[str]:
    name = f"r{schema}"
    postgres.run(f"CREATE ROLE {name} LOGIN")
    yield name
    postgres.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_role_sees_and_changes_the_tenants_it_was_granted_alone(
    postgres: Postgres, store: PostgresStore, schema: str, role: str
) -> None:
    for tenant in ("acme", "other"):
        store.put(make_record("a", tenant=tenant))
        store.put_note(tenant, "n", "1")
    store.grant(role, ["acme"])
    dsn = postgres.dsn.replace("postgres:@", f"{role}:@")
    with closing(PostgresStore.open(dsn, schema=schema)) as bound:
        assert list(bound.tenants()) == ["acme"]
        assert (bound.get("other", "a"), bound.get_note("other", "n")) == (None, None)
        assert [c.tenant for c in bound.changes(0) or ()] == ["acme"]
        with pytest.raises(StoreUnavailable, match=r"denies access.*row-level security"):
            bound.put(make_record("b", tenant="other"))
        assert bound.remove("other", ["a"]) == 0
        assert bound.clear() == 1
    assert [(n, store.count(n)) for n in ("acme", "other")] == [("acme", 0), ("other", 1)]


def test_what_a_client_asks_for_does_not_matter(
    postgres: Postgres, store: PostgresStore, schema: str, role: str
) -> None:
    for tenant in ("acme", "other"):
        store.put(make_record("a", tenant=tenant, body=f'"{tenant}"'))
    store.grant(role, ["acme"])
    for name in ("records", "vectors", "keys", "labels", "tenants", "changes"):
        rows = postgres.run(f"SET ROLE {role}", f"SELECT DISTINCT tenant FROM {schema}.{name}")
        assert rows == [("acme",)], name


def test_a_role_has_no_leave_before_its_grant_and_loses_it_with_the_next(
    postgres: Postgres, store: PostgresStore, schema: str, role: str
) -> None:
    with pytest.raises(StoreUnavailable, match="denies access"):
        PostgresStore.open(postgres.dsn, schema=schema, role=role)
    store.put(make_record("a"))
    store.grant(role, ["acme", "other"])
    with closing(PostgresStore.open(postgres.dsn, schema=schema, role=role)) as bound:
        assert same_records(bound.get("acme", "a"), make_record("a"))
        store.grant(role, ["other"])
        assert bound.get("acme", "a") is None
        with pytest.raises(StoreUnavailable, match="denies access"):
            bound.grant(role, ["acme"])
