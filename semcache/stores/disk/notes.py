"""Notes and leases in the tables of a directory, in the transaction of the caller."""

from collections.abc import Callable
from sqlite3 import Connection

from semcache.stores.records import check_text, seal, unseal

_SWEPT = 16  # leases of dead holders that one who takes a lease clears away


def read(connection: Connection, tenant: str, name: str) -> str | None:
    """Return the note as it is sealed, or None."""
    query = "SELECT sealed FROM notes WHERE tenant = ? AND name = ?"
    row = connection.execute(query, (tenant, name)).fetchone()
    return None if row is None else str(row[0])


def update(
    connection: Connection, tenant: str, name: str, change: Callable[[str | None], str | None]
) -> bool:
    """Replace a note by `change(note)`; return whether it was what had been written.

    If not, it is kept aside, and `change` gets None.
    """
    sealed = read(connection, tenant, name)
    old, whole = None, True
    try:
        old = None if sealed is None else unseal(sealed.encode())
    except ValueError:
        whole = False
        keep_damaged(connection, tenant, f"note/{name}", sealed or "")
    write(connection, tenant, name, change(old))
    return whole


def write(connection: Connection, tenant: str, name: str, text: str | None) -> None:
    """Keep `text` under `name`, or forget it (None)."""
    if text is None:
        connection.execute("DELETE FROM notes WHERE tenant = ? AND name = ?", (tenant, name))
        return
    check_text(tenant, name, text)
    connection.execute(
        "INSERT INTO notes (tenant, name, sealed) VALUES (?, ?, ?)"
        " ON CONFLICT (tenant, name) DO UPDATE SET sealed = excluded.sealed",
        (tenant, name, seal(text)),
    )


def set_aside(connection: Connection, tenant: str, name: str, sealed: str) -> None:
    """Move a note that is not what was written to the damaged, if it is still `sealed`."""
    if read(connection, tenant, name) == sealed:
        keep_damaged(connection, tenant, f"note/{name}", sealed)
        connection.execute("DELETE FROM notes WHERE tenant = ? AND name = ?", (tenant, name))


def keep_damaged(connection: Connection, tenant: str, place: str, content: str) -> None:
    """Keep `content`, found at `place`, for a person to look at."""
    connection.execute(
        "INSERT INTO damaged (tenant, place, change, content)"
        " SELECT ?, ?, last_change, ? FROM state WHERE true ON CONFLICT DO NOTHING",
        (tenant, place, content),
    )


def take_lease(
    connection: Connection, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float
) -> bool:
    """Give `holder` the lease until `now_s + ttl_s`, unless another has it; return if it has it."""
    connection.execute(
        "DELETE FROM leases WHERE (tenant, name) IN"
        " (SELECT tenant, name FROM leases WHERE until_s <= ? LIMIT ?)",
        (now_s, _SWEPT),
    )
    # One that would last longer than two of its kind is of a clock that was set back since.
    taken = connection.execute(
        "INSERT INTO leases AS l (tenant, name, holder, until_s) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (tenant, name) DO UPDATE"
        " SET holder = excluded.holder, until_s = excluded.until_s"
        " WHERE l.holder = excluded.holder OR l.until_s <= ? OR l.until_s > ?",
        (tenant, name, holder, now_s + ttl_s, now_s, now_s + 2 * ttl_s),
    )
    return taken.rowcount > 0


def end_lease(connection: Connection, tenant: str, name: str, holder: str) -> None:
    """End the lease, if `holder` has it."""
    statement = "DELETE FROM leases WHERE tenant = ? AND name = ? AND holder = ?"
    connection.execute(statement, (tenant, name, holder))
