"""A store on disk that many processes share: tables of SQLite, and text alone.

`database` has the connections and transactions, `tables` the dialect.
"""

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from semcache.errors import InvalidInput, StoreUnavailable
from semcache.ports import Record
from semcache.stores.disk.change_signal import RECHECK_S, ChangeSignal
from semcache.stores.disk.database import Database, DatabaseHandle, damage
from semcache.stores.disk.directory import DATABASE, VERSION, claim, require, set_aside
from semcache.stores.disk.schema import PLANS
from semcache.stores.disk.tables import DiskTables
from semcache.stores.disk.takeover import take_over
from semcache.stores.records import RecordCache
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.store import KEPT_CHANGES, RelationalStore
from semcache.stores.relational.tables import Tables

T = TypeVar("T")

KEPT_RECORDS = 100  # records kept in memory as they were read; who serves them keeps their entries
BUSY_TIMEOUT_S = 5.0  # seconds to wait for another writer; a write takes less than 1 ms

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

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        self._decoded.forget()
        return super().remove(tenant, ids)

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""
        self._decoded.forget()
        return super().clear(tenant)

    def _record(self, row: RecordRow) -> Record:
        known = self._decoded.get(row.checksum)
        if known is not None and (known.tenant, known.id) == (row.tenant, row.id):
            return known
        record = DiskTables.record(row)
        self._decoded.keep(row.checksum, record)
        return record

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
