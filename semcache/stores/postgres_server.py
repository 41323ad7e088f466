"""The Postgres server behind a store: its versions and its clock."""

from dataclasses import dataclass

from psycopg import Connection


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself."""

    postgres: str
    """Version."""
    pgvector: str
    """Version; empty if it is not installed."""
    now_s: float
    """Epoch seconds by its own clock."""


def about(connection: Connection) -> Server:
    """Return what the server is, and what it takes the time for."""
    query = (
        "SELECT current_setting('server_version'),"
        " coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), ''),"
        " extract(epoch FROM clock_timestamp())::float8"
    )
    row = connection.execute(query).fetchone()
    return Server(*(row or ("", "", 0.0)))
