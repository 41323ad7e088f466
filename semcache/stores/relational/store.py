"""A store in tables: all of `ports.PlanStore` but how its database is reached."""

import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from semcache.errors import StoreCorrupt, StoreError
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.stores.eviction import by_tenant, make_room
from semcache.stores.records import check_record, check_text, checked, unseal
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.tables import Tables, Told

T = TypeVar("T")

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans

_log = logging.getLogger(__name__)


class RelationalStore(ABC):
    """Records in tables. Every method that writes is one transaction."""

    tables: ClassVar[type[Tables]]
    """The dialect."""

    def __init__(self, *, kept_changes: int) -> None:
        self._kept_changes = kept_changes

    @property
    @abstractmethod
    def where(self) -> str:
        """Where the records are, as messages name it."""

    @abstractmethod
    def _read(self, work: Callable[[Tables], T]) -> T:
        """Return `work(tables)`, each statement of which is its own transaction."""

    @abstractmethod
    def _write(self, work: Callable[[Tables], T]) -> T:
        """Return `work(tables)`, all of which is one transaction, or nothing of it."""

    # Writing -------------------------------------------------------------------------------

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record` and make room for it; see `ports.PlanStore`.

        Raises:
            InvalidInput: text that cannot be kept, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        record = checked(record)
        return self._write(lambda tables: self._put(tables, record, bounds, over))

    def _put(self, tables: Tables, record: Record, bounds: Bounds, over: int | None) -> Put:
        last = tables.lock()
        before = tables.there(record.tenant, record.id)
        if over is not None and over != (0 if before is None else before.change):
            return Put(last, replaced=False, evicted=(), written=False)
        tables.write(replace(record, change=last + 1), before)
        gone = make_room(tables, record, bounds)
        told: list[Told] = [(record.tenant, record.id, "put")]
        told += [(name, known, "remove") for name, known in gone]
        number = tables.tell(last, told, kept=self._kept_changes)
        others = by_tenant(gone)
        return Put(number, before is not None, others.pop(record.tenant, ()), others)

    def put_many(self, records: Iterable[Record]) -> None:
        """Write records within no bounds, all of them in one transaction: a tenth of the time."""
        checked_records = [checked(record) for record in records]
        for record in checked_records:
            check_record(record)

        def work(tables: Tables) -> None:
            for record in checked_records:
                self._put(tables, record, UNBOUNDED, None)

        self._write(work)

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""

        def work(tables: Tables) -> None:
            tables.lock()  # or the order of eviction would move under who evicts
            tables.add_uses(tenant, uses, now_s=now_s)

        self._write(work)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        return self._remove(lambda tables: tables.drop(tenant, ids))

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""
        return self._remove(lambda tables: tables.wipe(tenant))

    def _remove(self, dropped: Callable[[Tables], list[tuple[str, str]]]) -> int:
        def work(tables: Tables) -> int:
            last = tables.lock()
            gone = dropped(tables)
            self._tell_gone(tables, last, gone)
            return len(gone)

        return self._write(work)

    def _tell_gone(self, tables: Tables, last: int, gone: Iterable[tuple[str, str]]) -> None:
        told: list[Told] = [(name, known, "remove") for name, known in gone]
        tables.tell(last, told, kept=self._kept_changes)

    # Reading -------------------------------------------------------------------------------

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the row is not what was written; the record is set aside.
        """
        row = self._read(lambda tables: tables.by_id(tenant, id))
        if row is None:
            return None
        try:
            return self._record(row)
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
        rows = self._read(lambda tables: tables.by_key(tenant, key))
        return [record for record in self._readable(rows, self._record) if key in record.keys]

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        return self._readable(self._read(lambda tables: tables.by_tenant(tenant)))

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time; see `ports.PlanStore`."""
        last = -1
        while rows := self._read(lambda tables, last=last: tables.after(tenant, last, size)):  # type: ignore[misc]
            last = rows[-1].change
            if page := self._readable(rows):
                yield page

    def _record(self, row: RecordRow) -> Record:
        """Return the record of a row that is wanted by its id or key. Raises ValueError."""
        return self.tables.record(row)

    def _readable(
        self, rows: Iterable[RecordRow], record_of: Callable[[RecordRow], Record] | None = None
    ) -> list[Record]:
        found = []
        for row in rows:
            try:
                found.append((record_of or self.tables.record)(row))
            except ValueError:
                _log.warning(
                    "record %r of tenant %r in %s is not what was written; it is set aside",
                    row.id,
                    row.tenant,
                    self.where,
                )
                self._set_aside(row)
        return found

    def _set_aside(self, row: RecordRow) -> None:
        def work(tables: Tables) -> None:
            last = tables.lock()
            if tables.drop_row(row):  # else another process was faster, or wrote a new one
                tables.keep_damaged(row.tenant, f"record/{row.id}", row.text())
                self._tell_gone(tables, last, [(row.tenant, row.id)])

        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError):
            self._write(work)

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        return self._read(lambda tables: tables.damaged_count(tenant))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        return self._read(lambda tables: tables.labelled(tenant, label))

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self.room(tenant).entries

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        return self._read(lambda tables: tables.total() if tenant is None else tables.room(tenant))

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        return self._read(lambda tables: tables.uses(tenant))

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        return self._read(lambda tables: tables.tenants())

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after `since`, in order; None if forgotten, or not reached yet."""
        return self._read(lambda tables: tables.changes(since))

    # Notes and leases ----------------------------------------------------------------------

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the text is not what was written; the note is set aside.
        """
        sealed = self._read(lambda tables: tables.note(tenant, name))
        if sealed is None:
            return None
        try:
            return unseal(sealed.encode())
        except ValueError as error:
            with contextlib.suppress(StoreError):
                self._write(lambda tables: tables.set_note_aside(tenant, name, sealed))
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
        """Replace a note by `change(note)` in one transaction; keep `change` short: others wait.

        A note that is not what was written is set aside with a warning, and `change` gets None.
        """
        check_text(tenant, name)
        if not self._write(lambda tables: tables.update_note(tenant, name, change)):
            _log.warning(
                "note %r of tenant %r is not what was written; it is set aside, and begun anew",
                name,
                tenant,
            )

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        return self._write(
            lambda tables: tables.take_lease(tenant, name, holder, ttl_s=ttl_s, now_s=now_s)
        )

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        self._write(lambda tables: tables.end_lease(tenant, name, holder))
