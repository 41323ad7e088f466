"""The tables in a directory: made by numbered files of SQL, used in the dialect of SQLite."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from semcache.errors import ForeignDirectory, NewerFormat
from semcache.ports import Vector
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.tables import JOINED, Tables


@dataclass(frozen=True, slots=True)
class DiskSchema:
    """The tables that one kind of directory has."""

    name: str
    """What the directory holds, as messages and the files of SQL name it."""
    application: int
    """Number in the head of the file by which SQLite tells whose it is."""

    def steps(self) -> list[str]:
        """Return the steps from each version to the next, from 0 on: `<name>_<version>.sql`."""
        folder = files("semcache.stores.disk").joinpath("migrations")
        steps = [file for file in folder.iterdir() if file.name.startswith(f"{self.name}_")]
        return [file.read_text(encoding="utf-8") for file in sorted(steps, key=lambda f: f.name)]

    def migrate(self, connection: sqlite3.Connection, *, where: str) -> None:
        """Bring the tables to the latest version in one transaction; `where` names them in errors.

        Nothing is written where they are of it already.

        Raises:
            ForeignDirectory: the file holds other tables.
            NewerFormat: a later semcache made them.
        """
        steps = self.steps()
        if self._version(connection, where) < len(steps):
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                # Another process may have been first.
                for step in steps[self._version(connection, where) :]:
                    _run(connection, step)
                connection.execute(f"PRAGMA application_id = {self.application}")
                connection.execute(f"PRAGMA user_version = {len(steps)}")
        found = self._version(connection, where)
        if found > len(steps):
            raise NewerFormat(
                f"{where} has tables of version {found}; this semcache reads up to {len(steps)}; "
                "upgrade semcache, or name another directory"
            )

    def _version(self, connection: sqlite3.Connection, where: str) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        (found,) = connection.execute("PRAGMA application_id").fetchone()
        if found == self.application:
            return version
        other = next((kind.name for kind in (PLANS, RESPONSES) if kind.application == found), "")
        if other or version or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise ForeignDirectory(
                f"the database of {where} holds {other or 'tables that semcache did not make'}; "
                "name another directory"
            )
        return version


PLANS = DiskSchema("plans", 0x73656D63)  # "semc"
RESPONSES = DiskSchema("responses", 0x73656D72)  # "semr"


def _run(connection: sqlite3.Connection, script: str) -> None:
    # Not `executescript`, which commits before it begins.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


class DiskTables(Tables):
    """The tables in the dialect of SQLite: lists are JSON, vectors little-endian float32."""

    row_place = "r.rowid"
    for_update = ""  # `BEGIN IMMEDIATE` lets one transaction write at a time
    unlocked = ""
    collation = "BINARY"
    gapless = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection.execute)

    @staticmethod
    def list_value(texts: Sequence[str]) -> str:
        """Return texts as the value of a column."""
        return json.dumps(texts)

    @staticmethod
    def list_of(sent: str) -> list[str]:
        """Return the texts that a column has."""
        texts: list[str] = json.loads(sent)
        return texts

    @staticmethod
    def vector_value(vector: Vector) -> bytes:
        """Return a vector as the value of a column."""
        return vector.astype("<f4").tobytes()

    @staticmethod
    def vector_of(sent: bytes) -> Vector:
        """Return the vector that a column has."""
        return np.frombuffer(sent, "<f4")

    def lock_note(self, tenant: str, name: str) -> None:
        """Do nothing: one transaction writes at a time."""

    def drop_row(self, row: RecordRow) -> bool:
        """Forget a row that is not as it was written, if it is still as it was read."""
        # By its number, and counted anew: its tenant, id or size may be what is damaged.
        if self.rows(f"{JOINED} WHERE r.rowid = ?", row.place) != [row]:
            return False
        self.run("DELETE FROM records WHERE rowid = ?", (row.place,))
        self.recount()
        return True

    def count(self, tenant: str, entries: int, size: int) -> None:
        """Add to what the records of the tenant, and of all, come to."""
        super().count(tenant, entries, size)
        self.run("UPDATE state SET entries = entries + ?, bytes = bytes + ?", (entries, size))

    def wipe(self, tenant: str | None) -> list[tuple[str, str]]:
        """Remove records and notes of the tenant, or of all (None); return whose records went."""
        gone = super().wipe(tenant)
        self._add_up()
        return gone

    def recount(self) -> None:
        """Count anew what the records of each tenant, and of all, come to. Cost: each is read."""
        self.run("DELETE FROM tenants")
        self.run(
            "INSERT INTO tenants SELECT tenant, count(*), sum(size) FROM records GROUP BY tenant"
        )
        self._add_up()

    def _add_up(self) -> None:
        self.run(
            "UPDATE state SET entries = (SELECT coalesce(sum(entries), 0) FROM tenants),"
            " bytes = (SELECT coalesce(sum(bytes), 0) FROM tenants)"
        )

    def measure(self) -> None:
        """Measure each record anew, and count. Cost: all that is kept is read."""
        size = (
            "length(CAST(body AS BLOB)) + coalesce((SELECT length(embedding) FROM vectors AS v"
            " WHERE v.tenant = records.tenant AND v.id = records.id), 0)"
        )
        self.run(f"UPDATE records SET size = {size} WHERE size IS NOT {size}")  # noqa: S608 - ours
        self.recount()
