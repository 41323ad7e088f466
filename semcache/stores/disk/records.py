"""Records in the tables of a directory: statements that a store puts together to transactions.

The same statements as in `postgres/records.py`, in the dialect of SQLite. Each works on the
connection, and in the transaction, of its caller.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Literal

import numpy as np

from semcache.errors import StoreCorrupt
from semcache.ports import Change, Record, Room, Use
from semcache.stores.eviction import replaced, unused, used
from semcache.stores.records import checksum

Told = tuple[str, str, Literal["put", "remove"]]
"""Tenant, id and kind of a change."""

_COLUMNS = """
    r.rowid, r.tenant, r.id, r.change, r.keys, r.labels, r.body, r.embedder, r.created_s,
    r.expires_s, r.cost_s, r.checksum, v.embedding
"""
_JOINED = "FROM records r LEFT JOIN vectors v USING (tenant, id)"


@dataclass(frozen=True, slots=True)
class DiskRow:
    """A record as its table has it; maybe not what was written."""

    rowid: int
    tenant: str
    id: str
    change: int
    keys: str
    labels: str
    body: str
    embedder: str
    created_s: float
    expires_s: float | None
    cost_s: float
    checksum: bytes
    embedding: bytes | None

    def record(self) -> Record:
        """Return the record.

        Raises:
            ValueError: this is not what was written.
        """
        try:
            found = Record(
                tenant=self.tenant,
                id=self.id,
                keys=tuple(json.loads(self.keys)),
                labels=tuple(json.loads(self.labels)),
                body=self.body,
                vector=None if self.embedding is None else np.frombuffer(self.embedding, "<f4"),
                embedder=self.embedder,
                created_s=self.created_s,
                expires_s=self.expires_s,
                change=self.change,
                cost_s=self.cost_s,
            )
            whole = checksum(found) == self.checksum
        except (TypeError, AttributeError) as error:
            raise ValueError(f"a column has a value of another type ({error})") from error
        if not whole:
            raise ValueError("the checksum is not that of the content")
        return found

    def text(self) -> str:
        """Return the row as text, to be looked at by a person."""
        return json.dumps({name: _shown(getattr(self, name)) for name in DiskRow.__slots__})


def _shown(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


@dataclass(frozen=True, slots=True)
class DiskPlace:
    """What is in the place of a record that is to be written."""

    change: int
    use: Use


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What `stores.eviction` wants to know of a record."""

    cost_s: float
    created_s: float
    size: int


# Changes -----------------------------------------------------------------------------------


def last_change(connection: Connection) -> int:
    """Return the number of the last change; 0 if there was none."""
    (number,) = connection.execute("SELECT last_change FROM state").fetchone() or (None,)
    if not isinstance(number, int):
        raise StoreCorrupt(
            f"the store numbers its last change {number!r}; restore it from a copy, or start anew "
            "in another directory"
        )
    return number


def tell(connection: Connection, last: int, told: Sequence[Told], *, kept: int) -> int:
    """Number the changes after `last` and forget all but `kept`; return the last number."""
    if not told:
        return last
    connection.executemany(
        "INSERT INTO changes (number, tenant, id, kind) VALUES (?, ?, ?, ?)",
        [(number, *change) for number, change in enumerate(told, last + 1)],
    )
    number = last + len(told)
    connection.execute(
        "UPDATE state SET last_change = ?, forgotten = max(forgotten, ?)", (number, number - kept)
    )
    connection.execute("DELETE FROM changes WHERE number <= ?", (number - kept,))
    return number


def changes(connection: Connection, since: int) -> list[Change] | None:
    """Return the changes after number `since`, in order; None if some of them cannot be told."""
    # One statement sees one state of the tables: number and log belong together.
    rows = connection.execute(
        "SELECT s.last_change, s.forgotten, c.number, c.tenant, c.id, c.kind"
        " FROM state s LEFT JOIN changes c ON c.number > ? ORDER BY c.number",
        (since,),
    ).fetchall()
    last, forgotten = rows[0][:2]
    if not forgotten <= since <= last:
        return None
    told = [Change(number, *rest) for _, _, number, *rest in rows if number is not None]
    whole = [change.number for change in told] == [*range(since + 1, last + 1)]
    return told if whole and all(change.kind in ("put", "remove") for change in told) else None


# Writing -----------------------------------------------------------------------------------


