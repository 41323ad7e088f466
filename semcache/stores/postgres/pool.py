"""Connections to PostgreSQL: pooled, given up on quickly, taken up again by themselves.

While the server cannot be reached nobody waits for it: every call fails at once, and one of them,
every so often, lets the pool try to connect in the background. The first call after that worked is
served.
"""

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import psycopg
from psycopg import Connection, errors, sql
from psycopg.pq import PGconn, Ping
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from semcache.errors import StoreError, StoreUnavailable
from semcache.process.forks import Forked, Holder, Lock, follow_forks, holder, lives
from semcache.stores.postgres.connection import (
    NoAnswer,
    PatientConnection,
    at_rest,
    completed,
    described,
    failure,
    interrupt_of,
    is_lost,
    said,
    standby,
)
from semcache.stores.postgres.tables import register

T = TypeVar("T")

RETRY_S = 1.0
"""Seconds between two attempts to reach a server that was lost."""
_SLICE_S = 0.05
"""Seconds after which a caller who waits for the first connection looks whether there is hope."""

_NAME = "semcache-"
_numbers = itertools.count(1)
_inherited: list[ConnectionPool] = []
"""Pools of the parent process. Closing them here would end its connections; so would forgetting
them, since a connection that is collected says goodbye to the server."""


class _OneWarning(logging.Filter):
    """Holds back what psycopg says at each attempt: whoever uses the store warns, and once."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether `record` is about somebody else's connections."""
        told = record.args if isinstance(record.args, tuple) else ()
        return not any(_ours(one) or str(one).startswith(_NAME) for one in told)


def _ours(told: object) -> bool:
    # A pipeline does not say whose it is but by this name, which it inherits.
    return isinstance(getattr(told, "_conn", told), PatientConnection)


for _name in ("psycopg", "psycopg.pool"):
    logging.getLogger(_name).addFilter(_OneWarning())


@dataclass(eq=False, slots=True)
class _Loan:
    """A connection that somebody has."""

    holder: Holder
    connection: Connection | None = None
    pool: ConnectionPool | None = None
    whole: bool = False
    """Whether the work ended as psycopg can follow it, and not by an interrupt in its middle."""


