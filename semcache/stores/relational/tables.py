"""The tables of a store and the statements on them, once for SQLite and for PostgreSQL.

The files of SQL in `disk/migrations` and `postgres/migrations` make the same tables in two
dialects; a dialect is a subclass of `Tables`. Each method works on the connection, and in the
transaction, of its caller.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, TypeVar

from semcache.errors import StoreCorrupt
from semcache.ports import Change, Record, Room, Use
from semcache.stores.eviction import replaced, unused, used
from semcache.stores.records import checksum
from semcache.stores.relational.dialect import NoteTables, RecordRow

T = TypeVar("T")

Told = tuple[str, str, Literal["put", "remove"]]
"""Tenant, id and kind of a change."""

_AT_ONCE = 200
"""Rows that one statement names or writes: SQLite may be built to take 999 values, and no more."""
_COLUMNS = (
    "r.tenant, r.id, r.change, r.keys, r.labels, r.body, r.embedder, r.created_s, r.expires_s,"
    " r.cost_s, r.checksum, v.embedding"
)
_WITH_VECTOR = "LEFT JOIN vectors v ON v.tenant = r.tenant AND v.id = r.id"
JOINED = f"FROM records r {_WITH_VECTOR}"
"""Where the columns of a `RecordRow` come from, as SQL."""
OF_TENANT = f"{JOINED} WHERE r.tenant = ? ORDER BY r.change"


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record that is where another one is to be written."""

    change: int
    size: int
    use: Use


@dataclass(frozen=True, slots=True)
class _Weighed:
    """The columns of a record that `stores.eviction` weighs."""

    cost_s: float
    created_s: float
    size: int


