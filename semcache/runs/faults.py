"""What kind of failure an error is: told by its status, its type, and last by listed words."""

import json
import re
from collections.abc import Iterator
from typing import Literal

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


_WORDS: tuple[tuple[re.Pattern[str], Fault], ...] = (
    (re.compile(r"\brate limit"), "rate"),
    (re.compile(r"\b(?:authentication|unauthorized)\b"), "auth"),
    (re.compile(r"\bquota exceeded\b"), "quota"),
    (re.compile(r"\b(?:validation|parse|parsing|schema|json)\b"), "validation"),
    (re.compile(r"\b(?:timeout|timed out)\b"), "timeout"),
)
"""The words of groundswell's document, in its order. Not the numbers and `network` of its code: a
message that "took 4010 ms" is no 401."""


def fault_of(error: BaseException) -> Fault:
    """Return what kind of failure `error` is: the first that it, or what caused it, tells.

    A status (`status`, `status_code`, or that of a `response`) says more than a type, and a type
    more than the message, which decides only where nothing else does.
    """
    chain = tuple(causes(error))
    for tell in (_of_one, _of_words):
        for each in chain:
            fault = tell(each)
            if fault != "other":
                return fault
    return "other"


def _of_words(error: BaseException) -> Fault:
    said = str(error).lower()
    return next((fault for words, fault in _WORDS if words.search(said)), "other")


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
    # Clients that are not imported here (httpx, openai, requests) name their timeouts alike.
    if any("Timeout" in base.__name__ for base in type(error).__mro__):
        return "timeout"
    from jsonschema import ValidationError  # noqa: PLC0415 - 0.05 s that only a failure pays

    if isinstance(error, ValidationError):
        return "validation"
    return next((fault for types, fault in _TYPES if isinstance(error, types)), "other")


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
                return status
    return None
