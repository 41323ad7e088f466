"""Errors as problem details (RFC 9457): which status, and what may be said."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from semcache import errors
from semcache.canonical import Json, JsonObject
from semcache.runs.redaction import hidden

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
