"""A store in PostgreSQL that many machines share, as `ports.PlanStore` promises."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from psycopg import Connection

from semcache.errors import StoreUnavailable
from semcache.stores.postgres.listener import Listener
from semcache.stores.postgres.pool import RETRY_S, Connections
from semcache.stores.postgres.schema import Server, about, check_names, grant, migrate
from semcache.stores.postgres.tables import PostgresTables
from semcache.stores.postgres.vectors import PostgresIndex
from semcache.stores.relational.store import KEPT_CHANGES, RelationalStore
from semcache.stores.relational.tables import Tables

T = TypeVar("T")

POOL_SIZE = 8  # connections a process; a statement takes less than 1 ms
WAIT_S = 2.0  # seconds to wait for a connection
STATEMENT_TIMEOUT_S = 5.0  # seconds that one statement may take, waiting for locks included


class PostgresStore(RelationalStore):
    """Records in a schema of a PostgreSQL database. Safe from threads, processes and machines.

    Nothing is connected to before the first use, or `open`. Every write is one transaction, and
    survives the server's end as far as the server's `synchronous_commit` promises.
    """

    tables = PostgresTables

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "semcache",
        role: str | None = None,
        lag_s: float = 0.0,
        pool_size: int = POOL_SIZE,
        wait_s: float = WAIT_S,
        statement_timeout_s: float = STATEMENT_TIMEOUT_S,
        retry_s: float = RETRY_S,
        kept_changes: int = KEPT_CHANGES,
    ) -> None:
        check_names(schema, role)
        super().__init__(kept_changes=kept_changes)
        self.connections = Connections(
            dsn,
            schema=schema,
            role=role,
            size=pool_size,
            wait_s=wait_s,
            statement_timeout_s=statement_timeout_s,
            retry_s=retry_s,
        )
        """The way to the server, for who searches there."""
        self.schema = schema
        """Where in the database the tables are."""
        self._listener = None
        if lag_s > 0:
            self._listener = Listener(
                self.connections.alone,
                schema=schema,
                lag_s=lag_s,
                retry_s=retry_s,
            )

    @classmethod
    def open(
        cls,
        dsn: str,
        *,
        schema: str = "semcache",
        role: str | None = None,
        lag_s: float = 0.0,
        pool_size: int = POOL_SIZE,
        wait_s: float = WAIT_S,
        statement_timeout_s: float = STATEMENT_TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> "PostgresStore":
        """Return the store in `schema` of the database `dsn`, its tables made or up to date.

        `role`: act as this role, whom row-level security binds to the tenants of its `grant`; its
        tables must be there. `lag_s`: seconds within which a change by another process is seen; 0:
        at once, for the price of a query a lookup. `pool_size`: connections at most. `wait_s`:
        seconds to wait for one. `statement_timeout_s`: seconds that a statement may take.
        `retry_s`: seconds between attempts to reach a server that was lost.

        Raises:
            ForeignDatabase: the schema holds tables that semcache did not make.
            NewerFormat: a later semcache made them.
            StoreUnavailable: the server cannot be reached, or refuses.
            InvalidSettings: `dsn`, `schema` or `role` cannot be one.
        """
        store = cls(
            dsn,
            schema=schema,
            role=role,
            lag_s=lag_s,
            pool_size=pool_size,
            wait_s=wait_s,
            statement_timeout_s=statement_timeout_s,
            retry_s=retry_s,
        )
        try:
            where = store.connections.where
            store.connections.read(lambda c: migrate(c, schema, where=where))
        except BaseException as error:
            store.close()
            if isinstance(error, StoreUnavailable) and error.passing:
                error.passing = not store.connections.refuses()
            raise
        return store

    def __repr__(self) -> str:
        return f"<PostgresStore in {self.connections.where}>"

    def about(self) -> Server:
        """Return what the server is, and what it takes the time for."""
        return self.connections.read(about)

    def reachable(self, *, wait_s: float = WAIT_S) -> bool:
        """Return whether the server answers; if it was lost, after trying for up to `wait_s`."""
        return self.connections.reachable(wait_s=wait_s)

    @property
    def where(self) -> str:
        """The database and the schema, without a password."""
        return self.connections.where

    def _read(self, work: Callable[[Tables], T]) -> T:
        return self._followed(*self.connections.read(lambda c: _worked(c, work)))

    def _write(self, work: Callable[[Tables], T]) -> T:
        return self._followed(*self.connections.write(lambda c: _worked(c, work)))

    def _followed(self, done: T, told: int | None) -> T:
        """Return `done`, and let the listener know the last change that was told meanwhile."""
        if self._listener is not None and told is not None:
            self._listener.made(told)
        return done

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        Of changes by others it may be one of up to `lag_s` ago.
        """
        known = None if self._listener is None else self._listener.known()
        return self._read(lambda tables: tables.last_change()) if known is None else known

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        if self._listener is not None:
            self._listener.doubt()  # who had the lease may have written what it was for
        return super().lease(tenant, name, holder, ttl_s=ttl_s, now_s=now_s)

    # Roles ---------------------------------------------------------------------------------

    def grant(self, role: str, tenants: Sequence[str]) -> None:
        """Let `role` see and change the records of `tenants`, and of no other tenant.

        What it could see before is replaced. Only the owner of the tables may call this; the role
        must exist. Whoever opens the store with `role=`, or logs in as that role, is held to it by
        the server, whatever the client asks for.
        """
        check_names(self.schema, role)
        self.connections.write(lambda c: grant(c, self.schema, role, tenants))

    def indexes(self, embedder: str) -> Callable[[str], PostgresIndex]:
        """Return what makes the index of a tenant that the server searches, for `embedder`."""
        return lambda tenant: PostgresIndex(self.connections, tenant=tenant, embedder=embedder)

    def close(self) -> None:
        """End all connections; calling it twice is fine."""
        if self._listener is not None:
            self._listener.close()
        self.connections.close()


def _worked(connection: Connection, work: Callable[[Tables], T]) -> tuple[T, int | None]:
    tables = PostgresTables(connection)
    return work(tables), tables.told
