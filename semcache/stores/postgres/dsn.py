"""Connection strings of PostgreSQL: what they leave open, and how messages show them."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from semcache.errors import InvalidSettings
from semcache.secrecy import remember

_CONNECT_S = 5
"""Seconds that one attempt to connect may take; libpq counts whole ones."""


def described(dsn: str) -> str:
    """Return which database `dsn` names, as messages show it: without password and options.

    Raises:
        InvalidSettings: it is no connection string. What it is is not shown, as it may hold one.
    """
    parts = _parts(dsn)
    shown = {name: parts.get(name) for name in ("user", "host", "port", "dbname")}
    return "postgresql:" + " ".join(f"{name}={value}" for name, value in shown.items() if value)


def completed(dsn: str, *, patience_s: float) -> str:
    """Return `dsn` with what it leaves open: limits, keepalives, and who may be written to.

    `patience_s`: seconds that a server may keep silent about what was sent.

    Raises:
        InvalidSettings: it is no connection string.
    """
    usual: dict[str, str | int | None] = {
        "connect_timeout": _CONNECT_S,
        # A server that went away without a word is found out, and not waited for till morning.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": round(1000 * patience_s),
        "application_name": "semcache",
    }
    given = _parts(dsn)
    if "," in str(given.get("host", given.get("hostaddr", ""))):
        # Of several servers the one that may be written to: after a failover, the one promoted.
        usual["target_session_attrs"] = "read-write"
    return make_conninfo("", **{**usual, **given})


def _parts(dsn: str) -> dict[str, str | int | None]:
    try:
        if "\0" in dsn or not dsn.strip():
            raise ValueError  # noqa: TRY301 - one message for all that is wrong with it
        parts = conninfo_to_dict(dsn)
    except (psycopg.Error, ValueError):
        raise InvalidSettings(
            "database is no connection string of PostgreSQL (it is not shown, since it may hold a "
            "password); expected one like 'postgresql://user@host:5432/dbname'"
        ) from None
    remember(*(str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)))
    return parts
