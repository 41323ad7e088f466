"""A connection to one MCP server for callers that are not async, which outlives the server."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from semcache.errors import SourceUnavailable
from semcache.sources.mcp.session import Ask, Gone, McpServer, Session

log = logging.getLogger(__name__)

T = TypeVar("T")


class Connection:
    """Asks one server, and starts it again if it has died. Safe from several threads.

    Nothing is started before the first question.
    """

    def __init__(
        self, name: str, server: McpServer, *, timeout_s: float, changed: Callable[[], None]
    ) -> None:
        """Keep what is asked for.

        Args:
            name: Of the server, for errors.
            server: How it is reached.
            timeout_s: Seconds to connect, and seconds for one answer.
            changed: Called when the server says that its list of tools is another now.
        """
        self._name = name
        self._server = server
        self._timeout_s = timeout_s
        self._changed = changed
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, question: Ask[T], *, repeatable: bool) -> T:
        """Return the server's answer.

        A server that is found dead is started again, once. So is one that dies over the question,
        but the question is put again only if it is `repeatable`.

        Raises:
            SourceUnavailable: there is no answer.
            SourceRejected: the server refuses.
        """
        try:
            return self._alive().ask(question, self._timeout_s)
        except Gone as gone:
            if gone.ran and not repeatable:
                raise SourceUnavailable(
                    f"MCP server {self._name!r} died over a call that writes ({gone}); it may or "
                    "may not have been carried out, so it was not repeated"
                ) from gone
        try:
            return self._alive().ask(question, self._timeout_s)
        except Gone as gone:
            raise SourceUnavailable(
                f"MCP server {self._name!r} died, was started again, and died again: {gone}"
            ) from gone

    def close(self) -> None:
        """Stop the server; calling it twice is fine, and what asks later is refused."""
        with self._lock:
            self._closed = True
            session, self._session = self._session, None
        if session is not None:
            session.stop()

    def _alive(self) -> Session:
        """Return a session that was alive a moment ago."""
        with self._lock:
            if self._closed:
                raise SourceUnavailable(
                    f"the connection to MCP server {self._name!r} is closed; open a new one"
                )
            if self._session is not None and not self._session.alive:
                self._session.stop()
                self._session = None
                log.info("MCP server %r is gone and is connected anew", self._name)
            if self._session is None:
                self._session = Session.started(
                    self._name, self._server, self._timeout_s, self._changed
                )
            return self._session
