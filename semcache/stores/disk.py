"""A store on disk that many processes share: diskcache, and text alone.

Rows, all of them text; each part of a key is escaped, so that no tenant can spell another's keys:

    r/<tenant>/<id>                      the record, sealed
    k/<tenant>/<key>/<id>                the record's row: what answers to a key
    l/<tenant>/<label>/<id>              the id: what carries a label
    o/<tenant>/<created>/<change>/<id>   the id: the order of eviction
    m/<tenant>/<name>                    a note, sealed
    n/<tenant>                           how many records the tenant has, sealed
    c/<number>                           a change: [tenant, id, kind]
    bad/<tenant>/<id>/<number>           a record or note that was not what was written
"""

import contextlib
import json
import logging
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.ports import Change, Put, Record
from semcache.stores.codec import Decoder, check_record, check_text, decode, encode, seal, unseal
from semcache.stores.directory import DATABASE, claim, set_aside

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
    ) -> None:
        self.directory = Path(directory).absolute()
        """Where it is kept."""
        self.repaired = ""
        """What `open(repair=True)` found damaged, and where that is now; empty if nothing."""
        self._busy_timeout_s = busy_timeout_s
        self._kept_changes = kept_changes
        self._opening = threading.Lock()
        self._decoder = Decoder(KEPT_RECORDS)
        self._database: Database | None = None
        self._closed = False
        self._guard = _Failing(self.directory)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        repair: bool = False,
    ) -> "DiskStore":
        """Return the store in `directory`, made if the directory is missing or empty, and opened.

        `repair` reads the whole database first; if it is damaged, it is moved to a folder
        `damaged-<n>` beside and an empty one is begun. No other process may have it open then.

        Raises:
            ForeignDirectory: the directory holds what semcache did not write.
            NewerFormat: a later semcache wrote it.
            StoreUnavailable: it is locked, full or read-only.
            StoreCorrupt: it is damaged, and `repair` is False.
        """
        store = cls(directory, busy_timeout_s=busy_timeout_s)
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

        with self._opening, self._failing():
            if self._database is None:
                claim(self.directory)
                self._database = Database(self.directory, timeout_s=self._busy_timeout_s)
            return self._database

    def _failing(self) -> "_Failing":
        return self._guard

    @contextmanager
    def _writing(self) -> "Iterator[Database]":
        db = self._db()
        with self._failing(), db.writing():
            yield db

    def put(self, record: Record, *, max_entries: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the tenant's oldest over `max_entries`.

        The record just written is never evicted.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        with self._writing() as db:
            replaced = self._drop(db, record.tenant, record.id)
            count = self._add_count(db, record.tenant, 1)
            number = self._tell(db, record.tenant, [record.id], "put")
            record = replace(record, change=number)
            home = _row("r", record.tenant, record.id)
            db.set(home, encode(record))
            db.point(_pointers(record, home))
            surplus = 0 if max_entries is None else count - max(max_entries, 1)
            evicted = self._evict(db, record, surplus)
            return Put(number + len(evicted), replaced, evicted)

    def _evict(self, db: "Database", record: Record, surplus: int) -> tuple[str, ...]:
        if surplus <= 0:
            return ()
        oldest = list(db.under(_prefix("o", record.tenant), limit=surplus + 1))
        aged = [(row, value.decode(errors="replace")) for row, value in oldest]
        evicted = [(row, known) for row, known in aged if known != record.id][:surplus]
        for row, known in evicted:
            self._drop(db, record.tenant, known)
            db.drop(row)  # still there if it was damaged and led to no record
        ids = tuple(known for _, known in evicted)
        self._tell(db, record.tenant, ids, "remove")
        return ids

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the record is set aside.
        """
        row = _row("r", tenant, id)
        with self._failing():
            sealed = self._db().content(row)
        if sealed is None:
            return None
        try:
            return _at_home(row, self._decoder.decode(sealed))
        except ValueError as error:
            self._set_aside(tenant, row, sealed)
            raise StoreCorrupt(
                f"record {id!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and the prompt is planned again"
            ) from error

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none.

        A record that is not what was written is set aside with a warning.
        """
        with self._failing():
            rows = self._db().pointed(_prefix("k", tenant, key))
        home = _prefix("r", tenant)  # a damaged pointer could lead into another tenant
        rows = [(row, sealed) for row, sealed in rows if row.startswith(home)]
        readable = self._readable(tenant, rows, self._decoder.decode)
        found = [record for record in readable if key in record.keys]
        found.sort(key=lambda record: -record.change)
        return found

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""
        with self._failing():
            rows = self._db().under(_prefix("r", tenant))
            # Not by the decoder: all records at once would push out the ones in use.
            return sorted(self._readable(tenant, rows, decode), key=lambda record: record.change)

    def _readable(
        self,
        tenant: str,
        rows: Iterable[tuple[str, bytes]],
        decoded: Callable[[bytes], Record],
    ) -> Iterator[Record]:
        damaged: list[tuple[str, bytes]] = []
        for row, sealed in rows:
            try:
                yield _at_home(row, decoded(sealed))
            except ValueError:
                damaged.append((row, sealed))
        for row, sealed in damaged:  # only now: a write would disturb the read going on
            _log.warning("%s in %s is not what was written; it is set aside", row, self.directory)
            self._set_aside(tenant, row, sealed)

    def _set_aside(self, tenant: str, row: str, sealed: bytes) -> None:
        # Where even that cannot be written, the record stays, and is found damaged again.
        with contextlib.suppress(StoreError), self._writing() as db:
            if db.content(row) != sealed:
                return  # another process was faster, or wrote a new one
            bad = f"bad/{row.partition('/')[2]}/{self._last(db)}"
            db.set(bad, sealed.decode(errors="backslashreplace"))
            if row.startswith("m/"):
                db.drop(row)
                return
            known = _unescape(row.rpartition("/")[2])
            self._drop(db, tenant, known)
            self._tell(db, tenant, [known], "remove")

    def set_aside_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant were found damaged since `clear`."""
        with self._failing():
            return self._db().count_under(_prefix("bad", tenant))

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        with self._writing() as db:
            gone = [known for known in ids if self._drop(db, tenant, known)]
            self._tell(db, tenant, gone, "remove")
        return len(gone)

    def _drop(self, db: "Database", tenant: str, id: str) -> bool:  # noqa: A002 - the word of the record
        home = _row("r", tenant, id)
        sealed = db.content(home)
        if sealed is None:
            return False
        try:
            record = _at_home(home, self._decoder.decode(sealed))
            db.drop(*(row for row, _ in _pointers(record, home)))
        except ValueError:
            db.drop_pointers(_prefix("k", tenant), home)
            db.drop_pointers(_prefix("l", tenant), id)
            db.drop_pointers(_prefix("o", tenant), id)
        self._add_count(db, tenant, -1)
        db.drop(home)
        return True

    def _add_count(self, db: "Database", tenant: str, more: int) -> int:
        # Called before the rows change, since a damaged count is taken from them.
        count = self._count(db, tenant) + more
        if count > 0:
            db.set(_row("n", tenant), seal(str(count)))
        else:
            db.drop(_row("n", tenant))
        return count

    def _count(self, db: "Database", tenant: str) -> int:
        sealed = db.content(_row("n", tenant))
        try:
            return 0 if sealed is None else int(unseal(sealed))
        except ValueError:
            # Counted anew: a count that is off by a bit would evict what need not go.
            return db.count_under(_prefix("r", tenant))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        with self._failing():
            rows = self._db().under(_prefix("l", tenant, label))
            return sorted(value.decode(errors="replace") for _, value in rows)

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        with self._failing():
            return self._count(self._db(), tenant)

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        with self._failing():
            return sorted(_unescape(row.partition("/")[2]) for row in self._db().keys("n/"))

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed."""
        with self._failing():
            return self._last(self._db())

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        with self._failing():
            db = self._db()
            last = self._last(db)
            rows = db.after(_number_row(since), "c/") if since < last else []
        if since == last:
            return []
        changes = [_change(row, value) for row, value in rows]
        if not changes or changes[0] is None or changes[0].number != since + 1:
            return None
        told = [change for change in changes if change is not None]
        return told if len(told) == len(changes) else None

    def _last(self, db: "Database") -> int:
        row = db.last("c/") or "c/0"
        try:
            return int(row[2:])
        except ValueError as error:
            raise StoreCorrupt(
                f"the store {str(self.directory)!r} numbers a change {row!r}; restore it from a "
                "copy, or start anew in another directory"
            ) from error

    def _tell(
        self, db: "Database", tenant: str, ids: Sequence[str], kind: Literal["put", "remove"]
    ) -> int:
        """Note one change for each of `ids`; return the number of the last."""
        last = self._last(db)
        told = (json.dumps([tenant, known, kind], separators=(",", ":")) for known in ids)
        db.point((_number_row(number), text) for number, text in enumerate(told, last + 1))
        last += len(ids)
        db.drop_until("c/", _number_row(last - self._kept_changes))
        return last

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the note is set aside.
        """
        row = _row("m", tenant, name)
        with self._failing():
            sealed = self._db().content(row)
        try:
            return None if sealed is None else unseal(sealed)
        except ValueError as error:
            self._set_aside(tenant, row, sealed or b"")
            raise StoreCorrupt(
                f"note {name!r} of tenant {tenant!r} is not what was written: {error}; "
                "it is set aside, and begins anew"
            ) from error

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        with self._writing() as db:
            self._write_note(db, _row("m", tenant, name), text)

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
            self._write_note(db, _row("m", tenant, name), change(note))

    def _write_note(self, db: "Database", row: str, text: str | None) -> None:
        if text is None:
            db.drop(row)
        else:
            check_text(row, text)
            db.set(row, seal(text))

    def clear(self, tenant: str | None = None) -> int:
        """Remove all records and notes of the tenant, or of every tenant (None)."""
        with self._writing() as db:
            if tenant is not None:
                return self._clear(db, tenant)
            count = sum(self._clear(db, name) for name in self.tenants())
            for kind in ("r", "k", "l", "o", "m", "n", "bad"):  # of tenants without a count
                db.drop_under(f"{kind}/")
            return count

    def _clear(self, db: "Database", tenant: str) -> int:
        ids = [_unescape(row.rpartition("/")[2]) for row in db.keys(_prefix("r", tenant))]
        self._tell(db, tenant, ids, "remove")
        for kind in ("r", "k", "l", "o", "m", "bad"):
            db.drop_under(_prefix(kind, tenant))
        db.drop(_row("n", tenant))
        return len(ids)

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self._closed = True
        if self._database is not None:
            self._database.close()


class _Failing:
    """Turns what SQLite raises inside into an error of ours. One serves all: it keeps no state."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            from semcache.stores.database import failure  # noqa: PLC0415 - imports diskcache

            raise failure(error, self._directory) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(
                f"text to be looked up holds a lone surrogate at {error.start}; "
                "expected valid Unicode text"
            ) from error


def _row(kind: str, *parts: str) -> str:
    return "/".join((kind, *map(_escape, parts)))


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F") or "%"  # an empty part would have no place


def _unescape(part: str) -> str:
    return "" if part == "%" else part.replace("%2F", "/").replace("%25", "%")


def _prefix(kind: str, *parts: str) -> str:
    return _row(kind, *parts) + "/"


def _number_row(number: int) -> str:
    return f"c/{number:016d}"


def _pointers(record: Record, home: str) -> Iterator[tuple[str, str]]:
    """Yield the rows that lead to `record`, whose own row is `home`, each with its value."""
    for key in dict.fromkeys(record.keys):
        yield _row("k", record.tenant, key, record.id), home
    for label in dict.fromkeys(record.labels):
        yield _row("l", record.tenant, label, record.id), record.id
    age = f"{_sortable(record.created_s)}/{record.change:016d}"
    yield f"o/{_escape(record.tenant)}/{age}/{_escape(record.id)}", record.id


def _sortable(number: float) -> str:
    """Return 16 hex digits that sort as the numbers do, negative ones too."""
    bits: int = struct.unpack(">Q", struct.pack(">d", number))[0]
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"


def _at_home(row: str, record: Record) -> Record:
    """Return `record` if `row` is its own; else ValueError."""
    if _row("r", record.tenant, record.id) != row:
        raise ValueError(f"it is record {record.id!r} of tenant {record.tenant!r}")
    return record


def _change(row: str, value: bytes) -> Change | None:
    try:
        match json.loads(value):
            case [str(tenant), str(id), "put" | "remove" as kind]:
                return Change(int(row[2:]), tenant, id, kind)
            case _:
                return None
    except ValueError:
        return None
