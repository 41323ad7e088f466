"""A store in PostgreSQL that many machines share, as `ports.PlanStore` promises."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from psycopg import Connection

from semcache.errors import StoreCorrupt, StoreError
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.stores.eviction import by_tenant, make_room
from semcache.stores.postgres import notes
from semcache.stores.postgres import records as table
from semcache.stores.postgres.connections import RETRY_S, Connections
from semcache.stores.postgres.listener import Listener
from semcache.stores.postgres.rows import PostgresRow
from semcache.stores.postgres.schema import Server, about, check_names, grant, migrate
from semcache.stores.postgres.vectors import PostgresIndex
from semcache.stores.records import check_record, check_text, checked, unseal

T = TypeVar("T")

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans
POOL_SIZE = 8  # connections a process; a statement takes less than 1 ms
WAIT_S = 2.0  # seconds to wait for a connection
STATEMENT_TIMEOUT_S = 5.0  # seconds that one statement may take, waiting for locks included

_log = logging.getLogger(__name__)


class PostgresStore:
    """Records in a schema of a PostgreSQL database. Safe from threads, processes and machines.

    Nothing is connected to before the first use, or `open`. Every write is one transaction, and
    survives the server's end as far as the server's `synchronous_commit` promises.
    """

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
        self._kept_changes = kept_changes
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
        except BaseException:
            store.close()
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

    # Writing -------------------------------------------------------------------------------

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        The record just written is never evicted. `over`: number of the change whose record this
        one is to replace, 0 for none; if another is there, nothing is done.

        Raises:
            InvalidInput: text with a lone surrogate or NUL, or a vector that cannot be one.
        """
        check_record(record)
        record = checked(record)
        done = self.connections.write(lambda c: self._put(c, record, bounds, over))
        return self._made(done.change, done)

    def _put(self, connection: Connection, record: Record, bounds: Bounds, over: int | None) -> Put:
        last = table.lock(connection)
        before = table.there(connection, record.tenant, record.id)
        if over is not None and over != (0 if before is None else before.change):
            return Put(last, replaced=False, evicted=(), written=False)
        written = replace(record, change=last + 1)
        table.write(connection, written, before)
        gone = make_room(table.PostgresTables(connection), written, bounds)
        told: list[table.Told] = [(record.tenant, record.id, "put")]
        told += [(name, known, "remove") for name, known in gone]
        number = table.tell(connection, last, told, kept=self._kept_changes)
        others = by_tenant(gone)
        return Put(number, before is not None, others.pop(record.tenant, ()), others)

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""

        def work(connection: Connection) -> None:
            table.lock(connection)  # or the order of eviction would move under who evicts
            table.add_uses(connection, tenant, uses, now_s=now_s)

        self.connections.write(work)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""

        def work(connection: Connection) -> tuple[int, int]:
            last = table.lock(connection)
            gone = table.drop(connection, tenant, ids)
            told: list[table.Told] = [(tenant, known, "remove") for known in gone]
            return len(gone), table.tell(connection, last, told, kept=self._kept_changes)

        count, number = self.connections.write(work)
        return self._made(number, count)

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""

        def work(connection: Connection) -> tuple[int, int]:
            last = table.lock(connection)
            gone = table.wipe(connection, tenant)
            told: list[table.Told] = [(name, known, "remove") for name, known in gone]
            return len(gone), table.tell(connection, last, told, kept=self._kept_changes)

        count, number = self.connections.write(work)
        return self._made(number, count)

    def _made(self, number: int, done: T) -> T:
        if self._listener is not None:
            self._listener.made(number)
        return done

    # Reading -------------------------------------------------------------------------------

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the row is not what was written; the record is set aside.
        """
        row = self.connections.read(lambda c: table.by_id(c, tenant, id))
        if row is None:
            return None
        try:
            return row.record()
        except ValueError as error:
            self._set_aside(row)
            raise StoreCorrupt(
                f"record {id!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and the prompt is planned again"
            ) from error

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none.

        A record that is not what was written is set aside with a warning.
        """
        found = self._readable(self.connections.read(lambda c: table.by_key(c, tenant, key)))
        return [record for record in found if key in record.keys]

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        return self._readable(self.connections.read(lambda c: table.by_tenant(c, tenant)))

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time; see `ports.PlanStore`."""
        last = 0
        while rows := self.connections.read(
            partial(table.after, tenant=tenant, change=last, limit=size)
        ):
            last = rows[-1].change
            yield self._readable(rows)

    def _readable(self, rows: Iterable[PostgresRow]) -> list[Record]:
        found = []
        for row in rows:
            try:
                found.append(row.record())
            except ValueError:
                _log.warning(
                    "record %r of tenant %r in %s is not what was written; it is set aside",
                    row.id,
                    row.tenant,
                    self.connections.where,
                )
                self._set_aside(row)
        return found

    def _set_aside(self, row: PostgresRow) -> None:
        def work(connection: Connection) -> None:
            last = table.lock(connection)
            if table.by_id(connection, row.tenant, row.id) != row:
                return  # another process was faster, or wrote a new one
            notes.keep_damaged(connection, row.tenant, f"record/{row.id}", row.text())
            gone = table.drop(connection, row.tenant, [row.id])
            told: list[table.Told] = [(row.tenant, known, "remove") for known in gone]
            table.tell(connection, last, told, kept=self._kept_changes)

        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError):
            self.connections.write(work)

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        return self._one("SELECT count(*) FROM damaged WHERE tenant = %s", (tenant,))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        query = "SELECT id FROM labels WHERE tenant = %s AND label = %s"
        rows = self.connections.read(lambda c: c.execute(query, (tenant, label)).fetchall())
        return sorted(known for (known,) in rows)

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self.room(tenant).entries

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        return self.connections.read(lambda c: table.room(c, tenant))

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        query = "SELECT id, uses, last_s, worth FROM records WHERE tenant = %s"
        rows = self.connections.read(lambda c: c.execute(query, (tenant,)).fetchall())
        return {known: Use(*use) for known, *use in rows}

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        return self.connections.read(table.tenants)

    # Changes -------------------------------------------------------------------------------

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        Of changes by others it may be one of up to `lag_s` ago.
        """
        known = None if self._listener is None else self._listener.known()
        return self._one("SELECT last_change FROM state") if known is None else known

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        # One statement sees one state of the tables: number and log belong together.
        query = (
            "SELECT s.last_change, s.forgotten, c.number, c.tenant, c.id, c.kind"
            " FROM state s LEFT JOIN changes c ON c.number > %s ORDER BY c.number"
        )
        rows = self.connections.read(lambda c: c.execute(query, (since,)).fetchall())
        last, forgotten = rows[0][:2]
        if not forgotten <= since <= last:
            return None
        told = [Change(number, *rest) for _, _, number, *rest in rows if number is not None]
        return self._made(last, told)

    # Notes and leases ----------------------------------------------------------------------

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the text is not what was written; the note is set aside.
        """
        sealed = self.connections.read(lambda c: notes.read(c, tenant, name))
        if sealed is None:
            return None
        try:
            return unseal(sealed.encode())
        except ValueError as error:
            with contextlib.suppress(StoreError):
                self.connections.write(lambda c: notes.set_aside(c, tenant, name, sealed))
            raise StoreCorrupt(
                f"note {name!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and begun anew"
            ) from error

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction, so that no other update is lost.

        A note that is not what was written is set aside, and `change` gets None.
        """
        check_text(tenant, name)
        self.connections.write(lambda c: notes.update(c, tenant, name, change))

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        if self._listener is not None:
            self._listener.doubt()  # who had the lease may have written what it was for
        return self.connections.read(
            lambda c: notes.take_lease(c, tenant, name, holder, ttl_s=ttl_s, now_s=now_s)
        )

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        self.connections.read(lambda c: notes.end_lease(c, tenant, name, holder))

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

    def _one(self, query: str, values: tuple[object, ...] = ()) -> int:
        row = self.connections.read(lambda c: c.execute(query, values).fetchone())
        return 0 if row is None else int(row[0])
