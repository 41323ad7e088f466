"""Vectors as pgvector sends and takes them: two 16-bit integers, then big-endian float32."""

import struct
from dataclasses import dataclass

import numpy as np
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

from semcache.ports import Vector

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
