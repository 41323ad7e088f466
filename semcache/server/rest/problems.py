"""Errors as problem details (RFC 9457), and the limits of what a request may bring."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from semcache import errors
from semcache.canonical import Json, JsonObject
from semcache.runs.redaction import hidden

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


MEDIA_TYPE = "application/problem+json"
RETRY_S = 1
"""Seconds after which a caller may try again what another try may bring."""

_STATUSES: Mapping[type[errors.SemCacheError], HTTPStatus] = {
    errors.UnknownTool: HTTPStatus.NOT_FOUND,
    errors.UnknownLookup: HTTPStatus.NOT_FOUND,
    errors.InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NotInRun: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.UnknownOperation: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.PlanSuspended: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.PlanningError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.BindingError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NormalizationError: HTTPStatus.BAD_GATEWAY,
    errors.DeadlineExceeded: HTTPStatus.GATEWAY_TIMEOUT,
    errors.OperationRefused: HTTPStatus.FORBIDDEN,
    errors.ExecutionError: HTTPStatus.BAD_GATEWAY,
    errors.StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.EmbeddingError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ModelUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ModelError: HTTPStatus.BAD_GATEWAY,
    errors.SourceUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SourceError: HTTPStatus.BAD_GATEWAY,
    errors.NotAllowed: HTTPStatus.FORBIDDEN,
    errors.Busy: HTTPStatus.TOO_MANY_REQUESTS,
    errors.MissingExtra: HTTPStatus.NOT_IMPLEMENTED,
}
"""The nearest class of an error in its tree decides; any other is a fault of the server."""
_AGAIN = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="`urn:semcache:` and the name of the error")
    title: str = Field(description="The name of the error, or of the status")
    status: int
    detail: str = Field(description="What was found, what was expected, and the way out")
    findings: list[str] = Field(default=[], description="Everything that is wrong with a plan")
    questions: list[str] = Field(default=[], description="What to ask the person first")


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    title: str = "",
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Json] | None = None,
) -> JSONResponse:
    """Return an answer that tells of a problem. `title`: the name of an error of ours."""
    body: JsonObject = {
        "type": f"urn:semcache:{title}" if title else "about:blank",
        "title": title or status.phrase,
        "status": int(status),
        "detail": detail,
        **(more or {}),
    }
    again = {"Retry-After": str(RETRY_S)} if status in _AGAIN else {}
    return JSONResponse(body, int(status), {**again, **(headers or {})}, media_type=MEDIA_TYPE)


def problem_of(error: errors.SemCacheError) -> JSONResponse:
    """Return an error of ours as an answer, in its own words but for secrets."""
    classes = (c for c in type(error).__mro__ if c in _STATUSES)
    status = _STATUSES.get(next(classes, errors.SemCacheError), HTTPStatus.INTERNAL_SERVER_ERROR)
    more: dict[str, Json] = {}
    if isinstance(error, errors.InvalidPlan):
        more["findings"] = [hidden(finding) for finding in error.findings]
    if isinstance(error, errors.Referred):
        more["questions"] = [hidden(question) for question in error.questions]
    return problem(status, hidden(str(error)), title=type(error).__name__, more=more)


def tell_problems(app: FastAPI) -> None:
    """Let `app` answer every error by a problem."""

    @app.exception_handler(errors.SemCacheError)
    async def ours(_: Request, error: errors.SemCacheError) -> JSONResponse:
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without what was sent: it may be long, or secret.
        told = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        return problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the request does not fit: {'; '.join(told)}",
            title="InvalidInput",
        )

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> JSONResponse:
        status = HTTPStatus(error.status_code)
        return problem(status, str(error.detail), headers=error.headers)

    @app.exception_handler(Exception)
    async def unknown(_: Request, __: Exception) -> JSONResponse:
        # The server logs it; what it says may be of any kind, so that nothing is said of it here.
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its log says why")


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
