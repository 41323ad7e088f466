"""The records of a store on disk, row by row, and what becomes of those that are damaged.

Each function and method works in the transaction of its caller where it is handed a database.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from semcache.errors import StoreCorrupt, StoreError
from semcache.ports import Record, Use
from semcache.stores.disk import ledger
from semcache.stores.disk.changes import DiskChanges
from semcache.stores.disk.handle import DatabaseHandle
from semcache.stores.disk.places import last_part, prefix, row
from semcache.stores.eviction import replaced, unused
from semcache.stores.records import CHANGE_AT, Decoder, change_of, decode, encode

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database

KEPT_RECORDS = 100  # decoded records kept in memory; who serves them keeps what it made of them

_log = logging.getLogger(__name__)


class DiskRecords:
    """Records as rows: each sealed in a place of its own, with pointers to it by key and label."""

    def __init__(self, opened: DatabaseHandle, changes: DiskChanges) -> None:
        self._opened = opened
        self._changes = changes
        self._decoder = Decoder(KEPT_RECORDS)

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the record is set aside.
        """
        place = row("r", tenant, id)
        with self._opened.failing:
            sealed = self._opened.db().content(place)
        if sealed is None:
            return None
        try:
            return _at_home(place, self._decoder.decode(sealed))
        except ValueError as error:
            self.set_aside(tenant, place, sealed)
            raise StoreCorrupt(
                f"record {id!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and the prompt is planned again"
            ) from error

    def find(self, tenant: str, key: str) -> list[Record]:
        """Return the readable records that answer to `key`, newest change first."""
        with self._opened.failing:
            rows = self._opened.db().pointed(prefix("k", tenant, key))
        home = prefix("r", tenant)  # a damaged pointer could lead into another tenant
        rows = [(place, sealed) for place, sealed in rows if place.startswith(home)]
        readable = self._readable(tenant, rows, self._decoder.decode)
        found = [record for record in readable if key in record.keys]
        found.sort(key=lambda record: -record.change)
        return found

    def scan(self, tenant: str) -> list[Record]:
        """Return every readable record of the tenant, oldest change first."""
        with self._opened.failing:
            rows = self._opened.db().under(prefix("r", tenant))
            # Not by the decoder: all records at once would push out the ones in use.
            return sorted(self._readable(tenant, rows, decode), key=lambda record: record.change)

    def pages(self, tenant: str, size: int) -> Iterator[list[Record]]:
        """Yield what `scan` returns, at most `size` records at a time."""
        with self._opened.failing:
            heads = self._opened.db().slices(prefix("r", tenant), *CHANGE_AT)
            # Rows stand by id. Those that nobody can read come first, and are set aside then.
            places = [place for _, place in sorted((change_of(head), key) for key, head in heads)]
        for start in range(0, len(places), size):
            some = places[start : start + size]
            with self._opened.failing:
                sealed = self._opened.db().contents(some)
            rows = [(place, sealed[place]) for place in some if place in sealed]
            page = [*self._readable(tenant, rows, decode)]
            if page:
                yield page

    def _readable(
        self,
        tenant: str,
        rows: Iterable[tuple[str, bytes]],
        decoded: Callable[[bytes], Record],
    ) -> Iterator[Record]:
        damaged: list[tuple[str, bytes]] = []
        for place, sealed in rows:
            try:
                yield _at_home(place, decoded(sealed))
            except ValueError:
                damaged.append((place, sealed))
        for place, sealed in damaged:  # only now: a write would disturb the read going on
            where = self._opened.directory
            _log.warning("%s in %s is not what was written; it is set aside", place, where)
            self.set_aside(tenant, place, sealed)

    def set_aside(self, tenant: str, place: str, sealed: bytes) -> None:
        """Move a damaged record or note at `place`, whose bytes are `sealed`, out of the way."""
        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError), self._opened.writing() as db:
            if db.content(place) != sealed:
                return  # another process was faster, or wrote a new one
            bad = f"bad/{place.partition('/')[2]}/{self._changes.last(db)}"
            db.set(bad, sealed.decode(errors="backslashreplace"))
            if place.startswith("m/"):
                db.drop(place)
                return
            known = last_part(place)
            self.drop(db, tenant, known)
            self._changes.tell(db, [(tenant, known)], "remove")

    def there(self, db: "Database", tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None; a damaged one is told when it is read, and not here."""
        home = row("r", tenant, id)
        sealed = db.content(home)
        with contextlib.suppress(ValueError):
            return None if sealed is None else _at_home(home, self._decoder.decode(sealed))
        return None

    def write(self, db: "Database", record: Record) -> tuple[int, bool]:
        """Write `record` over its id; return the number of the change and if one was there."""
        had, use = self.drop(db, record.tenant, record.id)
        number = self._changes.tell(db, [(record.tenant, record.id)], "put")
        record = replace(record, change=number)
        sealed = encode(record)
        ledger.enter(db, record, unused(record) if use is None else replaced(use, record))
        home = row("r", record.tenant, record.id)
        db.set(home, sealed)
        db.point(_pointers(record, home))
        return number, had

    def remove(self, db: "Database", tenant: str, ids: Sequence[str]) -> int:
        """Forget records, and tell it; return how many were there."""
        gone = [(tenant, known) for known in ids if self.drop(db, tenant, known)[0]]
        self._changes.tell(db, gone, "remove")
        return len(gone)

    def drop(self, db: "Database", tenant: str, id: str) -> tuple[bool, Use | None]:  # noqa: A002 - the word of the record
        """Forget a record, untold; return whether it was there, and its use if that can be told."""
        home = row("r", tenant, id)
        sealed = db.content(home)
        if sealed is None:
            return False, None
        try:
            record = _at_home(home, self._decoder.decode(sealed))
        except ValueError:
            db.drop_pointers(prefix("k", tenant), home)
            db.drop_pointers(prefix("l", tenant), id)
            db.drop(home)
            ledger.lose(db, tenant, id)
            return True, None
        use = ledger.leave(db, record)
        db.drop(home, *(place for place, _ in _pointers(record, home)))
        return True, use


def _pointers(record: Record, home: str) -> Iterator[tuple[str, str]]:
    """Yield the rows that lead to `record`, whose own row is `home`, each with its value."""
    for key in dict.fromkeys(record.keys):
        yield row("k", record.tenant, key, record.id), home
    for label in dict.fromkeys(record.labels):
        yield row("l", record.tenant, label, record.id), record.id


def _at_home(place: str, record: Record) -> Record:
    """Return `record` if `row` is its own; else ValueError."""
    if row("r", record.tenant, record.id) != place:
        raise ValueError(f"it is record {record.id!r} of tenant {record.tenant!r}")
    return record
