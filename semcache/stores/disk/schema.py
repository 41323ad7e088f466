"""The tables in a directory: made by numbered files of SQL, and never by an older semcache."""

import sqlite3
from dataclasses import dataclass
from importlib.resources import files

from semcache.errors import ForeignDirectory, NewerFormat


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
