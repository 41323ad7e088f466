"""Connections that give a server up which does not answer: no timeout of its own would end that.

A server that was stopped, hangs or lies behind a network that swallows everything holds the
connection open and says nothing. Neither `statement_timeout`, which the server would have to keep,
nor keepalives, which there are none of on a socket of this machine, bound that.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import psycopg
from psycopg import Connection
from psycopg.abc import PQGen

T = TypeVar("T")

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
