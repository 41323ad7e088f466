"""Attempts: what kind of failure ended one, what comes of that, and when to give up."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from semcache.canonical import Json, dumps, plain
from semcache.errors import (
    BindingError,
    CompensationFailed,
    DeadlineExceeded,
    ExpressionError,
    InputNeeded,
    InvalidInput,
    InvalidJson,
    InvalidPlan,
    InvalidSettings,
    NormalizationError,
    NotActionable,
    OperationRefused,
    PlanningError,
    PlanSuspended,
    SemCacheError,
    SourceUnavailable,
    StoreUnavailable,
)
from semcache.events import Level
from semcache.ports import Clock, Message, Model, Observer
from semcache.process.imports import ensure_imported
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.redaction import kept
from semcache.runs.run_context import told
from semcache.runs.texts import load
from semcache.schemas import faults

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
    ensure_imported("jsonschema")
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


# What comes of a failure, and when to give up.


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that failed, as stop rules and judges see it."""

    name: str
    level: Level
    attempt: int
    """1 for the first."""
    error: Exception
    fault: Fault
    seconds: float
    """Since the first attempt began."""
    wrote: tuple[str, ...] = ()
    """Operations of the attempt that may have changed the world, and take no idempotency key."""
    sent: Json = None
    """What was sent to a model, for a diagnosis."""
    history: tuple["ReflectionEntry", ...] = ()
    """The earlier failures of the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryVerdict:
    """What comes of a failure."""

    retry: bool
    reason: str
    data: Mapping[str, Json] = field(default_factory=dict)
    """Values to change or add before the next attempt."""
    system: str = ""
    """The system prompt of the next attempt; empty: as it was."""
    decision: str = ""
    """In a word what was found, for the tree: `plan`, `values`, `passing`…"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionEntry:
    """One failure that was looked at."""

    at_s: float
    """Epoch seconds."""
    level: Level
    name: str
    attempt: int
    error: str
    """Class and message of the failure, without secrets."""
    reason: str
    resolution: Literal["retry", "skip", "abort"]
    success: bool = False
    """Whether the attempt after it succeeded."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the work is told of the attempt that it is."""

    number: int
    """1 for the first."""
    verdict: RetryVerdict | None = None
    """What came of the last failure; None in the first attempt."""
    error: Exception | None = None
    """The last failure; None in the first attempt."""


@dataclass(frozen=True, slots=True)
class Stop:
    """When to give up, beside what the failure itself says; combine rules by `|` and `&`.

    tenacity has such rules too, but those about time read the machine's clock.
    """

    holds: Callable[[Failed], bool]

    def __call__(self, failed: Failed) -> bool:
        """Return whether no further attempt is made."""
        return self.holds(failed)

    def __or__(self, other: "Stop") -> "Stop":
        return Stop(lambda failed: self(failed) or other(failed))

    def __and__(self, other: "Stop") -> "Stop":
        return Stop(lambda failed: self(failed) and other(failed))


def stop_after_attempts(count: int) -> Stop:
    """Return the rule that gives up after `count` attempts.

    Raises:
        InvalidSettings: no attempt would be made.
    """
    if count < 1:
        raise InvalidSettings(f"attempts is {count!r}; expected 1 or more")
    return Stop(lambda failed: failed.attempt >= count)


def stop_after_seconds(seconds: float) -> Stop:
    """Return the rule that gives up when an attempt fails that long after the first began."""
    return Stop(lambda failed: failed.seconds >= seconds)


def stop_on(*kinds: Fault) -> Stop:
    """Return the rule that gives up at failures of these kinds."""
    return Stop(lambda failed: failed.fault in kinds)


# A model says what went wrong, and what to change.

MAX_SENT = 20_000  # characters of a prompt that a diagnosis is shown


class Diagnosis(BaseModel):
    """What a model says of a failure."""

    model_config = ConfigDict(extra="ignore", strict=True)

    should_retry: bool = Field(alias="shouldRetry")
    reason: str = Field(min_length=1, max_length=2000)
    data: dict[str, object] | None = Field(default=None, alias="revisedPromptData")
    system: str | None = Field(default=None, alias="revisedSystemPrompt")


def diagnosed(
    failed: Failed, model: Model, *, attempts: int, observer: Observer, clock: Clock
) -> RetryVerdict:
    """Return what a model says; one that fails, or says nothing of use, ends it."""
    text = load("reflect", "semcache.runs")
    earlier = [f"{e.attempt}. {e.error}: {e.reason}" for e in failed.history]
    user = text.fill(
        "user",
        level=failed.level,
        name=failed.name,
        attempt=str(failed.attempt),
        attempts=str(attempts),
        error=dumps(kept(told(failed.error))),
        sent=dumps(kept(failed.sent, max_chars=MAX_SENT)),
        history="\n".join(earlier) or "None",
    )
    dialog = Dialog(model, "reflect", 2, observer=observer, clock=clock)
    try:
        said = dialog.ask(
            [Message("system", text.fill("system")), Message("user", user)],
            read=_diagnosis,
            retry=lambda errors: text.fill("retry", errors=errors),
        )
    except SemCacheError as error:
        return RetryVerdict(retry=False, reason=f"Reflection analysis failed: {told(error)}")
    if isinstance(said, Rejected):
        return RetryVerdict(
            retry=False, reason=f"Reflection analysis failed: {'; '.join(said.errors)}"
        )
    return said.value


def _diagnosis(text: str) -> Accepted[RetryVerdict] | Rejected[RetryVerdict]:
    try:
        said = Diagnosis.model_validate(json_object(text))
    except ValidationError as error:
        return Rejected(tuple(faults(error)))
    except InvalidJson as error:
        return Rejected((str(error),))
    data = {name: plain(value, what=name) for name, value in (said.data or {}).items()}
    system = said.system or ""
    return Accepted(
        RetryVerdict(retry=said.should_retry, reason=said.reason, data=data, system=system)
    )
