"""The tables of a store on disk: made by numbered files of SQL, and never by an older semcache."""

import sqlite3
from importlib.resources import files

from semcache.errors import ForeignDirectory, NewerFormat

APPLICATION = 0x73656D63
"""Number in the head of the file by which SQLite tells whose it is: "semc"."""


def migrations() -> list[str]:
    """Return the steps from each version to the next, from 0 on; files `<version>_<name>.sql`."""
    folder = files("semcache.stores.disk").joinpath("migrations")
    steps = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".sql"))
    return [file.read_text(encoding="utf-8") for _, file in steps]


def migrate(connection: sqlite3.Connection, *, where: str) -> None:
    """Bring the tables to the latest version in one transaction; `where` names them in errors.

    Nothing is written where they are of it already.

    Raises:
        ForeignDirectory: the file holds tables that semcache did not make.
        NewerFormat: a later semcache made them.
    """
    steps = migrations()
    if _version(connection, where) < len(steps):
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for step in steps[_version(connection, where) :]:  # another process may have been first
                _run(connection, step)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
    found = _version(connection, where)
    if found > len(steps):
        raise NewerFormat(
            f"{where} has tables of version {found}; this semcache reads up to {len(steps)}; "
            "upgrade semcache, or name another directory"
        )


def _run(connection: sqlite3.Connection, script: str) -> None:
    # Not `executescript`, which commits before it begins.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _version(connection: sqlite3.Connection, where: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and (version or connection.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise ForeignDirectory(
            f"the database of {where} holds tables that semcache did not make; name another "
            "directory"
        )
    return version
