"""Learning of changes without asking at every lookup: LISTEN, and asking now and then behind it."""

import selectors
import socket
import threading
import time
from collections.abc import Callable

import psycopg
from psycopg import Connection, sql

from semcache.process.forks import Forked, Lock, follow_forks

_inherited: list[Connection] = []
"""Connections of the parent process; collecting them would end them for it too."""


class Listener(Forked):
    """Knows the number of the store's last change, never later than `lag_s` after it was made.

    A thread with a connection of its own asks for the number whenever the server notifies it, and
    every half of `lag_s` anyway. What it knows counts only while it was confirmed less than `lag_s`
    ago, so that a lost notification, a dead connection or a starved thread cannot stretch the
    bound: then `known` is None, and the store asks for itself.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        schema: str,
        lag_s: float,
        retry_s: float,
    ) -> None:
        self._connect = connect
        self._channel = f"semcache:{schema}"
        self._lag_s = lag_s
        self._retry_s = retry_s
        self._lock = Lock()
        self._number = 0
        self._confirmed_s = float("-inf")
        self._own = 0
        """Changes of our own; an answer asked for before one of them is older than it."""
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wake: tuple[socket.socket, socket.socket] | None = None
        self._connection: Connection | None = None
        follow_forks(self)

    def known(self) -> int | None:
        """Return the number of the last change; None if it is not known well enough."""
        if self._thread is None:
            self._start()
        if time.monotonic() - self._confirmed_s < self._lag_s:
            return self._number
        return None

    def made(self, number: int) -> None:
        """Take in a change of our own: it is seen at once."""
        with self._lock:
            self._own += 1
            self._number = max(self._number, number)

    def doubt(self) -> None:
        """Let the next who asks for the number ask the server."""
        self._confirmed_s = float("-inf")

    def _start(self) -> None:
        with self._lock:
            if self._closed or self._thread is not None:
                return
            self._wake = socket.socketpair()
            self._thread = threading.Thread(
                target=self._run, args=(self._wake[1],), name="semcache-listener", daemon=True
            )
            self._thread.start()

    def _run(self, wake: socket.socket) -> None:
        while not self._closed:
            try:
                with self._connect() as self._connection:
                    self._follow(self._connection, wake)
            except (psycopg.Error, OSError):
                # Whoever asks finds out by itself, and says so; here it is only tried again.
                self._confirmed_s = float("-inf")
                with selectors.DefaultSelector() as selector:
                    selector.register(wake, selectors.EVENT_READ)
                    selector.select(self._retry_s)

    def _follow(self, connection: Connection, wake: socket.socket) -> None:
        # Notifications say that there is something; what it is, the next answer says.
        connection.add_notify_handler(lambda _: None)
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            while not self._closed:
                self._ask(connection)
                selector.select(self._lag_s / 2)

    def _ask(self, connection: Connection) -> None:
        asked_s, own = time.monotonic(), self._own
        row = connection.execute("SELECT last_change FROM state").fetchone()
        number = 0 if row is None else int(row[0])
        with self._lock:
            # Down too: a standby that took over may lack the last changes of the server before.
            self._number = number if own == self._own else max(number, self._number)
            self._confirmed_s = asked_s

    def forked(self) -> None:
        """Begin anew: this is a forked child, and the thread is the parent's."""
        if self._connection is not None:
            _inherited.append(self._connection)
        self._thread, self._wake, self._connection = None, None, None
        self._confirmed_s = float("-inf")

    def close(self) -> None:
        """End the thread and its connection; calling it twice is fine."""
        self._closed = True
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None and self._thread is not None:
            wake[0].send(b"\n")
            self._thread.join()
            for end in wake:
                end.close()