class Tables(NoteTables):
    """All tables of a store."""

    # Changes -------------------------------------------------------------------------------

    def lock(self) -> int:
        """Wait until no other transaction writes records; return the number of the last change.

        Whoever writes records begins with this, so change numbers become visible in their order.
        """
        return self._last_change(self.for_update)

    def last_change(self) -> int:
        """Return the number of the last change; 0 if there was none."""
        return self._last_change("")

    def _last_change(self, end: str) -> int:
        query = f"SELECT last_change FROM state{end}"  # noqa: S608 - texts of ours
        (number,) = self.run(query).fetchone() or (None,)
        if not isinstance(number, int):
            raise StoreCorrupt(
                f"the store numbers its last change {number!r}; restore it from a copy, or start "
                "anew in another place"
            )
        return number

    def tell(self, last: int, told: Sequence[Told], *, kept: int) -> int:
        """Number the changes after `last` and forget all but `kept`; return the last number."""
        number = self.told = last + len(told)
        if told:
            numbered = [(at, *change) for at, change in enumerate(told, last + 1)]
            names = ("number", "tenant", "id", "kind")
            self._insert("changes", names, numbered[max(0, len(told) - kept) :])
            forgotten = number - kept
            self.run(
                "UPDATE state SET last_change = ?,"
                " forgotten = CASE WHEN forgotten < ? THEN ? ELSE forgotten END",
                (number, forgotten, forgotten),
            )
            self.run("DELETE FROM changes WHERE number <= ?", (forgotten,))
        return number

    def changes(self, since: int) -> list[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are unknown."""
        # One statement sees one state of the tables: number and log belong together.
        rows = self.run(
            "SELECT s.last_change, s.forgotten, c.number, c.tenant, c.id, c.kind"
            " FROM state s LEFT JOIN changes c ON c.number > ? ORDER BY c.number",
            (since,),
        ).fetchall()
        last, forgotten = rows[0][:2]
        if not forgotten <= since <= last:
            return None
        told = [Change(number, *rest) for _, _, number, *rest in rows if number is not None]
        if self.gapless and [change.number for change in told] != [*range(since + 1, last + 1)]:
            return None
        if any(change.kind not in ("put", "remove") for change in told):
            return None
        self.told = last
        return told

    # Writing records -----------------------------------------------------------------------

    def there(self, tenant: str, id: str) -> RecordPlace | None:  # noqa: A002 - the word of the record
        """Return what is in the place of a record; None if nothing is."""
        row = self.run(
            "SELECT change, size, uses, last_s, worth FROM records WHERE tenant = ? AND id = ?",
            (tenant, id),
        ).fetchone()
        return None if row is None else RecordPlace(row[0], row[1], Use(*row[2:]))

    def write(self, record: Record, before: RecordPlace | None) -> None:
        """Write `record` in the place of what is there."""
        if before is None:
            self.insert(record, unused(record))
        else:
            self._forget(record.tenant, {record.id: before.size})
            self.insert(record, replaced(before.use, record))

    def insert(self, record: Record, use: Use) -> None:
        """Write `record` with its use where no record is."""
        tenant, known = record.tenant, record.id
        columns = {
            "tenant": tenant,
            "id": known,
            "change": record.change,
            "keys": self.list_value(record.keys),
            "labels": self.list_value(record.labels),
            "embedder": record.embedder,
            "created_s": record.created_s,
            "expires_s": record.expires_s,
            "cost_s": record.cost_s,
            "checksum": checksum(record),
            "size": record.size,
            "uses": use.count,
            "last_s": use.last_s,
            "worth": use.worth,
            "body": record.body,
        }
        self._insert("records", tuple(columns), [tuple(columns.values())])
        for table, column, texts in (
            ("keys", "key", record.keys),
            ("labels", "label", record.labels),
        ):
            rows = [(tenant, text, known) for text in dict.fromkeys(texts)]
            self._insert(table, ("tenant", column, "id"), rows)
        if record.vector is not None:
            row = (tenant, known, record.embedder, self.vector_value(record.vector))
            self._insert("vectors", ("tenant", "id", "embedder", "embedding"), [row])
        self.count(tenant, 1, record.size)

    def _insert(
        self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]
    ) -> None:
        for part in _parts(rows):
            self.run(_insertion(table, columns, len(part)), list(chain.from_iterable(part)))

    def drop(self, tenant: str, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Forget records; return tenant and id of those that were there, in the order of `ids`."""
        wanted = list(dict.fromkeys(ids))
        sizes = dict(self._named("id, size", tenant, wanted))
        self._forget(tenant, sizes)
        return [(tenant, known) for known in wanted if known in sizes]

    def _forget(self, tenant: str, sizes: Mapping[str, int]) -> None:
        """Forget the records of these ids and sizes, all of which are there."""
        for part in _parts([*sizes]):
            statement = f"DELETE FROM records WHERE tenant = ? AND id IN ({_marks(part)})"  # noqa: S608 - marks
            self.run(statement, (tenant, *part))
        if sizes:
            self.count(tenant, -len(sizes), -sum(sizes.values()))

    def _named(self, columns: str, tenant: str, ids: Sequence[str]) -> Iterator[Any]:
        """Yield the columns of the records of `ids` that are there."""
        for part in _parts(ids):
            query = f"SELECT {columns} FROM records WHERE tenant = ? AND id IN ({_marks(part)})"  # noqa: S608 - ours
            yield from self.run(query, (tenant, *part)).fetchall()

    def drop_row(self, row: RecordRow) -> bool:
        """Forget a row that is not as it was written, if it is still as it was read."""
        there = self.by_id(row.tenant, row.id)
        return there == row and bool(self.drop(row.tenant, [row.id]))

    def count(self, tenant: str, entries: int, size: int) -> None:
        """Add to what the records of the tenant come to."""
        self.run(
            "INSERT INTO tenants AS t (tenant, entries, bytes) VALUES (?, ?, ?)"
            " ON CONFLICT (tenant) DO UPDATE"
            " SET entries = t.entries + excluded.entries, bytes = t.bytes + excluded.bytes",
            (tenant, entries, size),
        )
        self.run("DELETE FROM tenants WHERE tenant = ? AND entries <= 0", (tenant,))

    def wipe(self, tenant: str | None) -> list[tuple[str, str]]:
        """Remove records and notes of the tenant, or of all (None); return whose records went."""
        where, which = ("", ()) if tenant is None else (" WHERE tenant = ?", (tenant,))
        gone = self.run(f"SELECT tenant, id FROM records{where}", which).fetchall()  # noqa: S608 - ours
        for name in ("notes", "damaged", "tenants", "records"):
            self.run(f"DELETE FROM {name}{where}", which)  # noqa: S608 - names of ours
        return sorted((owner, known) for owner, known in gone)

    def add_uses(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used."""
        columns = "id, cost_s, created_s, size, uses, last_s, worth"
        for known, cost_s, created_s, size, *use in [*self._named(columns, tenant, [*uses])]:
            now = used(Use(*use), _Weighed(cost_s, created_s, size), uses[known], now_s)
            self.run(
                "UPDATE records SET uses = ?, last_s = ?, worth = ? WHERE tenant = ? AND id = ?",
                (now.count, now.last_s, now.worth, tenant, known),
            )

    # Room, as `stores.eviction.Occupancy` promises -------------------------------------------

    def room(self, tenant: str) -> Room:
        """Return what the records of the tenant take."""
        query = "SELECT entries, bytes FROM tenants WHERE tenant = ?"
        row = self.run(query, (tenant,)).fetchone()
        return Room(0, 0) if row is None else Room(*row)

    def total(self) -> Room:
        """Return what the records of all tenants take."""
        return Room(*self.run("SELECT entries, bytes FROM state").fetchone())

    def largest(self, *, in_bytes: bool) -> list[str]:
        """Return the two tenants that have most, most first."""
        order = f"{'bytes' if in_bytes else 'entries'} DESC, tenant COLLATE {self.collation}"
        rows = self.run(f"SELECT tenant FROM tenants ORDER BY {order} LIMIT 2").fetchall()  # noqa: S608 - ours
        return [tenant for (tenant,) in rows]

    def evict(self, tenant: str, beside: Record) -> str | None:
        """Remove the tenant's record that is worth least and not `beside`; return its id."""
        row = self.run(
            "SELECT id, size FROM records WHERE tenant = ? AND NOT (tenant = ? AND id = ?)"
            " ORDER BY worth, change LIMIT 1",
            (tenant, beside.tenant, beside.id),
        ).fetchone()
        if row is None:
            return None
        self._forget(tenant, {row[0]: row[1]})
        return str(row[0])

    # Reading records -----------------------------------------------------------------------

    def by_id(self, tenant: str, id: str) -> RecordRow | None:  # noqa: A002 - the word of the record
        """Return the row of a record, or None."""
        where = f"{JOINED} WHERE r.tenant = ? AND r.id = ?"
        rows = self.rows(where, tenant, id)
        return rows[0] if rows else None

    def by_key(self, tenant: str, key: str) -> list[RecordRow]:
        """Return the rows of the records that answer to `key`, newest change first."""
        # CROSS JOIN keeps the order of the tables in SQLite, and `+` keeps it from reading all
        # records by their change because they are wanted in that order.
        where = (
            f"FROM keys k CROSS JOIN records r {_WITH_VECTOR} WHERE k.tenant = ? AND k.key = ?"
            " AND r.tenant = k.tenant AND r.id = k.id ORDER BY +r.change DESC"
        )
        return self.rows(where, tenant, key)

    def after(self, tenant: str, change: int, limit: int) -> list[RecordRow]:
        """Return the first `limit` rows of a tenant with a later change than `change`, in order."""
        where = f"{JOINED} WHERE r.tenant = ? AND r.change > ? ORDER BY r.change LIMIT ?"
        return self.rows(where, tenant, change, limit)

    def by_tenant(self, tenant: str) -> list[RecordRow]:
        """Return all rows of a tenant, oldest change first."""
        return self.rows(OF_TENANT, tenant)

    def rows(self, where: str, *values: object) -> list[RecordRow]:
        """Return the rows that SQL from `FROM` on selects."""
        return [RecordRow(*row) for row in self.run(self.select(where), values).fetchall()]

    def select(self, where: str) -> str:
        """Return the SQL that selects the columns of a `RecordRow`."""
        return f"SELECT {self.row_place}, {_COLUMNS} {where}"

    @classmethod
    def record(cls, row: RecordRow) -> Record:
        """Return the record of a row.

        Raises:
            ValueError: this is not what was written.
        """
        try:
            found = Record(
                tenant=row.tenant,
                id=row.id,
                keys=tuple(cls.list_of(row.keys)),
                labels=tuple(cls.list_of(row.labels)),
                body=row.body,
                vector=None if row.embedding is None else cls.vector_of(row.embedding),
                embedder=row.embedder,
                created_s=row.created_s,
                expires_s=row.expires_s,
                change=row.change,
                cost_s=row.cost_s,
            )
            whole = checksum(found) == row.checksum
        except (TypeError, AttributeError) as error:
            raise ValueError(f"a column has a value of another type ({error})") from error
        if not whole:
            raise ValueError("the checksum is not that of the content")
        return found

    def labelled(self, tenant: str, label: str) -> list[str]:
        """Return the ids of the records that carry `label`, sorted."""
        query = "SELECT id FROM labels WHERE tenant = ? AND label = ?"
        return sorted(known for (known,) in self.run(query, (tenant, label)).fetchall())

    def uses(self, tenant: str) -> dict[str, Use]:
        """Return the use of every record of the tenant."""
        query = "SELECT id, uses, last_s, worth FROM records WHERE tenant = ?"
        return {known: Use(*use) for known, *use in self.run(query, (tenant,)).fetchall()}

    def tenants(self) -> list[str]:
        """Return the tenants that have records, sorted."""
        return sorted(tenant for (tenant,) in self.run("SELECT tenant FROM tenants").fetchall())


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


@lru_cache(maxsize=256)  # writing the text takes longer than looking for it
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {marks}"  # noqa: S608 - names of ours


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
