"""Checks of the directory of a cache and of the files in it, and what a check tells."""

import shutil
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from platform import python_version
from typing import Literal

import semcache
from semcache.canonical import JsonObject
from semcache.errors import (
    ForeignDirectory,
    NewerFormat,
    StoreError,
)
from semcache.ports import Clock
from semcache.stores.disk.database import damage
from semcache.stores.disk.directory import DATABASE, MANIFEST
from semcache.stores.disk.store import DiskStore

Level = Literal["ok", "warning", "broken"]


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


LEFT_S = 3600.0
"""Seconds after which a file that was being written aside was left by a crash."""
ROOM = 64 * 2**20
"""Bytes that should be free at least; or as many as the cache has, to compact it."""


@dataclass(frozen=True, slots=True)
class Files:
    """Looks at the directory of a cache and at the files in it."""

    directory: Path
    clock: Clock
    repair: bool
    """Whether to put right what can be."""

    def place(self) -> Check:
        """Check that the directory is that of a cache."""
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

    def modes(self) -> Check:
        """Check that only the owner can read or write; repaired by taking it from the others."""
        paths = [self.directory, *self.directory.rglob("*")]
        loose = [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]
        if not loose:
            return Check("permissions", "ok", "only the owner can read or write")
        name = loose[0].relative_to(self.directory.parent)
        more = f" and {len(loose) - 1} more" if len(loose) > 1 else ""
        found = Check(
            "permissions",
            "warning",
            f"others can read or write {str(name)!r}{more}",
            f"chmod -R go-rwx {self.directory}",
        )
        if not self.repair:
            return found
        for path in loose:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
        return replace(found, repaired="taken away from others")

    def left(self) -> Check:
        """Check that no process died while it wrote a file; repaired by removing what it left."""
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

    def free(self) -> Check:
        """Check that there is room on the disk."""
        free, used = shutil.disk_usage(self.directory).free, room(self.directory)
        what = f"the cache has {used / 2**20:.1f} MB, and {free / 2**20:,.0f} MB are free"
        if free >= max(ROOM, used):
            return Check("room", "ok", what)
        return Check("room", "warning", what, "make room on the disk, or set `max_total_bytes`")

    def versions(self) -> Check:
        """Tell what it runs on."""
        python, sqlite = python_version(), sqlite3.sqlite_version
        what = f"semcache {semcache.__version__}, Python {python}, SQLite {sqlite}"
        return Check("versions", "ok", what)

    def database(self) -> Check:
        """Check that the database is whole; repaired by moving it aside and beginning a new one."""
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


def room(directory: Path) -> int:
    """Return the bytes of all files below `directory`."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
