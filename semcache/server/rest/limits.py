"""Limits of what a request may bring, headers that every answer has, and HEAD in place of GET."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from semcache.server.rest.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 2 * 1024 * 1024
"""Bytes of the body of a request: a plan of any sense is a hundredth of that."""
MAX_HEADERS = 64
"""Headers of a request; how long they are together, the HTTP protocol bounds (64 KiB)."""

_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_CLOSE = {"Connection": "close"}  # the rest of the body is not read
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class LimitsMiddleware:
    """Refuses what is too large, before it is read whole; answers HEAD as GET, with no body."""

    def __init__(self, app: "ASGIApp", *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._told = f"the body is longer than {max_body_bytes:,} bytes"

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Hand the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _answering(send, bare=scope["method"] == "HEAD")
        # Nothing behind here answers HEAD; the server has the scope as it was.
        scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        left = self._max_body_bytes

        async def bounded() -> "Message":
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(_TOO_LARGE, self._told, _CLOSE)
            return message

        await self._app(scope, bounded, answer)

    def _refusal(self, headers: Headers) -> "ASGIApp | None":
        if len(headers) > MAX_HEADERS:
            return problem(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the request has {len(headers)} headers; at most {MAX_HEADERS} are read",
            )
        told = headers.get("content-length", "0")
        if told.isdecimal() and int(told) > self._max_body_bytes:
            return problem(_TOO_LARGE, self._told, headers=_CLOSE)
        return None


def _answering(send: "Send", *, bare: bool) -> "Send":
    """Return what sends an answer with the headers that all have; `bare`: and without its body."""

    async def answer(message: "Message") -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send({**message, "body": b""} if bare and "body" in message else message)

    return answer
