"""Doctor: what is wrong with a cache on disk, the way out, and the repair where there is one."""

import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

import semcache
from semcache.cache.entry import from_record
from semcache.canonical import JsonObject
from semcache.errors import (
    EmbeddingError,
    ForeignDirectory,
    InvalidSettings,
    NewerFormat,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    WrongKey,
)
from semcache.matching.content import embedded_text
from semcache.ports import Clock, Embedder, PlanStore, Record
from semcache.stores.directory import DATABASE, MANIFEST
from semcache.stores.disk import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.stores.faiss import FaissIndex
from semcache.stores.shelf import VIEWS, Shelf
from semcache.upkeep.compact import room
from semcache.upkeep.verify import Problem, verify

if TYPE_CHECKING:
    from semcache.stores.postgres import PostgresStore

Level = Literal["ok", "warning", "broken"]

AHEAD_S = 60.0
"""Seconds that clocks of machines may differ before a time counts as one of the future."""
APART_S = 2.0
"""Seconds that the clocks of machines may differ: leases, by which plans are made once, last 10."""
LEFT_S = 3600.0
"""Seconds after which a file that was being written aside was left by a crash."""
ROOM = 64 * 2**20
"""Bytes that should be free at least; or as many as the cache has, to compact it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    part: str
    """`directory`, `permissions`, `room`, `versions`, `database`, `clocks`, `key`, `records`,
    `clock`, `embedder`, `index`."""
    level: Level
    what: str
    """What was found."""
    cure: str = ""
    """The way out; empty if all is well."""
    repaired: str = ""
    """What was done about it; empty if nothing."""

    def __str__(self) -> str:
        lines = [f"{'repaired' if self.repaired else self.level:8}  {self.part}: {self.what}"]
        if self.repaired:
            lines.append(f"{'':10}done: {self.repaired}")
        elif self.cure:
            lines.append(f"{'':10}way out: {self.cure}")
        return "\n".join(lines)

    def to_dict(self) -> JsonObject:
        """Return the check as JSON."""
        return {
            "part": self.part,
            "level": self.level,
            "what": self.what,
            "cure": self.cure,
            "repaired": self.repaired,
        }


def sound(checks: tuple[Check, ...]) -> bool:
    """Return whether nothing is wrong, or all of it was repaired."""
    return all(check.level == "ok" or check.repaired for check in checks)


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
        shelf=None if encryption_key else Shelf(Path(directory) / VIEWS),
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
        MissingExtra: `semcache[postgres]` is not installed.
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
    shelf: Shelf | None
    """Where snapshots are that belong to the store; None: it has none of its own."""

    def examine(self) -> Iterator[Check]:
        found = self._place()
        yield found
        if found.level == "broken":
            return
        yield from (self._modes(), self._left(), self._room(), self._versions())
        database = self._database()
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
        from semcache.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra

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

    def _opened(self) -> PlanStore:
        plain = DiskStore.open(self.directory)
        try:
            return unlocked(plain, self.key, what=repr(str(self.directory)))
        except StoreError:
            plain.close()
            raise

    # Files ---------------------------------------------------------------------------------

    def _place(self) -> Check:
        name = repr(str(self.directory))
        if not self.directory.is_dir():
            cure = "name the directory of a cache; the first plan that is stored makes one"
            return Check("directory", "broken", f"there is no directory {name}", cure)
        if not (self.directory / MANIFEST).exists():
            what = f"{name} has no {MANIFEST!r}: it is not a cache of semcache"
            return Check("directory", "broken", what, "name another directory")
        try:
            with closing(DiskStore(self.directory)) as store:
                store.last_change()
        except (ForeignDirectory, NewerFormat) as error:
            cure = "upgrade semcache, or name another directory"
            return Check("directory", "broken", str(error), cure)
        except StoreError:
            pass  # what is wrong inside is for the next checks
        return Check("directory", "ok", name)

    def _modes(self) -> Check:
        paths = [self.directory, *self.directory.rglob("*")]
        loose = [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]
        if not loose:
            return Check("permissions", "ok", "only the owner can read or write")
        name = loose[0].relative_to(self.directory.parent)
        found = Check(
            "permissions",
            "warning",
            f"others can read or write {str(name)!r} and {len(loose) - 1} more",
            f"chmod -R go-rwx {self.directory}",
        )
        if not self.repair:
            return found
        for path in loose:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
        return replace(found, repaired="taken away from others")

    def _left(self) -> Check:
        aged = self.clock.now() - LEFT_S
        left = [p for p in self.directory.rglob("*.tmp") if p.stat().st_mtime < aged]
        if not left:
            return Check("leftovers", "ok", "no process died while it wrote a file")
        found = Check(
            "leftovers",
            "warning",
            f"{len(left)} files were being written when a process died",
            "`semcache doctor --repair` removes them",
        )
        if not self.repair:
            return found
        for path in left:
            path.unlink(missing_ok=True)
        return replace(found, repaired="removed")

    def _room(self) -> Check:
        free, used = shutil.disk_usage(self.directory).free, room(self.directory)
        what = f"the cache has {used / 2**20:.1f} MB, and {free / 2**20:,.0f} MB are free"
        if free >= max(ROOM, used):
            return Check("room", "ok", what)
        return Check("room", "warning", what, "make room on the disk, or set `max_total_bytes`")

    def _versions(self) -> Check:
        python = ".".join(map(str, sys.version_info[:3]))
        what = f"semcache {semcache.__version__}, Python {python}, SQLite {sqlite3.sqlite_version}"
        return Check("versions", "ok", what)

    def _database(self) -> Check:
        from semcache.stores.database import damage  # noqa: PLC0415 - imports diskcache

        try:
            wrong = damage(self.directory / DATABASE)
        except sqlite3.Error as error:
            cure = "close what has it locked, or see that the disk answers; then try again"
            return Check("database", "broken", f"it cannot be read: {error}", cure)
        if not wrong:
            return Check("database", "ok", "every page of it is whole")
        cure = "restore a copy, or `semcache doctor --repair`, which keeps it aside and begins anew"
        found = Check("database", "broken", f"it is damaged: {wrong.splitlines()[0]}", cure)
        if not self.repair:
            return found
        with closing(DiskStore.open(self.directory, repair=True)) as store:
            return replace(found, repaired=store.repaired)

    # What is inside ------------------------------------------------------------------------

    def _inside(self, store: PlanStore) -> Iterator[Check]:
        try:
            yield self._records(store)
            yield self._clock(store)
            yield from self._vectors(store)
        except (StoreUnavailable, StoreCorrupt) as error:
            yield Check("records", "broken", str(error), "see the other lines; then try again")

    def _records(self, store: PlanStore) -> Check:
        bad: list[tuple[str, str]] = []
        kept = aside = 0
        for tenant in store.tenants():
            before, records = store.count(tenant), store.scan(tenant)
            kept += len(records)
            aside += max(0, before - len(records))
            bad += [(tenant, record.id) for record in records if not _readable(record)]
        if not bad and not aside:
            many = len(store.tenants())
            return Check("records", "ok", f"{kept} entries of {many} tenants can be read")
        what = f"{len(bad)} entries cannot be read"
        if aside:
            what += f", and {aside} records were not what was written: they were set aside"
        cure = "`semcache doctor --repair` removes them; their prompts are planned again"
        found = Check("records", "broken" if bad else "warning", what, cure)
        if not self.repair:
            return found
        for tenant, known in bad:
            store.remove(tenant, [known])
        return replace(found, repaired=f"removed {len(bad)}")

    def _clock(self, store: PlanStore) -> Check:
        now = self.clock.now()
        ahead = [r for r in _all(store) if r.created_s > now + AHEAD_S]
        if not ahead:
            return Check("clock", "ok", "no entry is from the future")
        latest = max(record.created_s for record in ahead)
        found = Check(
            "clock",
            "broken",
            f"{len(ahead)} entries are from the future, up to {latest - now:,.0f} s from now",
            "set the clocks of all machines by NTP; then `semcache doctor --repair`",
        )
        if not self.repair:
            return found
        for record in ahead:
            store.put(_moved(record, now))
        return replace(found, repaired="they count as made now, and expire by that")

    def _vectors(self, store: PlanStore) -> Iterator[Check]:
        if self.embedder is None:
            return
        found = self._embeds(self.embedder)
        yield found
        if found.level != "ok":
            return
        yield self._embedded(store, self.embedder)
        yield self._index(store, self.embedder)

    def _embeds(self, embedder: Embedder) -> Check:
        try:
            (vector,) = embedder.embed(["total sales by category"])
        except EmbeddingError as error:
            cure = "install or name the weights; until then entries are found by exact keys only"
            return Check("embedder", "broken", str(error), cure)
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or abs(length - 1) > 0.01:
            what = f"{embedder.fingerprint} gives a vector of length {length:.3f}; expected 1"
            return Check("embedder", "broken", what, "name another embedder")
        what = f"{embedder.fingerprint} answers with {len(vector)} numbers"
        return Check("embedder", "ok", what)

    def _embedded(self, store: PlanStore, embedder: Embedder) -> Check:
        wanted = embedder.fingerprint
        strange = (r for r in _all(store) if r.vector is None or r.embedder != wanted)
        others = [record for record in strange if _readable(record)]
        if not others:
            return Check("vectors", "ok", f"all of {wanted}")
        names = sorted({record.embedder or "no embedder" for record in others})
        found = Check(
            "vectors",
            "warning",
            f"{len(others)} entries have vectors of {', '.join(names)}, and the embedder is "
            f"{wanted}: they are found by exact keys only",
            "use the embedder of before, or `semcache doctor --repair`, which embeds them anew",
        )
        if not self.repair:
            return found
        for record in others:
            text = embedded_text(from_record(record).template)
            store.put(replace(record, vector=embedder.embed([text])[0], embedder=wanted))
        return replace(found, repaired=f"embedded {len(others)} anew")

    def _index(self, store: PlanStore, embedder: Embedder) -> Check:
        shelf = self.shelf

        def problems() -> tuple[Problem, ...]:
            done = verify(
                store, embedder=embedder.fingerprint, make_index=FaissIndex, snapshots=shelf
            )
            return done.problems

        wrong = problems()
        if not wrong:
            return Check("index", "ok", "it agrees with the records")
        what = f"{len(wrong)} problems, the first: {wrong[0]}"
        cure = "`semcache doctor --repair` forgets the snapshots and removes entries that are wrong"
        found = Check("index", "broken", what, cure)
        if not self.repair:
            return found
        if shelf is not None:
            shelf.discard(None)
        for problem in problems():
            store.remove(problem.tenant, [problem.entry])
        return replace(found, repaired="removed what was wrong")


def _all(store: PlanStore) -> Iterator[Record]:
    for tenant in store.tenants():
        yield from store.scan(tenant)


def _readable(record: Record) -> bool:
    try:
        from_record(record)
    except StoreCorrupt:
        return False
    return True


def _moved(record: Record, now: float) -> Record:
    """Return the record as if it had been made now."""
    entry = from_record(record)
    lasts = None if record.expires_s is None else record.expires_s - record.created_s
    made = replace(entry, created_s=now, expires_s=None if lasts is None else now + lasts)
    fresh = made.record(record.vector, record.embedder)
    return replace(fresh, cost_s=record.cost_s)
