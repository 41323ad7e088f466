"""Records as rows of Postgres, with a checksum that tells whether one is still what was written."""

import json
import struct
from dataclasses import dataclass

import numpy as np
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from semcache.ports import Record, Vector
from semcache.stores.records import checksum

COLUMNS = """
    r.tenant, r.id, r.change, r.keys, r.labels, r.body, r.embedder, r.created_s, r.expires_s,
    r.cost_s, r.checksum, v.embedding
"""
"""Columns of a `PostgresRow`, of `records r LEFT JOIN vectors v USING (tenant, id)`, in binary."""


@dataclass(frozen=True, slots=True)
class PostgresRow:
    """One row of `COLUMNS`."""

    tenant: str
    id: str
    change: int
    keys: list[str]
    labels: list[str]
    body: str
    embedder: str
    created_s: float
    expires_s: float | None
    cost_s: float
    checksum: bytes
    embedding: bytes | None

    def record(self) -> Record:
        """Return the record.

        Raises:
            ValueError: this is not what was written.
        """
        found = Record(
            tenant=self.tenant,
            id=self.id,
            keys=tuple(self.keys),
            labels=tuple(self.labels),
            body=self.body,
            vector=vector_from(self.embedding),
            embedder=self.embedder,
            created_s=self.created_s,
            expires_s=self.expires_s,
            change=self.change,
            cost_s=self.cost_s,
        )
        if checksum(found) != self.checksum:
            raise ValueError("the checksum is not that of the content")
        return found

    def text(self) -> str:
        """Return the row as text, to be looked at by a person."""
        fields = {name: getattr(self, name) for name in PostgresRow.__slots__}
        fields |= {name: (fields[name] or b"").hex() for name in ("checksum", "embedding")}
        return json.dumps(fields)


# Not the package `pgvector`: it asks each new connection for the number of the type. PostgreSQL
# takes a parameter of no type for what its place wants, and gives a binary column as its bytes.


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector as a parameter of a statement."""

    vector: Vector


class _EmbeddingDumper(Dumper):
    """Writes an `Embedding`, where the statement says `%s::vector`."""

    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        """Return what pgvector's `vector_recv` reads."""
        return struct.pack(">HH", len(obj.vector), 0) + obj.vector.astype(">f4").tobytes()


def register(connection: Connection) -> None:
    """Let statements on `connection` take an `Embedding`."""
    connection.adapters.register_dumper(Embedding, _EmbeddingDumper)


def vector_from(sent: bytes | None) -> Vector | None:
    """Return the vector of a column that was read in binary."""
    return None if sent is None else np.frombuffer(sent, ">f4", offset=4).astype(np.float32)
