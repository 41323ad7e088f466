"""A store on disk that many processes share: diskcache, and text alone.

Rows, all of them text; each part of a key is escaped, so that no tenant can spell another's keys:

    r/<tenant>/<id>                      the record, sealed
    k/<tenant>/<key>/<id>                the record's row: what answers to a key
    l/<tenant>/<label>/<id>              the id: what carries a label
    m/<tenant>/<name>                    a note, sealed
    c/<number>                           a change: [tenant, id, kind]
    bad/<tenant>/<id>/<number>           a record or note that was not what was written

and the rows of `ledger`: n, t, o, u, f.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.forks import Lock
from semcache.ports import UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.stores import ledger
from semcache.stores.codec import Decoder, check_record, check_text, decode, encode, seal, unseal
from semcache.stores.directory import DATABASE, claim, require, set_aside
from semcache.stores.failing import Failing
from semcache.stores.frozen_database import FrozenDatabase
from semcache.stores.places import last_part, numbered, prefix, row, unescape
from semcache.stores.reads import Reads
from semcache.stores.ticks import RECHECK_S, Ticks
from semcache.stores.worth import largest, replaced, surplus, unused

if TYPE_CHECKING:
    from semcache.stores.database import Database

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans
KEPT_RECORDS = 1_000  # decoded records kept in memory; who serves them keeps what it made of them
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
        self._busy_timeout_s = busy_timeout_s
        self._kept_changes = kept_changes
        self._frozen = frozen
        self._opening = Lock()
        self._decoder = Decoder(KEPT_RECORDS)
        self._database: Database | None = None
        self._ticks: Ticks | None = None
        self._known: tuple[bytes | None, float, int] = (None, 0.0, 0)
        """The tick at which the last change was read, when that was, and its number."""
        self._closed = False
        self._guard = Failing(self.directory, text="text to be looked up")

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
            store._repair()
        store._db()
        return store

    def _repair(self) -> None:
        from semcache.stores.database import damage  # noqa: PLC0415 - imports diskcache

        claim(self.directory)
        with self._failing():
            found = damage(self.directory / DATABASE)
        if found:
            self.repaired = f"{found}; moved to {str(set_aside(self.directory))!r}"
            _log.warning("the store %s was damaged: %s", self.directory, self.repaired)

    def _db(self) -> "Database":
        if self._closed:
            raise StoreUnavailable(f"the store {str(self.directory)!r} is closed; open a new one")
        return self._opened() if self._database is None else self._database

    def _opened(self) -> "Database":
        from semcache.stores.database import Database  # noqa: PLC0415 - imports diskcache

        if self._frozen:
            return self._opened_frozen()
        with self._opening, self._failing():
            if self._database is None:
                claim(self.directory)
                self._ticks = Ticks(self.directory)
                self._database = Database(self.directory, timeout_s=self._busy_timeout_s)
            return self._database

    def _opened_frozen(self) -> "Database":
        with self._opening, self._failing():
            if self._database is None:
                require(self.directory)
                self._ticks = Ticks(self.directory, writable=False)
                database = FrozenDatabase(self.directory, timeout_s=self._busy_timeout_s)
                # It reads as a database does, and nothing else is asked of it once this is frozen.
                self._database = cast("Database", database)
            return self._database

    def _failing(self) -> Failing:
        return self._guard

    @contextmanager
    def _writing(self) -> "Iterator[Database]":
        db = self._db()
        self._check_not_frozen()
        with self._failing():
            with db.writing():
                yield db
            if self._ticks is not None:
                self._ticks.strike()

    def _check_not_frozen(self) -> None:
        if self._frozen:
            raise StoreUnavailable(
                f"the store {str(self.directory)!r} is frozen, so that nothing is kept; open it "
                "without `frozen` to change it"
            )

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        The record just written is never evicted. `over`: number of the change whose record this
        one is to replace, 0 for none; if another is there, nothing is done.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        with self._writing() as db:
            there = None if over is None else self._there(db, record.tenant, record.id)
            if over is not None and over != (0 if there is None else there.change):
                return Put(self._last(db), replaced=False, evicted=(), written=False)
            had, use = self._drop(db, record.tenant, record.id)
            number = self._tell(db, [(record.tenant, record.id)], "put")
            record = replace(record, change=number)
            sealed = encode(record)
            ledger.enter(db, record, unused(record) if use is None else replaced(use, record))
            home = row("r", record.tenant, record.id)
            db.set(home, sealed)
            db.point(_pointers(record, home))
            gone = self._evict(db, record, bounds)
            own = tuple(known for name, known in gone if name == record.tenant)
            return Put(number + len(gone), had, own, _elsewhere(gone, record.tenant))

    def _evict(self, db: "Database", record: Record, bounds: Bounds) -> list[tuple[str, str]]:
        """Make room within `bounds`; return tenant and id of what went, in order."""
        gone: list[tuple[str, str]] = []
        own = (bounds.tenant_entries, bounds.tenant_bytes)
        while own != (None, None) and surplus(ledger.room(db, record.tenant), *own):
            if not self._evict_from(db, [record.tenant], record, gone):
                break
        every = (bounds.entries, bounds.bytes)
        while every != (None, None) and surplus(kept := ledger.total(db), *every):
            if not self._evict_from(
                db, largest(ledger.rooms_of_all(db), kept, bounds), record, gone
            ):
                break
        self._tell(db, gone, "remove")
        return gone

    def _evict_from(
        self, db: "Database", tenants: Sequence[str], record: Record, gone: list[tuple[str, str]]
    ) -> bool:
        """Evict one record of the first of `tenants` that has one; return whether one had."""
        for name in tenants:
            beside = record.id if name == record.tenant else None
            while (known := ledger.least(db, name, beside=beside)) is not None:
                there, _ = self._drop(db, name, known)
                if there:
                    gone.append((name, known))
                    return True
                ledger.lose(db, name, known)  # an order that was damaged, and led to no record
        return False

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""
        with self._writing() as db:
            read = partial(self._there, db, tenant)
            ledger.add_uses(db, tenant, uses, now_s, read=read)

    def _there(self, db: "Database", tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None; a damaged one is told when it is read, and not here."""
        home = row("r", tenant, id)
        sealed = db.content(home)
        with contextlib.suppress(ValueError):
            return None if sealed is None else _at_home(home, self._decoder.decode(sealed))
        return None

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""
        with self._failing():
            known = ledger.uses(self._db(), tenant)
        return {record.id: known.get(record.id) or unused(record) for record in self.scan(tenant)}

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        with self._failing():
            db = self._db()
            return ledger.total(db) if tenant is None else ledger.room(db, tenant)

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        with self._writing() as db:
            return ledger.lease(db, tenant, name, holder, ttl_s=ttl_s, now_s=now_s)

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        with self._writing() as db:
            ledger.release(db, tenant, name, holder)

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the record is set aside.
        """
        place = row("r", tenant, id)
        with self._failing():
            sealed = self._db().content(place)
        if sealed is None:
            return None
        try:
            return _at_home(place, self._decoder.decode(sealed))
        except ValueError as error:
            self._set_aside(tenant, place, sealed)
            raise StoreCorrupt(
                f"record {id!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and the prompt is planned again"
            ) from error

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none.

        A record that is not what was written is set aside with a warning.
        """
        with self._failing():
            rows = self._db().pointed(prefix("k", tenant, key))
        home = prefix("r", tenant)  # a damaged pointer could lead into another tenant
        rows = [(place, sealed) for place, sealed in rows if place.startswith(home)]
        readable = self._readable(tenant, rows, self._decoder.decode)
        found = [record for record in readable if key in record.keys]
        found.sort(key=lambda record: -record.change)
        return found

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        with self._failing():
            rows = self._db().under(prefix("r", tenant))
            # Not by the decoder: all records at once would push out the ones in use.
            return sorted(self._readable(tenant, rows, decode), key=lambda record: record.change)

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
            _log.warning("%s in %s is not what was written; it is set aside", place, self.directory)
            self._set_aside(tenant, place, sealed)

    def _set_aside(self, tenant: str, place: str, sealed: bytes) -> None:
        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError), self._writing() as db:
            if db.content(place) != sealed:
                return  # another process was faster, or wrote a new one
            bad = f"bad/{place.partition('/')[2]}/{self._last(db)}"
            db.set(bad, sealed.decode(errors="backslashreplace"))
            if place.startswith("m/"):
                db.drop(place)
                return
            known = last_part(place)
            self._drop(db, tenant, known)
            self._tell(db, [(tenant, known)], "remove")

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        with self._failing():
            return self._db().count_under(prefix("bad", tenant))

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        with self._writing() as db:
            gone = [(tenant, known) for known in ids if self._drop(db, tenant, known)[0]]
            self._tell(db, gone, "remove")
        return len(gone)

    def _drop(self, db: "Database", tenant: str, id: str) -> tuple[bool, Use | None]:  # noqa: A002 - the word of the record
        """Forget a record; return whether it was there, and its use if that can be told."""
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

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        with self._failing():
            rows = self._db().under(prefix("l", tenant, label))
            return sorted(value.decode(errors="replace") for _, value in rows)

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        with self._failing():
            return ledger.room(self._db(), tenant).entries

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        with self._failing():
            return sorted(unescape(name.partition("/")[2]) for name in self._db().keys("n/"))

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        A change by a process that was killed before its call returned is seen after
        `ticks.RECHECK_S`, every other one at once.
        """
        db = self._db()
        tick = None if self._ticks is None else self._ticks.read()
        now = time.monotonic()
        known, looked, number = self._known
        if tick is None or tick != known or not 0 <= now - looked < RECHECK_S:
            with self._failing():
                db.refresh()
                number = self._last(db)
            self._known = (tick, now, number)
        return number

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        with self._failing():
            db = self._db()
            last = self._last(db)
            rows = db.after(numbered(since), "c/") if since < last else []
        if since == last:
            return []
        changes = [_change(place, value) for place, value in rows]
        if not changes or changes[0] is None or changes[0].number != since + 1:
            return None
        told = [change for change in changes if change is not None]
        return told if len(told) == len(changes) else None

    def _last(self, db: Reads) -> int:
        place = db.last("c/") or "c/0"
        try:
            return int(place[2:])
        except ValueError as error:
            raise StoreCorrupt(
                f"the store {str(self.directory)!r} numbers a change {place!r}; restore it from a "
                "copy, or start anew in another directory"
            ) from error

    def _tell(
        self, db: "Database", ids: Sequence[tuple[str, str]], kind: Literal["put", "remove"]
    ) -> int:
        """Note one change for each of `ids`, tenant and id; return the number of the last."""
        last = self._last(db)
        told = (json.dumps([*known, kind], separators=(",", ":")) for known in ids)
        db.point((numbered(number), text) for number, text in enumerate(told, last + 1))
        last += len(ids)
        db.drop_until("c/", numbered(last - self._kept_changes))
        return last

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the note is set aside.
        """
        place = row("m", tenant, name)
        with self._failing():
            sealed = self._db().content(place)
        try:
            return None if sealed is None else unseal(sealed)
        except ValueError as error:
            self._set_aside(tenant, place, sealed or b"")
            raise StoreCorrupt(
                f"note {name!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and begins anew"
            ) from error

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        with self._writing() as db:
            self._write_note(db, row("m", tenant, name), text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction; keep `change` short: all wait.

        A note that is not what was written is set aside with a warning, and `change` gets None.
        """
        with self._writing() as db:
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
        with self._writing() as db:
            if tenant is not None:
                return self._clear(db, tenant)
            count = sum(self._clear(db, name) for name in self.tenants())
            for kind in ("r", "k", "l", "o", "u", "m", "n", "t", "bad"):  # of tenants not counted
                db.drop_under(f"{kind}/")
            return count

    def _clear(self, db: "Database", tenant: str) -> int:
        ids = [(tenant, last_part(name)) for name in db.keys(prefix("r", tenant))]
        self._tell(db, ids, "remove")
        ledger.clear(db, tenant)
        for kind in ("r", "k", "l", "m", "bad"):
            db.drop_under(prefix(kind, tenant))
        return len(ids)

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        self._check_not_frozen()
        with self._failing():
            self._db().shrink()

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self._closed = True
        self._ticks = None
        if self._database is not None:
            self._database.close()


def _pointers(record: Record, home: str) -> Iterator[tuple[str, str]]:
    """Yield the rows that lead to `record`, whose own row is `home`, each with its value."""
    for key in dict.fromkeys(record.keys):
        yield row("k", record.tenant, key, record.id), home
    for label in dict.fromkeys(record.labels):
        yield row("l", record.tenant, label, record.id), record.id


def _elsewhere(gone: Sequence[tuple[str, str]], tenant: str) -> dict[str, tuple[str, ...]]:
    others = sorted({name for name, _ in gone} - {tenant})
    return {name: tuple(known for owner, known in gone if owner == name) for name in others}


def _at_home(place: str, record: Record) -> Record:
    """Return `record` if `row` is its own; else ValueError."""
    if row("r", record.tenant, record.id) != place:
        raise ValueError(f"it is record {record.id!r} of tenant {record.tenant!r}")
    return record


def _change(place: str, value: bytes) -> Change | None:
    try:
        match json.loads(value):
            case [str(tenant), str(id), "put" | "remove" as kind]:
                return Change(int(place[2:]), tenant, id, kind)
            case _:
                return None
    except ValueError:
        return None
