"""A store on disk that many processes share: tables of SQLite, and text alone.

`schema` makes the tables, `records` and `notes` are the statements on them, and `database` the
connections and transactions. They mirror the tables in PostgreSQL.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.stores.disk import notes
from semcache.stores.disk import records as table
from semcache.stores.disk.change_signal import RECHECK_S, ChangeSignal
from semcache.stores.disk.database import Connection, Database, damage
from semcache.stores.disk.directory import DATABASE, VERSION, claim, require, set_aside
from semcache.stores.disk.handle import DatabaseHandle
from semcache.stores.disk.takeover import take_over
from semcache.stores.eviction import by_tenant, make_room
from semcache.stores.records import RecordCache, check_record, check_text, checked, unseal

T = TypeVar("T")

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans
KEPT_RECORDS = 100  # records kept in memory as they were read; who serves them keeps their entries
BUSY_TIMEOUT_S = 5.0  # seconds to wait for another writer; a write takes less than 1 ms

_log = logging.getLogger(__name__)


class DiskStore:
    """Records on disk, as `ports.PlanStore` promises. Threads and processes may share a directory.

    Nothing is opened before the first use, or `open`. A write survives the end of the process as
    soon as the call returns; a power cut may take the last of them, but never a part of one.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        kept_changes: int = KEPT_CHANGES,
        frozen: bool = False,
    ) -> None:
        self.directory = Path(directory).absolute()
        """Where it is kept."""
        self.repaired = ""
        """What `open(repair=True)` found damaged, and where that is now; empty if nothing."""
        self._timeout_s = busy_timeout_s
        self._kept_changes = kept_changes
        self._frozen = frozen
        self._handle = DatabaseHandle(self.directory, self._open, text="text for the store")
        self._decoded = RecordCache(KEPT_RECORDS)
        self._signal: ChangeSignal | None = None
        self._known: tuple[bytes | None, float, int] = (None, 0.0, 0)
        """The signal at which the last change was read, when that was, and its number."""

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        repair: bool = False,
        frozen: bool = False,
    ) -> "DiskStore":
        """Return the store in `directory`, made if the directory is missing or empty, and opened.

        A directory that an earlier semcache wrote is brought to this version. One on a disk that is
        full or read-only is served as it is, with a warning, and cannot be written meanwhile.
        `repair` reads the whole database first; if it is damaged, it is moved to a folder
        `damaged-<n>` beside and an empty one is begun. No other process may have it open then.
        `frozen`: the directory is read and not a byte of it is written, by whatever happens.

        Raises:
            ForeignDirectory: the directory holds what semcache did not write.
            NewerFormat: a later semcache wrote it.
            StoreUnavailable: it cannot be read, or not be made.
            StoreCorrupt: it is damaged, and `repair` is False.
        """
        store = cls(directory, busy_timeout_s=busy_timeout_s, frozen=frozen)
        if repair and frozen:
            raise InvalidInput("a store is repaired by writing; open it without `frozen` for that")
        if repair:
            store._repair()
        store._handle.db()
        return store

    def _open(self) -> Database:
        if self._frozen:
            require(self.directory)
        elif claim(self.directory, DATABASE) < VERSION:
            take_over(self.directory, timeout_s=self._timeout_s)
        self._signal = ChangeSignal(self.directory, writable=not self._frozen)
        return Database(self.directory, timeout_s=self._timeout_s, frozen=self._frozen)

    def _repair(self) -> None:
        if claim(self.directory, DATABASE) < VERSION:
            take_over(self.directory, timeout_s=self._timeout_s)
        with self._handle.failing:
            found = damage(self.directory / DATABASE)
        if found:
            self.repaired = f"{found}; moved to {str(set_aside(self.directory))!r}"
            _log.warning("the store %s was damaged: %s", self.directory, self.repaired)
            claim(self.directory, DATABASE)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with self._handle.failing:
            return work(self._handle.db().connection())

    def _write(self, work: Callable[[Connection], T]) -> T:
        self._check_not_frozen()
        try:
            with self._handle.failing:
                return self._handle.db().write(work)
        finally:
            # Also after a failure: one may have come when the change was made already.
            if self._signal is not None:
                self._signal.bump()

    def _check_not_frozen(self) -> None:
        if self._frozen:
            raise StoreUnavailable(
                f"the store {str(self.directory)!r} is frozen, so that nothing is kept; open it "
                "without `frozen` to change it"
            )

    # Writing -------------------------------------------------------------------------------

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        The record just written is never evicted. `over`: number of the change whose record this
        one is to replace, 0 for none; if another is there, nothing is done.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        record = checked(record)
        return self._write(lambda c: self._put(c, record, bounds, over))

    def _put(self, connection: Connection, record: Record, bounds: Bounds, over: int | None) -> Put:
        last = table.last_change(connection)
        before = table.there(connection, record.tenant, record.id)
        if over is not None and over != (0 if before is None else before.change):
            return Put(last, replaced=False, evicted=(), written=False)
        table.write(connection, replace(record, change=last + 1), before)
        gone = make_room(table.DiskTables(connection), record, bounds)
        told: list[table.Told] = [(record.tenant, record.id, "put")]
        told += [(name, known, "remove") for name, known in gone]
        number = table.tell(connection, last, told, kept=self._kept_changes)
        others = by_tenant(gone)
        return Put(number, before is not None, others.pop(record.tenant, ()), others)

    def put_many(self, records: Iterable[Record]) -> None:
        """Write records within no bounds, all of them in one transaction: a tenth of the time."""
        checked_records = [checked(record) for record in records]
        for record in checked_records:
            check_record(record)

        def work(connection: Connection) -> None:
            for record in checked_records:
                self._put(connection, record, UNBOUNDED, None)

        self._write(work)

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""
        self._write(lambda c: table.add_uses(c, tenant, uses, now_s=now_s))

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""

        def work(connection: Connection) -> int:
            gone = table.drop(connection, tenant, ids)
            self._tell_gone(connection, [(tenant, known) for known in gone])
            return len(gone)

        self._decoded.forget()
        return self._write(work)

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""

        def work(connection: Connection) -> int:
            gone = table.wipe(connection, tenant)
            self._tell_gone(connection, gone)
            return len(gone)

        self._decoded.forget()
        return self._write(work)

    def _tell_gone(self, connection: Connection, gone: Iterable[tuple[str, str]]) -> None:
        last = table.last_change(connection)
        told: list[table.Told] = [(name, known, "remove") for name, known in gone]
        table.tell(connection, last, told, kept=self._kept_changes)

    # Reading -------------------------------------------------------------------------------

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the row is not what was written; the record is set aside.
        """
        row = self._read(lambda c: table.by_id(c, tenant, id))
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
        rows = self._read(lambda c: table.by_key(c, tenant, key))
        return [record for record in self._readable(rows, self._record) if key in record.keys]

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        # Not kept as they were read: all records at once would push out the ones in use.
        return self._readable(self._read(lambda c: table.after(c, tenant, -1, -1)))

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time; see `ports.PlanStore`."""
        last = -1
        while rows := self._read(partial(table.after, tenant=tenant, change=last, limit=size)):
            last = rows[-1].change
            if page := self._readable(rows):
                yield page

    def _record(self, row: table.DiskRow) -> Record:
        known = self._decoded.get(row.checksum)
        if known is not None and (known.tenant, known.id) == (row.tenant, row.id):
            return known
        record = row.record()
        self._decoded.keep(row.checksum, record)
        return record

    def _readable(
        self,
        rows: Iterable[table.DiskRow],
        record_of: Callable[[table.DiskRow], Record] = table.DiskRow.record,
    ) -> list[Record]:
        found = []
        for row in rows:
            try:
                found.append(record_of(row))
            except ValueError:
                _log.warning(
                    "record %r of tenant %r in %s is not what was written; it is set aside",
                    row.id,
                    row.tenant,
                    self.directory,
                )
                self._set_aside(row)
        return found

    def _set_aside(self, row: table.DiskRow) -> None:
        def work(connection: Connection) -> None:
            if table.drop_row(connection, row):  # else another process was faster
                place = f"record/{row.id}"
                notes.keep_damaged(connection, row.tenant, place, row.text())
                self._tell_gone(connection, [(row.tenant, row.id)])

        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError):
            self._write(work)

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        return self._one("SELECT count(*) FROM damaged WHERE tenant = ?", tenant)

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        query = "SELECT id FROM labels WHERE tenant = ? AND label = ?"
        return sorted(
            known for (known,) in self._read(lambda c: c.execute(query, (tenant, label)).fetchall())
        )

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self.room(tenant).entries

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        return self._read(lambda c: table.room(c, tenant))

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        query = "SELECT id, uses, last_s, worth FROM records WHERE tenant = ?"
        rows = self._read(lambda c: c.execute(query, (tenant,)).fetchall())
        return {known: Use(*use) for known, *use in rows}

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        rows = self._read(lambda c: c.execute("SELECT tenant FROM tenants").fetchall())
        return sorted(tenant for (tenant,) in rows)

    def _one(self, query: str, *values: object) -> int:
        return int(self._read(lambda c: c.execute(query, values).fetchone()[0]))

    # Changes -------------------------------------------------------------------------------

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        A change by a process that was killed before its call returned is seen after
        `change_signal.RECHECK_S`, every other one at once.
        """
        db = self._handle.db()
        signal = None if self._signal is None else self._signal.read()
        now = time.monotonic()
        known, looked, number = self._known
        if signal is None or signal != known or not 0 <= now - looked < RECHECK_S:
            with self._handle.failing:
                db.refresh()
                number = table.last_change(db.connection())
            self._known = (signal, now, number)
        return number

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        return self._read(lambda c: table.changes(c, since))

    # Notes and leases ----------------------------------------------------------------------

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the note is set aside.
        """
        sealed = self._read(lambda c: notes.read(c, tenant, name))
        if sealed is None:
            return None
        try:
            return unseal(sealed.encode())
        except ValueError as error:
            with contextlib.suppress(StoreError):
                self._write(lambda c: notes.set_aside(c, tenant, name, sealed))
            raise StoreCorrupt(
                f"note {name!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and begins anew"
            ) from error

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction; keep `change` short: all wait.

        A note that is not what was written is set aside with a warning, and `change` gets None.
        """
        if not self._write(lambda c: notes.update(c, tenant, name, change)):
            _log.warning(
                "note %r of tenant %r is not what was written; it is set aside, and begins anew",
                name,
                tenant,
            )

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        return self._write(
            lambda c: notes.take_lease(c, tenant, name, holder, ttl_s=ttl_s, now_s=now_s)
        )

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        self._write(lambda c: notes.end_lease(c, tenant, name, holder))

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        self._write(table.measure)
        with self._handle.failing:
            self._handle.db().shrink()

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self._handle.close()
        if self._signal is not None:
            self._signal.close()
