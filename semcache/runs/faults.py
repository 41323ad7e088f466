"""What kind of failure an error is: told by its type and its status, never by its words."""

import json
from collections.abc import Iterator
from typing import Literal

import jsonschema
import pydantic

from semcache.errors import (
    BindingError,
    CompensationFailed,
    DeadlineExceeded,
    ExpressionError,
    InputNeeded,
    InvalidInput,
    InvalidJson,
    InvalidPlan,
    NormalizationError,
    NotActionable,
    OperationRefused,
    PlanningError,
    PlanSuspended,
    SourceUnavailable,
    StoreUnavailable,
)

Fault = Literal[
    "rate", "auth", "quota", "final", "validation", "input", "timeout", "passing", "other"
]
"""`rate`, `auth`, `quota`: the other side will not have us now, or at all. `final`: another try
would harm, or makes no sense. `validation`: what came is not what was expected. `input`: the
caller's values will not do. `timeout`: too late. `passing`: not there, overloaded. `other`: the
rest."""

HOPELESS: frozenset[Fault] = frozenset({"rate", "auth", "quota", "final"})
"""What reflection does not try again."""

MAX_CAUSES = 16

_TYPES: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    ((InputNeeded, CompensationFailed, PlanSuspended, NotActionable), "final"),
    ((DeadlineExceeded, TimeoutError), "timeout"),
    ((PermissionError,), "auth"),
    ((SourceUnavailable, StoreUnavailable, ConnectionError), "passing"),
    (
        (
            pydantic.ValidationError,
            jsonschema.ValidationError,
            json.JSONDecodeError,
            InvalidJson,
            InvalidPlan,
            NormalizationError,
            PlanningError,
            BindingError,
            OperationRefused,
            ExpressionError,
        ),
        "validation",
    ),
    ((InvalidInput,), "input"),
)
"""The first row that fits decides: subclasses stand above their bases."""

_STATUSES: dict[int, Fault] = {
    400: "input", 401: "auth", 402: "quota", 403: "auth", 404: "input", 407: "auth",
    408: "timeout", 409: "input", 410: "input", 422: "input", 425: "passing", 429: "rate",
    504: "timeout",
}  # fmt: skip
_QUOTA = frozenset({"insufficient_quota", "quota_exceeded", "billing_hard_limit_reached"})


def fault_of(error: BaseException) -> Fault:
    """Return what kind of failure `error` is: the first that it, or what caused it, tells.

    A status (`status`, `status_code`, or that of a `response`) says more than a type.
    """
    for each in causes(error):
        fault = _of_one(each)
        if fault != "other":
            return fault
    return "other"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, what caused it, what caused that, and so on; at most 16."""
    current: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__


def _of_one(error: BaseException) -> Fault:
    code = getattr(error, "code", None)
    if code in _QUOTA:
        return "quota"
    if code == "timeout":
        return "timeout"
    status = _status(error)
    if status is not None:
        return _STATUSES.get(status, "passing" if status >= 500 else "other")
    return next((fault for types, fault in _TYPES if isinstance(error, types)), "other")


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
                return status
    return None
