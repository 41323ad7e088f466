"""Connections of an HTTP door: so many, and none that a request holds open by never ending."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
