"""Records in the tables of Postgres: statements that a store puts together to transactions.

Every transaction that writes records begins with `lock`, so writers go one after the other and
change numbers become visible in their order: who reads number n has no smaller number to wait for.
A sequence would hand out numbers that commit in another order, and a reader who has passed n would
never see n - 1 (the rejected alternative, waiting for the oldest running transaction by
`pg_snapshot_xmin`, lets one forgotten transaction of any client hold up every reader). A write here
follows a model's call of a second or more, and takes about a millisecond.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from psycopg import Connection, sql

from semcache.ports import Record, Room, Use
from semcache.stores.eviction import replaced, unused, used
from semcache.stores.postgres.rows import COLUMNS, Embedding, PostgresRow
from semcache.stores.records import checksum

Told = tuple[str, str, Literal["put", "remove"]]
"""Tenant, id and kind of a change."""


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """What is in the place of a record that is to be written."""

    change: int
    size: int
    use: Use


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What `stores.eviction` wants to know of a record."""

    cost_s: float
    created_s: float
    size: int


def lock(connection: Connection) -> int:
    """Wait until no other transaction writes records; return the number of the last change."""
    row = connection.execute("SELECT last_change FROM state FOR UPDATE").fetchone()
    return 0 if row is None else int(row[0])


def tell(connection: Connection, last: int, told: Sequence[Told], *, kept: int) -> int:
    """Number the changes after `last`, forget all but `kept`, and wake who listens."""
    if not told:
        return last
    number = last + len(told)
    tenants, ids, kinds = zip(*told, strict=True)
    connection.execute(
        "INSERT INTO changes (number, tenant, id, kind)"
        " SELECT %s + t.place, t.tenant, t.id, t.kind"
        " FROM unnest(%s::text[], %s::text[], %s::text[])"
        " WITH ORDINALITY AS t (tenant, id, kind, place)",
        (last, list(tenants), list(ids), list(kinds)),
    )
    connection.execute(
        "UPDATE state SET last_change = %s, forgotten = greatest(forgotten, %s)",
        (number, number - kept),
    )
    connection.execute("DELETE FROM changes WHERE number <= %s", (number - kept,))
    connection.execute("SELECT pg_notify('semcache:' || current_schema(), %s)", (str(number),))
    return number


def there(connection: Connection, tenant: str, id: str) -> PostgresPlace | None:  # noqa: A002 - the word of the record
    """Return what is in the place of a record; None if nothing is."""
    row = connection.execute(
        "SELECT change, size, uses, last_s, worth FROM records WHERE tenant = %s AND id = %s",
        (tenant, id),
    ).fetchone()
    return None if row is None else PostgresPlace(row[0], row[1], Use(*row[2:]))


def write(connection: Connection, record: Record, before: PostgresPlace | None) -> None:
    """Write `record` in the place of what is there."""
    use = unused(record) if before is None else replaced(before.use, record)
    if before is not None:
        drop(connection, record.tenant, [record.id])
    place = (record.tenant, record.id)
    connection.execute(
        "INSERT INTO records (tenant, id, change, keys, labels, body, embedder, created_s,"
        " expires_s, cost_s, checksum, size, uses, last_s, worth)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *place,
            record.change,
            list(record.keys),
            list(record.labels),
            record.body,
            record.embedder,
            record.created_s,
            record.expires_s,
            record.cost_s,
            checksum(record),
            record.size,
            use.count,
            use.last_s,
            use.worth,
        ),
    )
    connection.execute(
        "INSERT INTO keys (tenant, id, key) SELECT %s, %s, k FROM unnest(%s::text[]) AS k",
        (*place, list(dict.fromkeys(record.keys))),
    )
    connection.execute(
        "INSERT INTO labels (tenant, id, label) SELECT %s, %s, l FROM unnest(%s::text[]) AS l",
        (*place, list(dict.fromkeys(record.labels))),
    )
    if record.vector is not None:
        connection.execute(
            "INSERT INTO vectors (tenant, id, embedder, embedding) VALUES (%s, %s, %s, %s::vector)",
            (*place, record.embedder, Embedding(record.vector)),
        )
    _count(connection, record.tenant, 1, record.size)


def drop(connection: Connection, tenant: str, ids: Sequence[str]) -> list[str]:
    """Forget records; return which of `ids` were there, in that order."""
    rows = connection.execute(
        "DELETE FROM records WHERE tenant = %s AND id = ANY(%s) RETURNING id, size",
        (tenant, list(ids)),
    ).fetchall()
    gone: dict[str, int] = dict(rows)
    if gone:
        _count(connection, tenant, -len(gone), -sum(gone.values()))
    return [known for known in dict.fromkeys(ids) if known in gone]


def _count(connection: Connection, tenant: str, entries: int, size: int) -> None:
    connection.execute(
        "INSERT INTO tenants AS t (tenant, entries, bytes) VALUES (%s, %s, %s)"
        " ON CONFLICT (tenant) DO UPDATE"
        " SET entries = t.entries + excluded.entries, bytes = t.bytes + excluded.bytes",
        (tenant, entries, size),
    )
    connection.execute("DELETE FROM tenants WHERE tenant = %s AND entries <= 0", (tenant,))


# Room --------------------------------------------------------------------------------------


