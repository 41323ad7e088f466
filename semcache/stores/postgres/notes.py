"""Notes in Postgres: small sealed texts beside the records, each updated by one at a time."""

import json
from collections.abc import Callable

from psycopg import Connection

from semcache.stores.records import check_text, seal, unseal


def read(connection: Connection, tenant: str, name: str) -> str | None:
    """Return the note as it is sealed, or None."""
    row = connection.execute(
        "SELECT sealed FROM notes WHERE tenant = %s AND name = %s", (tenant, name)
    ).fetchone()
    return None if row is None else str(row[0])


def update(
    connection: Connection, tenant: str, name: str, change: Callable[[str | None], str | None]
) -> None:
    """Replace a note by `change(note)`; others who would wait until this transaction ends."""
    # A row that is not there yet cannot be locked, so the lock is of its name.
    place = json.dumps([tenant, name])
    query = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || %s, 0))"
    connection.execute(query, (place,))
    sealed = read(connection, tenant, name)
    try:
        old = None if sealed is None else unseal(sealed.encode())
    except ValueError:
        old = None
        keep_damaged(connection, tenant, f"note/{name}", sealed or "")
    new = change(old)
    if new is None:
        _delete(connection, tenant, name)
        return
    check_text(new)
    connection.execute(
        "INSERT INTO notes (tenant, name, sealed) VALUES (%s, %s, %s)"
        " ON CONFLICT (tenant, name) DO UPDATE SET sealed = excluded.sealed",
        (tenant, name, seal(new)),
    )


def set_aside(connection: Connection, tenant: str, name: str, sealed: str) -> None:
    """Move a note that is not what was written to the damaged, if it is still `sealed`."""
    if read(connection, tenant, name) == sealed:
        keep_damaged(connection, tenant, f"note/{name}", sealed)
        _delete(connection, tenant, name)


def keep_damaged(connection: Connection, tenant: str, place: str, content: str) -> None:
    """Keep `content`, found at `place`, for a person to look at."""
    connection.execute(
        "INSERT INTO damaged (tenant, place, change, content)"
        " SELECT %s, %s, last_change, %s FROM state ON CONFLICT DO NOTHING",
        (tenant, place, content),
    )


def _delete(connection: Connection, tenant: str, name: str) -> None:
    connection.execute("DELETE FROM notes WHERE tenant = %s AND name = %s", (tenant, name))


def take_lease(
    connection: Connection, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float
) -> bool:
    """Give `holder` the lease until `now_s + ttl_s`, unless another has it; return if it has it."""
    statement = (
        "INSERT INTO leases AS l (tenant, name, holder, until_s) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant, name) DO UPDATE"
        " SET holder = excluded.holder, until_s = excluded.until_s"
        # One that would last longer than two of its kind is of a clock that was set back since.
        " WHERE l.holder = excluded.holder OR l.until_s <= %s OR l.until_s > %s RETURNING true"
    )
    asked = (tenant, name, holder, now_s + ttl_s, now_s, now_s + 2 * ttl_s)
    return connection.execute(statement, asked).fetchone() is not None


def end_lease(connection: Connection, tenant: str, name: str, holder: str) -> None:
    """End the lease, if `holder` has it."""
    statement = "DELETE FROM leases WHERE tenant = %s AND name = %s AND holder = %s"
    connection.execute(statement, (tenant, name, holder))
