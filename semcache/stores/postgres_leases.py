"""Leases in Postgres: a name that one holder has until some time, given in one statement."""

from psycopg import Connection


def take(
    connection: Connection, tenant: str, name: str, holder: str, *, until_s: float, now_s: float
) -> bool:
    """Give `holder` the lease until `until_s`, unless another has it; return whether it has it."""
    statement = (
        "INSERT INTO leases AS l (tenant, name, holder, until_s) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant, name) DO UPDATE"
        " SET holder = excluded.holder, until_s = excluded.until_s"
        " WHERE l.holder = excluded.holder OR l.until_s <= %s RETURNING true"
    )
    asked = (tenant, name, holder, until_s, now_s)
    return connection.execute(statement, asked).fetchone() is not None


def give_back(connection: Connection, tenant: str, name: str, holder: str) -> None:
    """End the lease, if `holder` has it."""
    statement = "DELETE FROM leases WHERE tenant = %s AND name = %s AND holder = %s"
    connection.execute(statement, (tenant, name, holder))
