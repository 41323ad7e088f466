"""Nearest vectors by pgvector, in the server: nothing is kept here but which ids there are."""

import hashlib
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psycopg
from psycopg import Connection, sql

from semcache.errors import StoreError
from semcache.ports import Neighbor, Vector
from semcache.process.forks import Lock
from semcache.stores.postgres.connection import without_limit
from semcache.stores.postgres.pool import Connections
from semcache.stores.postgres.tables import Embedding, PostgresTables
from semcache.stores.vectors.index_file import write_snapshot
from semcache.stores.vectors.ranking import checked_vector

EXACT_BELOW = 20_000
"""Vectors of a tenant that are compared one by one; from here on HNSW is worth its cost."""
MAX_DIMENSION = 2000
"""Dimensions that pgvector's HNSW takes."""

_log = logging.getLogger(__name__)


class PostgresIndex:
    """Search among the vectors that a `PostgresStore` keeps of one tenant and embedder.

    As `ports.VectorIndex` promises while the tenant is small. A large one gets an HNSW index of its
    own (partial, so that no filter eats what it finds), built in the background: its answers are
    near enough, and may miss a neighbor; there are never fewer than asked for and kept, since an
    answer that is short is given again by comparing with all.

    Embeddings are L2-normalized, so that the inner product is the cosine.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        tenant: str,
        embedder: str,
        exact_below: int = EXACT_BELOW,
    ) -> None:
        self._connections = connections
        self._place = (tenant, embedder)
        self._exact_below = exact_below
        self._ids: set[str] = set()
        self._dimension: int | None = None
        self._lock = Lock()
        self._building: threading.Thread | None = None
        self.approximate = False
        """Whether there is an HNSW index, and searches go by it."""

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Know that the store keeps `vector` under `id`: writing the record wrote it.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        with self._lock:
            self._dimension = len(checked_vector(vector, self._dimension))
            self._ids.add(id)

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Know that the store forgot `id`; return whether it was there."""
        with self._lock:
            there = id in self._ids
            self._ids.discard(id)
            return there

    def __len__(self) -> int:
        """Return how many vectors are kept, as far as this process has followed the changes."""
        return len(self._ids)

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
            StoreUnavailable: the server does not answer.
        """
        query = checked_vector(vector, self._dimension)
        wanted = min(count, len(self._ids))
        if wanted <= 0:
            return []
        if len(self._ids) >= self._exact_below and self._building is None:
            self._building = threading.Thread(target=self.build, name="semcache-hnsw", daemon=True)
            self._building.start()
        found: list[Neighbor] = []
        if self.approximate:
            found = self._connections.write(lambda c: self._by_index(c, query, count))
        if len(found) < wanted:
            found = self._connections.read(lambda c: self._by_all(c, query, count))
        return sorted(found, key=lambda one: (-one.similarity, one.id))[:count]

    def _by_all(self, connection: Connection, query: Vector, count: int) -> list[Neighbor]:
        # By id as well: which of equally near ones come back does not hang on where they lie.
        statement = (
            "SELECT id, -(embedding <#> %s::vector) AS similarity FROM vectors"
            " WHERE tenant = %s AND embedder = %s ORDER BY similarity DESC, id LIMIT %s"
        )
        values = (Embedding(query), *self._place, count)
        return _neighbors(connection.execute(statement, values).fetchall())

    def _by_index(self, connection: Connection, query: Vector, count: int) -> list[Neighbor]:
        looked_at = min(1000, max(100, 4 * count))
        # Without a sort the index alone can order: the planner underrates it, and would read all.
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('enable_sort', 'off', true)",
            (str(looked_at),),
        )
        # Tenant and embedder as literals: else the planner cannot tell that the index is theirs.
        statement = sql.SQL(
            "SELECT id, -(embedding::vector({dim}) <#> %s::vector) FROM vectors"
            " WHERE tenant = {tenant} AND embedder = {embedder}"
            " ORDER BY embedding::vector({dim}) <#> %s::vector LIMIT %s"
        ).format(
            # What follows a sign of percent would be taken for a parameter.
            **{name: _doubled(one, connection) for name, one in self._literals().items()}
        )
        asked = Embedding(query)
        done = connection.execute(statement, (asked, asked, count), prepare=False)
        return _neighbors(done.fetchall())

    def build(self) -> bool:
        """Make the HNSW index if there is none, and use it; return whether it is there.

        It takes minutes for a million vectors, and holds up nobody who writes meanwhile. One
        process at a time builds; the others find it the next time they begin.
        """
        if self._dimension is None or self._dimension > MAX_DIMENSION:
            return False
        try:
            with self._connections.alone() as connection:
                self.approximate = self._built(connection)
        except (psycopg.Error, StoreError) as error:
            _log.info("no HNSW index for tenant %r, so all are compared: %s", self._place[0], error)
        return self.approximate

    def wait(self) -> None:
        """Return when the index that a search has asked for is there, or cannot be made."""
        if self._building is not None:
            self._building.join()

    def _built(self, connection: Connection) -> bool:
        name = self._name()
        valid = _valid(connection, name)
        if valid:
            return True
        lock = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || %s, 0))"
        got = connection.execute(lock, (name,)).fetchone()
        if got is None or not got[0]:
            return False
        connection.execute("SET statement_timeout = 0")
        if valid is False:  # whoever was building it died
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        create = sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON vectors"
            " USING hnsw ((embedding::vector({dim})) vector_ip_ops)"
            " WHERE tenant = {tenant} AND embedder = {embedder}"
        )
        with without_limit(connection):
            connection.execute(create.format(name=sql.Identifier(name), **self._literals()))
        return bool(_valid(connection, name))

    def _name(self) -> str:
        digest = hashlib.sha256(repr((*self._place, self._dimension)).encode()).hexdigest()
        return f"vectors_hnsw_{digest[:32]}"

    def _literals(self) -> dict[str, sql.Literal]:
        tenant, embedder = self._place
        return {
            "tenant": sql.Literal(tenant),
            "embedder": sql.Literal(embedder),
            "dim": sql.Literal(self._dimension),
        }

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot that `FaissIndex` can load. Cost: every vector comes over the network.

        Raises:
            StoreUnavailable: the server does not answer, or the file cannot be written.
        """
        rows = self._connections.read(self._all)
        vectors = [PostgresTables.vector_of(sent) for _, sent in rows]
        matrix = np.array(vectors, np.float32).reshape(len(vectors), self._dimension or 0)
        write_snapshot(Path(path), [known for known, _ in rows], matrix, change=change)

    def _all(self, connection: Connection) -> list[tuple[str, bytes]]:
        query = "SELECT id, embedding FROM vectors WHERE tenant = %s AND embedder = %s ORDER BY id"
        with connection.cursor(binary=True) as cursor:
            return cursor.execute(query, self._place).fetchall()


def _doubled(literal: sql.Literal, connection: Connection) -> sql.SQL:
    # No text that is not quoted: it is the literal as psycopg writes it.
    return sql.SQL(literal.as_string(connection).replace("%", "%%"))


def _neighbors(rows: Sequence[tuple[str, float]]) -> list[Neighbor]:
    return [Neighbor(known, min(1.0, max(-1.0, cosine))) for known, cosine in rows]


def _valid(connection: Connection, index: str) -> bool | None:
    """Return whether an index is complete; None if there is none of that name."""
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))"
    row = connection.execute(query, (index,)).fetchone()
    return None if row is None else bool(row[0])