class Connections(Forked):
    """A pool of connections that know the types and tables of a store. Safe from several threads.

    A process that was forked off gets a pool of its own. What psycopg raises becomes an error of
    ours here, and nowhere else.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str,
        role: str | None,
        size: int,
        wait_s: float,
        statement_timeout_s: float,
        retry_s: float,
    ) -> None:
        self.where = f"the database {described(dsn)} (schema {schema!r})"
        """How messages name it."""
        # A server that is only slow says so itself before it is taken for one that hangs.
        self._patience_s = statement_timeout_s + min(1.0, statement_timeout_s)
        self._conninfo = completed(dsn, patience_s=self._patience_s)
        self._schema = schema
        self._role = role
        self._size = size
        self._wait_s = wait_s
        self._statement_timeout_s = statement_timeout_s
        self._retry_s = retry_s
        self._lock = Lock()
        self._pool: ConnectionPool | None = None
        self._closed = False
        self._down = ""
        """Why the server cannot be reached; empty if it can, as far as is known."""
        self._answered = False
        """Whether the last connection that could not be made failed by an answer."""
        self._tried_s = 0.0
        self._loans: dict[int, _Loan] = {}
        """Who has connections of the pool, or is about to have one."""
        follow_forks(self)

    def __repr__(self) -> str:
        return f"<Connections to {self.where}>"

    # Doing work ----------------------------------------------------------------------------

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return `work(connection)`, each statement of which is its own transaction.

        On a connection that turns out to be lost it is done once more on another one.

        Raises:
            StoreUnavailable: the server cannot be reached, is too slow, or refuses.
            StoreCorrupt: the tables are not what semcache made.
            InvalidInput: text that PostgreSQL cannot hold.
        """
        return self._twice(lambda connection, _: work(connection))

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return `work(connection)`, all of which is one transaction. Raises as `read`.

        It is done once more if the connection was lost before anything could be committed.
        """

        def transaction(connection: Connection, committing: Callable[[], None]) -> T:
            # Statements whose answer nobody waits for travel together. On one line: an interrupt
            # can fall between two, but not between the work and the end of the transaction.
            with connection.pipeline(), connection.transaction(): return _whole(connection, work, committing)  # fmt: skip # noqa: E501, E701

        return self._twice(transaction)

    def _twice(self, work: Callable[[Connection, Callable[[], None]], T]) -> T:
        committing: list[bool] = []
        for last in (False, True):
            with self._failing(), self._connection() as connection:
                try:
                    done = work(connection, lambda: committing.append(True))
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    if interrupt_of(error) is not None:
                        raise
                    lost = connection.closed or standby(connection, error)
                    if last or committing or not lost or isinstance(error, NoAnswer):
                        raise
                    if self._pool is not None:
                        self._pool.check()  # throw out those that were lost with it
                else:
                    self._down = ""
                    return done
        raise AssertionError("unreachable: the second attempt returned or raised")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        pool, loan = self._opened(), _Loan(holder())
        self._take_back()
        if self._down and not self._used() and not pool.get_stats()["pool_available"]:
            self._try_again(pool)
            raise self._unreachable()
        try:
            self._loans[id(loan)] = loan
            loan.connection, loan.pool = self._given(pool), pool
            yield loan.connection
            loan.whole = True
        except PoolClosed as error:
            raise (self._closed_error() if self._closed else self._unreachable()) from error
        except NoAnswer as error:
            self._abandon(pool, str(error))
            raise
        except Exception as error:
            loan.whole = interrupt_of(error) is None
            raise
        finally:
            self._end(loan)

    def _end(self, loan: "_Loan") -> None:
        """Give a connection back; nothing, if another thread did."""
        if loan.pool is None or loan.connection is None:
            self._loans.pop(id(loan), None)
            return
        if not (loan.whole and at_rest(loan.connection)):
            loan.connection.close()  # the pool makes another, and the server rolls back
        with contextlib.suppress(KeyError):
            # In one line: no interrupt is between taking it off the list and giving it back.
            loan.pool.putconn(self._loans.pop(id(loan)).connection or loan.connection)

    def _take_back(self) -> None:
        """Give back what callers had who were interrupted and could not do it any more."""
        for loan in [*self._loans.values()]:
            if not lives(loan.holder):
                self._end(loan)

    def _used(self) -> int:
        """Return how many connections of the pool are at work."""
        return sum(1 for loan in [*self._loans.values()] if loan.pool is self._pool is not None)

    def _abandon(self, pool: ConnectionPool, why: str) -> None:
        """Leave the connections to a server that hangs: nobody else shall wait for one of them."""
        with self._lock:
            if pool is not self._pool:
                return
            self._pool, self._down = None, why
        # It waits for its workers, who may be waiting for that server.
        threading.Thread(target=pool.close, name="semcache-leaving", daemon=True).start()

    def _given(self, pool: ConnectionPool) -> Connection:
        """Return a connection of the pool, within `wait_s` or as soon as the server is known lost.

        Where others hold connections one of them comes free, so the place in the queue is kept.
        """
        deadline = time.monotonic() + self._wait_s
        while (left := deadline - time.monotonic()) > 0:
            alone = not self._used()
            try:
                return pool.getconn(timeout=min(_SLICE_S, left) if alone else left)
            except PoolTimeout:
                if alone and self._down:
                    break
        if self._used():
            raise StoreUnavailable(
                f"all {self._size} connections to {self.where} were in use for {self._wait_s:g} s; "
                "allow more of them (`pool_size`), or ask in fewer threads"
            )
        self._down = self._down or f"no connection within {self._wait_s:g} s"
        raise self._unreachable()

    def _unreachable(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.where} cannot be reached: {self._down}", passing=True)

    def reachable(self, *, wait_s: float) -> bool:
        """Return whether the server answers; if it was lost, after trying for up to `wait_s`."""
        with contextlib.suppress(StoreError), self._failing():
            pool = self._opened()
            if not pool.get_stats()["pool_available"]:
                pool.check()
            with contextlib.suppress(PoolTimeout, PoolClosed), pool.connection(wait_s) as found:
                found.execute("SELECT 1")
                self._down = ""
                return True
        return False

    def refuses(self) -> bool:
        """Return whether the server answers, and lets in nobody who asks as this does."""
        # One that hangs is not asked: that would take as long again.
        return self._answered and PGconn.ping(self._conninfo.encode()) == Ping.OK

    # The pool ------------------------------------------------------------------------------

    def _opened(self) -> ConnectionPool:
        if self._closed:
            raise self._closed_error()
        if self._pool is not None:
            return self._pool
        with self._lock:
            if self._pool is None:
                self._pool = self._made()
            return self._pool

    def forked(self) -> None:
        """Leave everything to the parent: this is its child, just forked off."""
        if self._pool is not None:
            _inherited.append(self._pool)
        self._pool, self._loans, self._down = None, {}, ""

    def _made(self) -> ConnectionPool:
        pool: ConnectionPool = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "failed": self._not_made},
            min_size=0,
            max_size=self._size,
            open=False,
            connection_class=PatientConnection,
            name=f"{_NAME}{next(_numbers)}",
            configure=self.configure,
            reconnect_timeout=0.0,  # once; who asks next lets it try again
            reconnect_failed=self._lost,
        )
        pool.open()
        return pool

    def alone(self) -> Connection:
        """Return a connection outside the pool, made as those in it are. Raises `psycopg.Error`."""
        connection = PatientConnection.connect(self._conninfo, autocommit=True)
        self._down = ""  # so the pool will have its way too
        self.configure(connection)
        return connection

    def configure(self, connection: Connection) -> None:
        """Make a new connection one of ours: its role, its tables, its patience, its types."""
        if isinstance(connection, PatientConnection):
            connection.patience_s = self._patience_s
        path = sql.SQL(
            "SELECT set_config('search_path',"
            " quote_ident(%s) || ', ' || current_setting('search_path'), false)"
        )
        connection.execute(path, (self._schema,))
        limit = str(round(1000 * self._statement_timeout_s))
        for name in ("statement_timeout", "lock_timeout"):
            connection.execute("SELECT set_config(%s, %s, false)", (name, limit))
        if self._role is not None:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(self._role)))
        register(connection)

    def _not_made(self, error: psycopg.Error) -> None:
        self._down, self._answered = said(error), not isinstance(error, errors.ConnectionTimeout)

    def _lost(self, _pool: ConnectionPool) -> None:
        self._down = self._down or "it does not take connections"

    def _try_again(self, pool: ConnectionPool) -> None:
        now = time.monotonic()
        if now - self._tried_s >= self._retry_s:
            self._tried_s = now
            pool.check()

    def close(self) -> None:
        """End all connections; calling it twice is fine."""
        self._closed = True
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    # Errors --------------------------------------------------------------------------------

    def _closed_error(self) -> StoreUnavailable:
        return StoreUnavailable(f"the store in {self.where} is closed; open a new one")

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, UnicodeEncodeError) as error:
            if (interrupt := interrupt_of(error)) is not None:
                raise interrupt from error
            if is_lost(error):
                self._down = said(error)
            raise failure(error, where=self.where) from error


def _whole(
    connection: Connection, work: Callable[[Connection], T], committing: Callable[[], None]
) -> T:
    done = work(connection)
    committing()
    return done
