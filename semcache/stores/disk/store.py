"""A store on disk that many processes share: tables of SQLite, and text alone.

`database` has the connections and transactions, `tables` the dialect.
"""

import logging
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from semcache.errors import InvalidInput, StoreUnavailable
from semcache.ports import Record
from semcache.process.memo import Lru
from semcache.stores.disk.database import Database, DatabaseHandle, damage
from semcache.stores.disk.directory import DATABASE, VERSION, claim, require, set_aside
from semcache.stores.disk.tables import PLANS, DiskTables
from semcache.stores.disk.takeover import take_over
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.store import KEPT_CHANGES, RelationalStore
from semcache.stores.relational.tables import Tables

T = TypeVar("T")

KEPT_RECORDS = 100  # records kept in memory as they were read; who serves them keeps their entries
BUSY_TIMEOUT_S = 5.0  # seconds to wait for another writer; a write takes less than 1 ms
RECHECK_S = 0.5
"""Seconds after which a reader asks the database although it was told of no change."""
SIGNAL = "ticks"
"""File of the `ChangeSignal`."""
_SIGNAL_BYTES = 8

_log = logging.getLogger(__name__)


class DiskStore(RelationalStore):
    """Records on disk, as `ports.PlanStore` promises. Threads and processes may share a directory.

    Nothing is opened before the first use, or `open`. A write survives the end of the process as
    soon as the call returns; a power cut may take the last of them, but never a part of one.
    """

    tables = DiskTables

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        kept_changes: int = KEPT_CHANGES,
        frozen: bool = False,
    ) -> None:
        super().__init__(kept_changes=kept_changes)
        self.directory = Path(directory).absolute()
        """Where it is kept."""
        self.repaired = ""
        """What `open(repair=True)` found damaged, and where that is now; empty if nothing."""
        self._timeout_s = busy_timeout_s
        self._frozen = frozen
        self._handle = DatabaseHandle(self.directory, self._open, text="text for the store")
        self._decoded = Lru[bytes, Record](KEPT_RECORDS)
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
        elif claim(self.directory) < VERSION:
            take_over(self.directory, PLANS, timeout_s=self._timeout_s)
        self._signal = ChangeSignal(self.directory, writable=not self._frozen)
        return Database(self.directory, PLANS, timeout_s=self._timeout_s, frozen=self._frozen)

    def _repair(self) -> None:
        if claim(self.directory) < VERSION:
            take_over(self.directory, PLANS, timeout_s=self._timeout_s)
        with self._handle.failing:
            found = damage(self.directory / DATABASE)
        if found:
            self.repaired = f"{found}; moved to {str(set_aside(self.directory))!r}"
            _log.warning("the store %s was damaged: %s", self.directory, self.repaired)
            claim(self.directory)

    @property
    def where(self) -> str:
        """The directory."""
        return str(self.directory)

    def _read(self, work: Callable[[Tables], T]) -> T:
        with self._handle.failing:
            return work(DiskTables(self._handle.db().connection()))

    def _write(self, work: Callable[[Tables], T]) -> T:
        self._check_not_frozen()
        try:
            with self._handle.failing:
                return self._handle.db().write(lambda connection: work(DiskTables(connection)))
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

    def _remove(self, dropped: Callable[[Tables], list[tuple[str, str]]]) -> int:
        self._decoded.clear()
        return super()._remove(dropped)

    def _record(self, row: RecordRow) -> Record:
        known = self._decoded.get(row.checksum)
        if known is not None and (known.tenant, known.id) == (row.tenant, row.id):
            return known
        record = DiskTables.record(row)
        self._decoded.put(row.checksum, record)
        return record

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed.

        A change by a process that was killed before its call returned is seen after
        `RECHECK_S`, every other one at once.
        """
        db = self._handle.db()
        signal = None if self._signal is None else self._signal.read()
        now = time.monotonic()
        known, looked, number = self._known
        if signal is None or signal != known or not 0 <= now - looked < RECHECK_S:
            with self._handle.failing:
                db.refresh()
                number = DiskTables(db.connection()).last_change()
            self._known = (signal, now, number)
        return number

    def shrink(self) -> None:
        """Give back the room of what was removed. Cost: everything is written anew; all wait."""
        self._check_not_frozen()
        with self._handle.failing:
            self._handle.db().write(lambda connection: DiskTables(connection).measure())
        with self._handle.failing:
            self._handle.db().shrink()

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self._handle.close()
        if self._signal is not None:
            self._signal.close()


class ChangeSignal:
    """Whether a store has changed, in a quarter of a microsecond: eight bytes that processes share.

    Whoever commits a change writes random bytes into a file that all have in memory. While a reader
    finds the bytes that it found before, the last change that it read is still the last, and it
    asks no database: that would cost six microseconds and, worse, let go of the interpreter, for
    which all threads queue. The bytes are written after the commit and before the call returns.
    Only a process that is killed between the two leaves a change untold, so a reader looks for
    itself every `RECHECK_S`. Safe from several threads and processes.
    """

    def __init__(self, directory: Path, *, writable: bool = True) -> None:
        self._writable = writable
        self._bytes = _mapped(directory / SIGNAL, writable=writable)

    def read(self) -> bytes | None:
        """Return the bytes as they are now; None where there are none to rely on."""
        shared = self._bytes
        return None if shared is None else shared[:_SIGNAL_BYTES]

    def bump(self) -> None:
        """Tell every process that something was committed."""
        shared = self._bytes
        if shared is not None and self._writable:
            shared[:_SIGNAL_BYTES] = os.urandom(_SIGNAL_BYTES)

    def close(self) -> None:
        """Let go of the file; a thread that is reading it just now may end that."""
        self._bytes = None


def _mapped(path: Path, *, writable: bool) -> mmap.mmap | None:
    """Return the file in memory; None if it cannot be had, and then the database is asked."""
    flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
    try:
        handle = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        if writable and os.fstat(handle).st_size < _SIGNAL_BYTES:
            # Not truncated to size: that may find no room.
            os.pwrite(handle, os.urandom(_SIGNAL_BYTES), 0)
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        return mmap.mmap(handle, _SIGNAL_BYTES, access=access)
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