def room(connection: Connection, tenant: str | None) -> Room:
    """Return what the records of `tenant` take; None: of all tenants that this role may see."""
    if tenant is None:
        # Whom the server holds to some tenants must not count the others.
        row = connection.execute(
            "SELECT entries, bytes FROM state WHERE NOT row_security_active('tenants')"
            " UNION ALL SELECT coalesce(sum(entries), 0)::bigint, coalesce(sum(bytes), 0)::bigint"
            " FROM tenants WHERE row_security_active('tenants') HAVING"
            " row_security_active('tenants')"
        ).fetchone()
    else:
        query = "SELECT entries, bytes FROM tenants WHERE tenant = %s"
        row = connection.execute(query, (tenant,)).fetchone()
    return Room(0, 0) if row is None else Room(*row)


def tenants(connection: Connection) -> list[str]:
    """Return the tenants that have records, sorted."""
    return sorted(tenant for (tenant,) in connection.execute("SELECT tenant FROM tenants"))


def wipe(connection: Connection, tenant: str | None) -> list[tuple[str, str]]:
    """Remove records and notes of the tenant, or of all (None); return whose records went."""
    ours = sql.SQL("true" if tenant is None else "tenant = %s")
    which = () if tenant is None else (tenant,)
    for name in ("notes", "damaged", "tenants"):
        statement = sql.SQL("DELETE FROM {} WHERE {}").format(sql.Identifier(name), ours)
        connection.execute(statement, which)
    statement = sql.SQL("DELETE FROM records WHERE {} RETURNING tenant, id").format(ours)
    return sorted(connection.execute(statement, which).fetchall())


class PostgresTables:
    """The tables while room is made in them, as `stores.eviction.Occupancy` promises."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def room(self, tenant: str) -> Room:
        """Return what the records of the tenant take."""
        return room(self._connection, tenant)

    def total(self) -> Room:
        """Return what the records of all tenants take that this role may see."""
        return room(self._connection, None)

    def largest(self, *, in_bytes: bool) -> list[str]:
        """Return the two tenants that have most, most first."""
        order = sql.Identifier("bytes" if in_bytes else "entries")
        query = 'SELECT tenant FROM tenants ORDER BY {} DESC, tenant COLLATE "C" LIMIT 2'
        rows = self._connection.execute(sql.SQL(query).format(order)).fetchall()
        return [tenant for (tenant,) in rows]

    def evict(self, tenant: str, beside: Record) -> str | None:
        """Remove the tenant's record that is worth least and not `beside`; return its id."""
        row = self._connection.execute(
            "SELECT id FROM records WHERE tenant = %s AND NOT (tenant = %s AND id = %s)"
            " ORDER BY worth, change LIMIT 1",
            (tenant, beside.tenant, beside.id),
        ).fetchone()
        return None if row is None else drop(self._connection, tenant, [row[0]])[0]


def add_uses(connection: Connection, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
    """Add to each record that is still there how often it was used."""
    rows = connection.execute(
        "SELECT id, cost_s, created_s, size, uses, last_s, worth FROM records"
        " WHERE tenant = %s AND id = ANY(%s)",
        (tenant, list(uses)),
    ).fetchall()
    for known, cost_s, created_s, size, *use in rows:
        now = used(Use(*use), _Weighed(cost_s, created_s, size), uses[known], now_s)
        connection.execute(
            "UPDATE records SET uses = %s, last_s = %s, worth = %s WHERE tenant = %s AND id = %s",
            (now.count, now.last_s, now.worth, tenant, known),
        )


# Reading -----------------------------------------------------------------------------------


def by_id(connection: Connection, tenant: str, id: str) -> PostgresRow | None:  # noqa: A002 - the word of the record
    """Return the row of a record, or None."""
    query = f"SELECT {COLUMNS} {_JOINED} WHERE r.tenant = %s AND r.id = %s"
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute(query, (tenant, id)).fetchone()
    return None if row is None else PostgresRow(*row)


def by_key(connection: Connection, tenant: str, key: str) -> list[PostgresRow]:
    """Return the rows of the records that answer to `key`, newest change first."""
    query = (
        f"SELECT {COLUMNS} {_JOINED} JOIN keys k USING (tenant, id)"
        " WHERE k.tenant = %s AND k.key = %s ORDER BY r.change DESC"
    )
    with connection.cursor(binary=True) as cursor:
        return [PostgresRow(*row) for row in cursor.execute(query, (tenant, key))]


def by_tenant(connection: Connection, tenant: str) -> list[PostgresRow]:
    """Return all rows of a tenant, oldest change first.

    Read in parts, so that each statement ends within its time however many records there are.
    """
    query = f"SELECT {COLUMNS} {_JOINED} WHERE r.tenant = %s ORDER BY r.change"
    with connection.transaction(), connection.cursor("scan", binary=True) as cursor:
        cursor.itersize = 1000
        return [PostgresRow(*row) for row in cursor.execute(query, (tenant,))]


def after(connection: Connection, *, tenant: str, change: int, limit: int) -> list[PostgresRow]:
    """Return the first `limit` rows of a tenant with a later change than `change`, in order."""
    query = (
        f"SELECT {COLUMNS} {_JOINED} WHERE r.tenant = %s AND r.change > %s"
        " ORDER BY r.change LIMIT %s"
    )
    with connection.cursor(binary=True) as cursor:
        return [PostgresRow(*row) for row in cursor.execute(query, (tenant, change, limit))]


_JOINED = "FROM records r LEFT JOIN vectors v USING (tenant, id)"
