"""The tables of a Postgres store: made by numbered files of SQL, and never by an older semcache."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from psycopg import Connection, errors, sql

from semcache.errors import ForeignDatabase, InvalidSettings, NewerFormat, StoreUnavailable
from semcache.stores.postgres.connection import without_limit

_LOCK = 0x73656D6361636865
"""Lock that whoever makes tables holds. One for all schemas: they share the extension."""

_PATIENCE_S = 30
"""Seconds to wait for a process that is making tables, or has them locked: it may stand still."""


class Migration(NamedTuple):
    """One step from a version to the next."""

    version: int
    """The version that the tables have afterwards; the first is 1."""
    name: str
    script: str


def migrations() -> list[Migration]:
    """Return all steps, in order; their files are named `<version>_<name>.sql`."""
    steps = []
    for file in files("semcache.stores.postgres").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            steps.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(steps)


def migrate(connection: Connection, schema: str, *, where: str) -> int:
    """Bring the tables in `schema` to the latest version, and return that.

    All steps are one transaction, under a lock that one process at a time has. `where` names the
    database in messages.

    Raises:
        ForeignDatabase: the schema holds tables that semcache did not make.
        NewerFormat: a later semcache made them.
        StoreUnavailable: this role may not make them, or pgvector is not installed.
    """
    steps = migrations()
    latest = steps[-1].version
    # Most that open it find it made, and may have no leave to make anything.
    found = _version(connection, schema, where)
    if found < latest:
        with without_limit(connection), connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE_S}s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            found = _version(connection, schema, where)
            _apply(connection, schema, [step for step in steps if step.version > found], where)
    if found > latest:
        raise NewerFormat(
            f"{where} has format {found}; this semcache reads up to {latest}; "
            "upgrade semcache, or name another schema"
        )
    return latest


def _apply(connection: Connection, schema: str, steps: list[Migration], where: str) -> None:
    name = sql.Identifier(schema)
    try:
        if steps and steps[0].version == 1:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
            connection.execute(sql.SQL(_MANIFEST).format(name))
        for step in steps:
            # Files of this package, never anything that came from outside.
            connection.execute(step.script.encode())
            update = sql.SQL("UPDATE {}.manifest SET version = %s").format(name)
            connection.execute(update, (step.version,))
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        raise StoreUnavailable(
            f"{where} has not been set up, and this role may not do it: {error}; open it once "
            "with a role that may create schemas"
        ) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile, errors.UndefinedObject) as error:
        raise StoreUnavailable(
            f"{where} has no pgvector: {error}; install the extension `vector` on the server"
        ) from error


_MANIFEST = """
    CREATE TABLE {}.manifest (
        format  text PRIMARY KEY DEFAULT 'semcache-store',
        version integer NOT NULL DEFAULT 0,
        created timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO {0}.manifest DEFAULT VALUES
""".replace("{}", "{0}")


def _version(connection: Connection, schema: str, where: str) -> int:
    """Return the version of the tables in `schema`; 0 if there are none."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1"
    tables = [str(name) for (name,) in connection.execute(query, (schema,))]
    if not tables:
        return 0
    rows: list[tuple[object, ...]] = []
    if "manifest" in tables:
        select = sql.SQL(
            "SELECT to_jsonb(m)->>'format', to_jsonb(m)->>'version' FROM {}.manifest m"
        )
        rows = connection.execute(select.format(sql.Identifier(schema))).fetchall()
    match rows:
        case [("semcache-store", str(version))]:
            return int(version)
        case _:
            raise ForeignDatabase(
                f"{where} holds tables that semcache did not make ({', '.join(tables[:3])}); "
                "name another schema"
            )


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
