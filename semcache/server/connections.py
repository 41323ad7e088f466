"""Connections of an HTTP door: so many, and none that a request holds open by never ending."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from semcache.errors import InvalidSettings, MissingExtra

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtra("an HTTP door needs `pip install 'semcache-plans[serve]'`") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp

WHOLE_S = 30.0
"""Seconds within which a request must be whole; a proxy in front of the door is faster."""
MAX_CONNECTIONS = 1_000
"""Connections at once; further ones are answered 503. Many systems allow 1,024 open files."""


class ImpatientProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which waits for a request to be whole, but not for ever."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; wait on if that is half a request."""
        super().data_received(data)
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._wait()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(WHOLE_S, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def serve_app(
    app: "ASGIApp",
    *,
    host: str,
    port: int,
    path: str = "",
    listening: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve an application until the process is told to end; what is under way is finished.

    `port`: 0 takes one that is free. `listening`: told the address of `path` once it can be
    reached.

    Raises:
        InvalidSettings: there can be no server at `host` and `port`, or another is there.
    """
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        limit_concurrency=MAX_CONNECTIONS,
        log_level="warning",
        server_header=False,
    )
    with listening_socket(host, port) as door:
        shown = f"[{host}]" if ":" in host else host
        listening(f"http://{shown}:{door.getsockname()[1]}{path}")
        uvicorn.Server(config).run(sockets=[door])


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at `host` and `port`, and sends what it has at once.

    Raises:
        InvalidSettings: there can be none, or another is there.
    """
    # Ours, so that what is in the way is an error of ours: uvicorn prints it and ends the process.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidSettings(
            f"nothing can be served at {host}:{port}: {error.strerror}; name a HOST of this "
            "machine and a PORT that is free"
        ) from error
    # Its connections inherit it. asyncio sets it only on sockets that name their protocol, and
    # without it a body waits 40 ms for the acknowledgment of its headers.
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return door
