"""The statements on the tables of a store in the dialect of SQLite."""

import json
import sqlite3
from collections.abc import Sequence

import numpy as np

from semcache.ports import Vector
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.tables import JOINED, Tables


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
