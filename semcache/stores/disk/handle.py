"""The database of a directory: opened when it is first asked for, and written in transactions."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from semcache.errors import StoreUnavailable
from semcache.forks import Lock
from semcache.stores.disk.change_signal import ChangeSignal
from semcache.stores.disk.directory import DATABASE, claim, require, set_aside
from semcache.stores.disk.failures import ErrorTranslation
from semcache.stores.disk.frozen_database import FrozenDatabase

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database

_log = logging.getLogger(__name__)


class DatabaseHandle:
    """What a store on disk stands on. Safe from several threads; closed for good by `close`."""

    def __init__(
        self,
        directory: Path,
        *,
        timeout_s: float,
        text: str,
        frozen: bool = False,
        ticking: bool = False,
    ) -> None:
        """Open nothing yet. `timeout_s`: how long a write waits for another writer.

        `text`: what the texts are that are handed in, for errors. `frozen`: not a byte is written.
        `ticking`: each commit is told to the readers of all processes; see `change_signal`.
        """
        self.directory = directory
        self.failing = ErrorTranslation(directory, text=text)
        """Turns what the database raises into errors of ours, in a `with`."""
        self._timeout_s = timeout_s
        self._frozen = frozen
        self._ticking = ticking
        self._opening = Lock()
        self._database: Database | None = None
        self._ticks: ChangeSignal | None = None
        self.closed = False
        """Whether `close` was called."""

    def db(self) -> "Database":
        """Return the database; the first call opens it.

        Raises:
            ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt: it cannot be opened.
        """
        if self.closed:
            raise StoreUnavailable(f"the store {str(self.directory)!r} is closed; open a new one")
        if self._database is not None:
            return self._database
        with self._opening, self.failing:
            if self._database is None:
                self._database = self._open_frozen() if self._frozen else self._open()
            return self._database

    def _open(self) -> "Database":
        from semcache.stores.disk.database import Database  # noqa: PLC0415 - imports diskcache

        claim(self.directory)
        if self._ticking:
            self._ticks = ChangeSignal(self.directory)
        return Database(self.directory, timeout_s=self._timeout_s)

    def _open_frozen(self) -> "Database":
        require(self.directory)
        if self._ticking:
            self._ticks = ChangeSignal(self.directory, writable=False)
        # It reads as a database does, and nothing else is asked of it once this is frozen.
        return cast("Database", FrozenDatabase(self.directory, timeout_s=self._timeout_s))

    @contextmanager
    def writing(self) -> "Iterator[Database]":
        """Give the database in a transaction of its own, or in the one that this thread is in.

        Raises:
            StoreUnavailable: it is frozen, locked, full or read-only; nothing is changed.
        """
        db = self.db()
        self.check_not_frozen()
        with self.failing:
            with db.writing():
                yield db
            if self._ticks is not None:
                self._ticks.bump()

    def check_not_frozen(self) -> None:
        """Refuse to write where nothing may be written.

        Raises:
            StoreUnavailable: it is frozen.
        """
        if self._frozen:
            raise StoreUnavailable(
                f"the store {str(self.directory)!r} is frozen, so that nothing is kept; open it "
                "without `frozen` to change it"
            )

    def tick(self) -> bytes | None:
        """Return what changes with each commit; None where there is nothing to rely on."""
        return None if self._ticks is None else self._ticks.read()

    def repair(self) -> str:
        """Read all of the database and set it aside if it is damaged; nobody may have it open.

        Returns what was damaged and where that is now; empty if nothing was.
        """
        from semcache.stores.disk.database import damage  # noqa: PLC0415 - imports diskcache

        claim(self.directory)
        with self.failing:
            found = damage(self.directory / DATABASE)
        if not found:
            return ""
        repaired = f"{found}; moved to {str(set_aside(self.directory))!r}"
        _log.warning("the store %s was damaged: %s", self.directory, repaired)
        return repaired

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self.closed = True
        self._ticks = None
        if self._database is not None:
            self._database.close()