def there(connection: Connection, tenant: str, id: str) -> DiskPlace | None:  # noqa: A002 - the word of the record
    """Return what is in the place of a record; None if nothing is."""
    row = connection.execute(
        "SELECT change, uses, last_s, worth FROM records WHERE tenant = ? AND id = ?", (tenant, id)
    ).fetchone()
    return None if row is None else DiskPlace(row[0], Use(*row[1:]))


def write(connection: Connection, record: Record, before: DiskPlace | None) -> None:
    """Write `record` in the place of what is there."""
    if before is not None:
        drop(connection, record.tenant, [record.id])
    insert(connection, record, unused(record) if before is None else replaced(before.use, record))


def insert(connection: Connection, record: Record, use: Use) -> None:
    """Write `record` with its use where no record is."""
    connection.execute(
        "INSERT INTO records (tenant, id, change, keys, labels, embedder, created_s, expires_s,"
        " cost_s, checksum, size, uses, last_s, worth, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.tenant,
            record.id,
            record.change,
            json.dumps(record.keys),
            json.dumps(record.labels),
            record.embedder,
            record.created_s,
            record.expires_s,
            record.cost_s,
            checksum(record),
            record.size,
            use.count,
            use.last_s,
            use.worth,
            record.body,
        ),
    )
    for table, names in (("keys (key,", record.keys), ("labels (label,", record.labels)):
        connection.executemany(
            f"INSERT INTO {table} tenant, id) VALUES (?, ?, ?)",  # noqa: S608 - two names of ours
            [(name, record.tenant, record.id) for name in dict.fromkeys(names)],
        )
    if record.vector is not None:
        connection.execute(
            "INSERT INTO vectors (tenant, id, embedder, embedding) VALUES (?, ?, ?, ?)",
            (record.tenant, record.id, record.embedder, record.vector.astype("<f4").tobytes()),
        )
    _count(connection, record.tenant, 1, record.size)


def drop(connection: Connection, tenant: str, ids: Iterable[str]) -> list[str]:
    """Forget records; return which of `ids` were there, in that order."""
    gone: list[str] = []
    size = 0
    for known in ids:
        row = connection.execute(
            "SELECT rowid, size FROM records WHERE tenant = ? AND id = ?", (tenant, known)
        ).fetchone()
        if row is not None:
            connection.execute("DELETE FROM records WHERE rowid = ?", (row[0],))
            gone.append(known)
            size += row[1]
    if gone:
        _count(connection, tenant, -len(gone), -size)
    return gone


def drop_row(connection: Connection, row: DiskRow) -> bool:
    """Forget a row that is not what was written, if it is still as it was read."""
    query = f"SELECT {_COLUMNS} {_JOINED} WHERE r.rowid = ?"
    found = connection.execute(query, (row.rowid,)).fetchone()
    if found is None or DiskRow(*found) != row:
        return False
    connection.execute("DELETE FROM records WHERE rowid = ?", (row.rowid,))
    recount(connection)  # its tenant or its size may be what is damaged
    return True


def _count(connection: Connection, tenant: str, entries: int, size: int) -> None:
    connection.execute(
        "INSERT INTO tenants (tenant, entries, bytes) VALUES (?, ?, ?) ON CONFLICT (tenant)"
        " DO UPDATE SET entries = entries + excluded.entries, bytes = bytes + excluded.bytes",
        (tenant, entries, size),
    )
    connection.execute("DELETE FROM tenants WHERE tenant = ? AND entries <= 0", (tenant,))
    connection.execute("UPDATE state SET entries = entries + ?, bytes = bytes + ?", (entries, size))


def recount(connection: Connection) -> None:
    """Count anew what the records of each tenant, and of all, come to. Cost: a look at each."""
    connection.execute("DELETE FROM tenants")
    connection.execute(
        "INSERT INTO tenants SELECT tenant, count(*), sum(size) FROM records GROUP BY tenant"
    )
    connection.execute(
        "UPDATE state SET entries = (SELECT coalesce(sum(entries), 0) FROM tenants),"
        " bytes = (SELECT coalesce(sum(bytes), 0) FROM tenants)"
    )


def measure(connection: Connection) -> None:
    """Measure each record anew, and count. Cost: all that is kept is read."""
    size = (
        "length(CAST(body AS BLOB)) + coalesce((SELECT length(embedding) FROM vectors AS v"
        " WHERE v.tenant = records.tenant AND v.id = records.id), 0)"
    )
    connection.execute(f"UPDATE records SET size = {size} WHERE size IS NOT {size}")  # noqa: S608 - a text of ours
    recount(connection)


