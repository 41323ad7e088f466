"""Doctor: what is wrong with a cache on disk, the way out, and the repair where there is one."""

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import semcache
from semcache.errors import (
    InvalidSettings,
    StoreError,
    WrongKey,
)
from semcache.ports import Clock, Embedder, PlanStore
from semcache.stores.disk.snapshots import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.upkeep.check import Check
from semcache.upkeep.contents import Contents
from semcache.upkeep.files import Files

if TYPE_CHECKING:
    from semcache.stores.postgres.store import PostgresStore

APART_S = 2.0
"""Seconds that the clocks of machines may differ: leases, by which plans are made once, last 10."""


def examine(
    directory: str | Path,
    *,
    clock: Clock,
    embedder: Embedder | None = None,
    encryption_key: str = "",
    repair: bool = False,
) -> tuple[Check, ...]:
    """Look at everything in the directory of a cache; change nothing unless told to `repair`.

    `embedder`: the one in use; None looks at no vectors. `repair` makes files their owner's, moves
    a damaged database aside and begins a new one, removes what cannot be read, embeds anew what
    another embedder did, and forgets snapshots that are wrong. No other process should have the
    directory open then. Cost: everything is read.
    """
    doctor = _Doctor(
        directory=Path(directory),
        clock=clock,
        embedder=embedder,
        key=encryption_key,
        repair=repair,
        shelf=None if encryption_key else SnapshotDirectory(Path(directory) / VIEWS),
    )
    return tuple(doctor.examine())


def examine_database(
    database: str,
    *,
    schema: str,
    clock: Clock,
    embedder: Embedder | None = None,
    encryption_key: str = "",
    repair: bool = False,
) -> tuple[Check, ...]:
    """Look at a cache in PostgreSQL as `examine` does at one on disk; see there.

    `schema`: where in the database it is. Tables are made if there are none.

    Raises:
        MissingExtra: `semcache-plans[postgres]` is not installed.
    """
    doctor = _Doctor(
        directory=Path(),
        clock=clock,
        embedder=embedder,
        key=encryption_key,
        repair=repair,
        shelf=None,
    )
    return tuple(doctor.examine_database(database, schema))


@dataclass(slots=True)
class _Doctor:
    directory: Path
    clock: Clock
    embedder: Embedder | None
    key: str
    repair: bool
    """Whether to put right what can be."""
    shelf: SnapshotDirectory | None
    """Where snapshots are that belong to the store; None: it has none of its own."""

    def examine(self) -> Iterator[Check]:
        files = Files(self.directory, self.clock, self.repair)
        found = files.place()
        yield found
        if found.level == "broken":
            return
        yield from (files.modes(), files.left(), files.free(), files.versions())
        database = files.database()
        yield database
        if database.level == "broken" and not database.repaired:
            return
        try:
            store = self._opened()
        except WrongKey as error:
            yield Check("key", "broken", str(error), "give the key that it was made with, or none")
            return
        except StoreError as error:
            cure = "see that it can be written and is on a local disk"
            yield Check("database", "broken", str(error), cure)
            return
        with closing(store):
            yield from self._inside(store)

    def examine_database(self, database: str, schema: str) -> Iterator[Check]:
        """Look at a database and all that is in the store there."""
        from semcache.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        try:
            plain = PostgresStore.open(database, schema=schema)
        except (StoreError, InvalidSettings) as error:
            cure = "see that the server runs, that the role may use it, and that the name is right"
            yield Check("database", "broken", str(error), cure)
            return
        with closing(plain):
            yield Check("database", "ok", plain.connections.where)
            try:
                yield from self._server(plain)
                yield from self._inside(unlocked(plain, self.key, what="the database"))
            except WrongKey as error:
                cure = "give the key that it was made with, or none"
                yield Check("key", "broken", str(error), cure)
            except StoreError as error:
                yield Check("database", "broken", str(error), "see that the server answers")

    def _server(self, store: "PostgresStore") -> Iterator[Check]:
        about = store.about()
        python = ".".join(map(str, sys.version_info[:3]))
        yield Check(
            "versions",
            "ok",
            f"semcache {semcache.__version__}, Python {python}, PostgreSQL {about.postgres}, "
            f"pgvector {about.pgvector}",
        )
        apart = about.now_s - self.clock.now()
        if abs(apart) > APART_S:
            what = f"the server's clock is {apart:+,.0f} s from ours"
            yield Check("clocks", "warning", what, "set the clocks of all machines by NTP")
        else:
            yield Check("clocks", "ok", "the server's clock is ours")

    def _inside(self, store: PlanStore) -> Iterator[Check]:
        return Contents(store, self.clock, self.embedder, self.shelf, self.repair).examine()

    def _opened(self) -> PlanStore:
        plain = DiskStore.open(self.directory)
        try:
            return unlocked(plain, self.key, what=repr(str(self.directory)))
        except StoreError:
            plain.close()
            raise
