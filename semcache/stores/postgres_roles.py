"""Roles in Postgres: whom the server holds to some tenants, and what a schema or role is called."""

from collections.abc import Sequence

from psycopg import Connection, sql

from semcache.errors import InvalidSettings

_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON {schema}.grants, {schema}.manifest FROM {role}",
)


def grant(connection: Connection, schema: str, role: str, tenants: Sequence[str]) -> None:
    """Let `role` see and change the records of `tenants`, in place of what it could before."""
    ours, name = sql.Identifier(schema), sql.Identifier(role)
    for statement in _GRANTS:
        connection.execute(sql.SQL(statement).format(schema=ours, role=name))
    connection.execute("DELETE FROM grants WHERE role = %s", (role,))
    connection.execute(
        "INSERT INTO grants (role, tenant) SELECT %s, t FROM unnest(%s::text[]) AS t",
        (role, list(dict.fromkeys(tenants))),
    )


def check_names(schema: str, role: str | None) -> None:
    """Do nothing if they can be names.

    Raises:
        InvalidSettings: one of them cannot.
    """
    for what, name in (("schema", schema), ("role", role or "postgres")):
        # 63 bytes are what PostgreSQL keeps of a name; it would cut off the rest without a word.
        if not name.isprintable() or not 0 < len(name.encode(errors="replace")) <= 63:
            raise InvalidSettings(f"{what} is {name!r}; expected printable text of 1 to 63 bytes")
        if what == "schema" and name.startswith("pg_"):
            raise InvalidSettings(f"schema is {name!r}; names that begin with pg_ are PostgreSQL's")