def wipe(connection: Connection, tenant: str | None) -> list[tuple[str, str]]:
    """Remove records and notes of the tenant, or of all (None); return whose records went."""
    where, which = ("", ()) if tenant is None else (" WHERE tenant = ?", (tenant,))
    for name in ("notes", "damaged"):
        connection.execute(f"DELETE FROM {name}{where}", which)  # noqa: S608 - two names of ours
    query = f"SELECT tenant, id, size FROM records{where}"  # noqa: S608 - the same
    gone = connection.execute(query, which).fetchall()
    connection.execute(f"DELETE FROM records{where}", which)  # noqa: S608 - the same
    if tenant is None:
        recount(connection)
    else:
        _count(connection, tenant, -len(gone), -sum(size for _, _, size in gone))
    return sorted((owner, known) for owner, known, _ in gone)


def add_uses(connection: Connection, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
    """Add to each record that is still there how often it was used."""
    for known, count in uses.items():
        row = connection.execute(
            "SELECT cost_s, created_s, size, uses, last_s, worth FROM records"
            " WHERE tenant = ? AND id = ?",
            (tenant, known),
        ).fetchone()
        if row is not None:
            now = used(Use(*row[3:]), _Weighed(*row[:3]), count, now_s)
            connection.execute(
                "UPDATE records SET uses = ?, last_s = ?, worth = ? WHERE tenant = ? AND id = ?",
                (now.count, now.last_s, now.worth, tenant, known),
            )


class DiskTables:
    """The tables while room is made in them, as `stores.eviction.Occupancy` promises."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def room(self, tenant: str) -> Room:
        """Return what the records of the tenant take."""
        return room(self._connection, tenant)

    def total(self) -> Room:
        """Return what the records of all tenants take."""
        return room(self._connection, None)

    def largest(self, *, in_bytes: bool) -> list[str]:
        """Return the two tenants that have most, most first."""
        order = "bytes" if in_bytes else "entries"
        query = f"SELECT tenant FROM tenants ORDER BY {order} DESC, tenant LIMIT 2"  # noqa: S608 - ours
        return [tenant for (tenant,) in self._connection.execute(query).fetchall()]

    def evict(self, tenant: str, beside: Record) -> str | None:
        """Remove the tenant's record that is worth least and not `beside`; return its id."""
        row = self._connection.execute(
            "SELECT id FROM records WHERE tenant = ? AND NOT (tenant = ? AND id = ?)"
            " ORDER BY worth, change LIMIT 1",
            (tenant, beside.tenant, beside.id),
        ).fetchone()
        return None if row is None else drop(self._connection, tenant, [row[0]])[0]


# Reading -----------------------------------------------------------------------------------


def room(connection: Connection, tenant: str | None) -> Room:
    """Return what the records of the tenant take, or those of all tenants (None)."""
    if tenant is None:
        row = connection.execute("SELECT entries, bytes FROM state").fetchone()
    else:
        query = "SELECT entries, bytes FROM tenants WHERE tenant = ?"
        row = connection.execute(query, (tenant,)).fetchone()
    return Room(0, 0) if row is None else Room(*row)


def by_id(connection: Connection, tenant: str, id: str) -> DiskRow | None:  # noqa: A002 - the word of the record
    """Return the row of a record, or None."""
    rows = _rows(connection, f"{_JOINED} WHERE r.tenant = ? AND r.id = ?", tenant, id)
    return rows[0] if rows else None


def by_key(connection: Connection, tenant: str, key: str) -> list[DiskRow]:
    """Return the rows of the records that answer to `key`, newest change first."""
    # CROSS JOIN keeps the order of the tables, and `+` keeps SQLite from reading all records by
    # their change because they are wanted in that order.
    where = (
        "FROM keys k CROSS JOIN records r ON r.tenant = k.tenant AND r.id = k.id"
        " LEFT JOIN vectors v ON v.tenant = r.tenant AND v.id = r.id"
        " WHERE k.tenant = ? AND k.key = ? ORDER BY +r.change DESC"
    )
    return _rows(connection, where, tenant, key)


def after(connection: Connection, tenant: str, change: int, limit: int) -> list[DiskRow]:
    """Return the first `limit` rows of a tenant with a later change than `change`, in order.

    No limit: -1.
    """
    where = f"{_JOINED} WHERE r.tenant = ? AND r.change > ? ORDER BY r.change LIMIT ?"
    return _rows(connection, where, tenant, change, limit)


def _rows(connection: Connection, where: str, *values: object) -> list[DiskRow]:
    query = f"SELECT {_COLUMNS} {where}"
    return [DiskRow(*row) for row in connection.execute(query, values).fetchall()]
