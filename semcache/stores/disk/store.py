"""A store on disk that many processes share: diskcache, and text alone.

Rows, all of them text; each part of a key is escaped, so that no tenant can spell another's keys:

    r/<tenant>/<id>                      the record, sealed
    k/<tenant>/<key>/<id>                the record's row: what answers to a key
    l/<tenant>/<label>/<id>              the id: what carries a label
    m/<tenant>/<name>                    a note, sealed
    c/<number>                           a change: [tenant, id, kind]
    bad/<tenant>/<id>/<number>           a record or note that was not what was written

and the rows of `ledger`: n, t, o, u, f. `records` reads and writes the records,
`changes` the changes, `eviction` makes room; `handle` is what they stand on.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from semcache.errors import InvalidInput, StoreCorrupt
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.stores.disk import ledger
from semcache.stores.disk.changes import DiskChanges
from semcache.stores.disk.eviction import evict
from semcache.stores.disk.handle import DatabaseHandle
from semcache.stores.disk.places import last_part, prefix, row, unescape
from semcache.stores.disk.records import DiskRecords
from semcache.stores.eviction import unused
from semcache.stores.records import check_record, check_text, seal, unseal

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans
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
        self._opened = DatabaseHandle(
            self.directory,
            timeout_s=busy_timeout_s,
            text="text to be looked up",
            frozen=frozen,
            ticking=True,
        )
        self._changes = DiskChanges(self._opened, kept=kept_changes)
        self._records = DiskRecords(self._opened, self._changes)

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

        `repair` reads the whole database first; if it is damaged, it is moved to a folder
        `damaged-<n>` beside and an empty one is begun. No other process may have it open then.
        `frozen`: the directory is read and not a byte of it is written, by whatever happens.

        Raises:
            ForeignDirectory: the directory holds what semcache did not write.
            NewerFormat: a later semcache wrote it.
            StoreUnavailable: it is locked, full or read-only.
            StoreCorrupt: it is damaged, and `repair` is False.
        """
        store = cls(directory, busy_timeout_s=busy_timeout_s, frozen=frozen)
        if repair and frozen:
            raise InvalidInput("a store is repaired by writing; open it without `frozen` for that")
        if repair:
            store.repaired = store._opened.repair()
        store._opened.db()
        return store

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        The record just written is never evicted. `over`: number of the change whose record this
        one is to replace, 0 for none; if another is there, nothing is done.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        with self._opened.writing() as db:
            there = None if over is None else self._records.there(db, record.tenant, record.id)
            if over is not None and over != (0 if there is None else there.change):
                last = self._changes.last(db)
                return Put(last, replaced=False, evicted=(), written=False)
            number, had = self._records.write(db, record)
            gone = evict(db, self._records, record, bounds)
            self._changes.tell(db, gone, "remove")
            own = tuple(known for name, known in gone if name == record.tenant)
            return Put(number + len(gone), had, own, _elsewhere(gone, record.tenant))

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""
        with self._opened.writing() as db:
            read = partial(self._records.there, db, tenant)
            ledger.add_uses(db, tenant, uses, now_s, read=read)

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        with self._opened.failing:
            known = ledger.uses(self._opened.db(), tenant)
        return {record.id: known.get(record.id) or unused(record) for record in self.scan(tenant)}

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        with self._opened.failing:
            db = self._opened.db()
            return ledger.total(db) if tenant is None else ledger.room(db, tenant)

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        with self._opened.writing() as db:
            return ledger.lease(db, tenant, name, holder, ttl_s=ttl_s, now_s=now_s)

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        with self._opened.writing() as db:
            ledger.release(db, tenant, name, holder)

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the record is set aside.
        """
        return self._records.get(tenant, id)

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none.

        A record that is not what was written is set aside with a warning.
        """
        return self._records.find(tenant, key)

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        return self._records.scan(tenant)

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time; see `ports.PlanStore`."""
        return self._records.pages(tenant, size)

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        with self._opened.failing:
            return self._opened.db().count_under(prefix("bad", tenant))

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        with self._opened.writing() as db:
            return self._records.remove(db, tenant, ids)

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        with self._opened.failing:
            rows = self._opened.db().under(prefix("l", tenant, label))
            return sorted(value.decode(errors="replace") for _, value in rows)

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        with self._opened.failing:
            return ledger.room(self._opened.db(), tenant).entries

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        with self._opened.failing:
            return sorted(unescape(name.partition("/")[2]) for name in self._opened.db().keys("n/"))

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        A change by a process that was killed before its call returned is seen after
        `change_signal.RECHECK_S`, every other one at once.
        """
        return self._changes.latest()

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        return self._changes.after(since)

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the note is set aside.
        """
        place = row("m", tenant, name)
        with self._opened.failing:
            sealed = self._opened.db().content(place)
        try:
            return None if sealed is None else unseal(sealed)
        except ValueError as error:
            self._records.set_aside(tenant, place, sealed or b"")
            raise StoreCorrupt(
                f"note {name!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and begins anew"
            ) from error

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        with self._opened.writing() as db:
            self._write_note(db, row("m", tenant, name), text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction; keep `change` short: all wait.

        A note that is not what was written is set aside with a warning, and `change` gets None.
        """
        with self._opened.writing() as db:
            try:
                note = self.get_note(tenant, name)
            except StoreCorrupt as error:
                _log.warning("%s", error)
                note = None
            self._write_note(db, row("m", tenant, name), change(note))

    def _write_note(self, db: "Database", place: str, text: str | None) -> None:
        if text is None:
            db.drop(place)
        else:
            check_text(place, text)
            db.set(place, seal(text))

    def clear(self, tenant: str | None = None) -> int:
        """Remove all records and notes of the tenant, or of every tenant (None)."""
        with self._opened.writing() as db:
            if tenant is not None:
                return self._clear(db, tenant)
            count = sum(self._clear(db, name) for name in self.tenants())
            for kind in ("r", "k", "l", "o", "u", "m", "n", "t", "bad"):  # of tenants not counted
                db.drop_under(f"{kind}/")
            return count

    def _clear(self, db: "Database", tenant: str) -> int:
        ids = [(tenant, last_part(name)) for name in db.keys(prefix("r", tenant))]
        self._changes.tell(db, ids, "remove")
        ledger.clear(db, tenant)
        for kind in ("r", "k", "l", "m", "bad"):
            db.drop_under(prefix(kind, tenant))
        return len(ids)

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        self._opened.check_not_frozen()
        with self._opened.failing:
            self._opened.db().shrink()

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self._opened.close()


def _elsewhere(gone: Sequence[tuple[str, str]], tenant: str) -> dict[str, tuple[str, ...]]:
    others = sorted({name for name, _ in gone} - {tenant})
    return {name: tuple(known for owner, known in gone if owner == name) for name in others}
