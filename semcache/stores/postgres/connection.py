"""One connection to PostgreSQL: what its string leaves open, how it waits, what its errors mean.

A server that was stopped, hangs or lies behind a network that swallows everything holds a
connection open and says nothing. Neither `statement_timeout`, which the server would have to keep,
nor keepalives, which there are none of on a socket of this machine, bound that. So each wait here
has an end of its own.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import psycopg
from psycopg import Connection, errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PipelineStatus, TransactionStatus

from semcache.errors import (
    InvalidInput,
    InvalidSettings,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from semcache.secrecy import remember

T = TypeVar("T")

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


_SLICE_S = 0.1
"""Seconds of silence at most after which it is looked whether there is still patience."""


class NoAnswer(psycopg.OperationalError):
    """The server said nothing for as long as there was patience; the connection is closed."""


class PatientConnection(Connection):
    """A connection whose every wait for the server ends, by an answer or by `NoAnswer`."""

    patience_s: float | None = None
    """Seconds of silence after which the server is given up; None: never."""

    @classmethod
    def connect(  # type: ignore[override]  # `failed` would be a word for libpq there
        cls,
        conninfo: str = "",
        *,
        failed: Callable[[psycopg.Error], None] = lambda _: None,
        **kwargs: Any,  # noqa: ANN401 - as psycopg takes them
    ) -> Self:
        """Return a connection; hand what keeps it from being made to `failed`, and raise it."""
        try:
            return super().connect(conninfo, **kwargs)
        except psycopg.Error as error:
            failed(error)
            raise

    def wait(self, gen: PQGen[T], interval: float = _SLICE_S, timeout: float | None = None) -> T:
        """Return what `gen` comes to. Raises `NoAnswer`, and closes, if it takes too long."""
        if self.patience_s is not None:
            interval = min(interval, self.patience_s / 4)
            gen = _bounded(gen, math.ceil(self.patience_s / interval))
        # psycopg before 3.3 knows no timeout here, and none of ours asks for one.
        more = () if timeout is None else (timeout,)
        try:
            return super().wait(gen, interval, *more)
        except NoAnswer:
            self.close()
            raise


@contextlib.contextmanager
def without_limit(connection: Connection) -> Iterator[None]:
    """Wait inside for as long as it takes, where work is known to take long."""
    if not isinstance(connection, PatientConnection):
        yield
        return
    patience_s, connection.patience_s = connection.patience_s, None
    try:
        yield
    finally:
        connection.patience_s = patience_s


def _bounded(gen: PQGen[T], slices: int) -> PQGen[T]:
    """Do as `gen` does, but raise `NoAnswer` once so many slices in a row passed in silence.

    Slices are counted, not seconds: a process that was paused itself does not blame the server.
    """
    silent = 0
    try:
        state = next(gen)
        while True:
            ready = yield state
            silent = 0 if ready else silent + 1
            if silent >= slices:
                raise NoAnswer("the server does not answer")
            state = gen.send(ready)
    except StopIteration as done:
        found: T = done.value
        return found


def failure(error: psycopg.Error | UnicodeEncodeError, *, where: str) -> StoreError | InvalidInput:
    """Return our error for what went wrong in the database that messages name `where`."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(
            f"text for the store holds a lone surrogate at {error.start}; "
            "expected valid Unicode text"
        )
    for kinds, made in _FAILURES:
        if isinstance(error, kinds):
            return made(where, said(error))
    passing = isinstance(error, psycopg.OperationalError)  # it ends, has no room, or is gone
    return StoreUnavailable(f"{where} failed: {said(error)}", passing=passing)


def said(error: Exception) -> str:
    """Return the first line of what the server or the driver says."""
    return str(error).strip().partition("\n")[0]


_Failure = Callable[[str, str], StoreError | InvalidInput]
_FAILURES: list[tuple[tuple[type[psycopg.Error], ...], _Failure]] = [
    (
        (errors.QueryCanceled, errors.LockNotAvailable),
        lambda where, said: StoreUnavailable(f"{where} took too long: {said}", passing=True),
    ),
    (
        (errors.InsufficientPrivilege,),
        lambda where, said: StoreUnavailable(f"{where} denies access: {said}"),
    ),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction),
        lambda where, said: StoreCorrupt(
            f"{where} lacks what semcache made there: {said}; restore it from a copy, or name "
            "another schema"
        ),
    ),
    (
        (psycopg.DataError,),
        lambda _, said: InvalidInput(f"text for the store cannot be kept by PostgreSQL: {said}"),
    ),
    (
        (NoAnswer,),
        lambda where, said: StoreUnavailable(f"{where} cannot be reached: {said}", passing=True),
    ),
]
"""Kinds of errors → what they mean; the first that fits counts."""


def at_rest(connection: Connection) -> bool:
    """Return whether a connection is between two pieces of work, and not in the middle of one."""
    status = connection.pgconn
    return (
        status.transaction_status == TransactionStatus.IDLE
        and status.pipeline_status == PipelineStatus.OFF
    )


def interrupt_of(error: BaseException) -> BaseException | None:
    """Return the interrupt that psycopg was cleaning up after when it failed; None if none was."""
    cause = error.__context__
    while cause is not None and isinstance(cause, Exception):
        cause = cause.__context__
    return cause


def is_lost(error: Exception) -> bool:
    """Return whether the server is gone, and not only slow, silent or unwilling."""
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        and error.sqlstate is None
        and not isinstance(error, NoAnswer)
    )


def standby(connection: Connection, error: psycopg.Error) -> bool:
    """Return whether this is a standby that took over from nobody; then leave it."""
    if not isinstance(error, errors.ReadOnlySqlTransaction):
        return False
    connection.close()
    return True
