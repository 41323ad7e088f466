"""The statements on the tables of a store in the dialect of PostgreSQL, and vectors of pgvector.

Every transaction that writes records begins with `lock`, so writers go one after the other and
change numbers become visible in their order: who reads number n has no smaller number to wait for.
A sequence would hand out numbers that commit in another order, and a reader who has passed n would
never see n - 1 (the rejected alternative, waiting for the oldest running transaction by
`pg_snapshot_xmin`, lets one forgotten transaction of any client hold up every reader). A write here
follows a model's call of a second or more, and takes about a millisecond.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from psycopg import Connection, Cursor
from psycopg.adapt import Dumper
from psycopg.pq import Format

from semcache.ports import Room, Vector
from semcache.stores.relational.dialect import RecordRow
from semcache.stores.relational.tables import OF_TENANT, Tables, Told

_IN_ONE_FETCH = 1000
"""Rows of a scan that come at once: each statement ends within its time, however many there are."""

# Not the package `pgvector`: it asks each new connection for the number of the type. PostgreSQL
# takes a parameter of no type for what its place wants, and gives a binary column as its bytes.


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector as a parameter of a statement."""

    vector: Vector


class _EmbeddingDumper(Dumper):
    """Writes an `Embedding`, where the statement wants a vector."""

    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        """Return what pgvector's `vector_recv` reads."""
        return struct.pack(">HH", len(obj.vector), 0) + obj.vector.astype(">f4").tobytes()


def register(connection: Connection) -> None:
    """Let statements on `connection` take an `Embedding`."""
    connection.adapters.register_dumper(Embedding, _EmbeddingDumper)


class PostgresTables(Tables):
    """The tables in the dialect of PostgreSQL: arrays of text, vectors of pgvector."""

    row_place = "0"
    for_update = " FOR UPDATE"
    unlocked = " FOR UPDATE SKIP LOCKED"
    collation = '"C"'
    gapless = False  # a role does not see the changes of tenants that it was not granted

    def __init__(self, connection: Connection) -> None:
        super().__init__(self._run)
        self._connection = connection

    def _run(self, statement: str, values: Sequence[object] = ()) -> Cursor:
        return self._connection.cursor(binary=True).execute(_native(statement), values)

    @staticmethod
    def list_value(texts: Sequence[str]) -> list[str]:
        """Return texts as the value of a column."""
        return list(texts)

    @staticmethod
    def list_of(sent: list[str]) -> list[str]:
        """Return the texts that a column has."""
        return sent

    @staticmethod
    def vector_value(vector: Vector) -> Embedding:
        """Return a vector as the value of a column."""
        return Embedding(vector)

    @staticmethod
    def vector_of(sent: bytes) -> Vector:
        """Return the vector of a column that was read in binary."""
        return np.frombuffer(sent, ">f4", offset=4).astype(np.float32)

    def tell(self, last: int, told: Sequence[Told], *, kept: int) -> int:
        """Number the changes after `last`, forget all but `kept`, and wake who listens."""
        number = super().tell(last, told, kept=kept)
        if told:
            self.run("SELECT pg_notify('semcache:' || current_schema(), ?)", (str(number),))
        return number

    def total(self) -> Room:
        """Return what the records of all tenants take that this role may see."""
        # Whom the server holds to some tenants must not count the others.
        row = self.run(
            "SELECT entries, bytes FROM state WHERE NOT row_security_active('tenants')"
            " UNION ALL SELECT coalesce(sum(entries), 0)::bigint, coalesce(sum(bytes), 0)::bigint"
            " FROM tenants WHERE row_security_active('tenants') HAVING"
            " row_security_active('tenants')"
        ).fetchone()
        return Room(0, 0) if row is None else Room(*row)

    def by_tenant(self, tenant: str) -> list[RecordRow]:
        """Return all rows of a tenant, oldest change first."""
        query = _native(self.select(OF_TENANT))
        with self._connection.transaction(), self._connection.cursor("scan", binary=True) as cursor:
            cursor.itersize = _IN_ONE_FETCH
            return [RecordRow(*row) for row in cursor.execute(query, (tenant,))]

    def lock_note(self, tenant: str, name: str) -> None:
        """Wait until no other transaction updates the note."""
        # A row that is not there yet cannot be locked, so the lock is of its name.
        query = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ?, 0))"
        self.run(query, (json.dumps([tenant, name]),))


@lru_cache(maxsize=256)  # more texts than a store has
def _native(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
