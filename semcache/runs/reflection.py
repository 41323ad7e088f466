"""Looking at a failure, and trying again with what was learned: bounded, and never blindly."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, overload

from semcache.canonical import Json, JsonObject, dumps, plain
from semcache.errors import InvalidSettings
from semcache.events import Event, Level, ReflectionFinished, ReflectionStarted
from semcache.ports import Clock, Message, Model, Observer, RememberingModel
from semcache.prompts.redaction import Redact, checked
from semcache.runs.attempts import (
    HOPELESS,
    Attempt,
    Diagnosis,
    Failed,
    ReflectionEntry,
    RetryVerdict,
    Stop,
    diagnosed,
    fault_of,
    stop_after_attempts,
    stop_after_seconds,
    stop_on,
)
from semcache.runs.dialog import complete
from semcache.runs.redaction import kept
from semcache.runs.run_context import Open, here, is_async, run_id, told
from semcache.runs.run_context import node as open_node

__all__ = [
    "Attempt",
    "Diagnosis",
    "Failed",
    "Prompt",
    "Reflection",
    "ReflectionEntry",
    "RetryVerdict",
    "Stop",
    "stop_after_attempts",
    "stop_after_seconds",
    "stop_on",
]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked: a text, the data that it is about, and a system prompt.

    Data that is not JSON (NaN, a set, a cycle) raises InvalidJson.
    """

    user: str
    data: Mapping[str, Json] = field(default_factory=dict)
    system: str = ""

    def __post_init__(self) -> None:
        plain(self.data, what="the data of a prompt")

    def messages(self, complaint: str = "") -> tuple[Message, ...]:
        """Return it as messages; `complaint` says what was wrong with the last answer."""
        user = f"{self.user}\n\n{dumps(dict(self.data))}" if self.data else self.user
        system = (Message("system", self.system),) if self.system else ()
        wrong = (Message("user", complaint),) if complaint else ()
        return (*system, Message("user", user), *wrong)

    def revised(self, verdict: RetryVerdict) -> "Prompt":
        """Return it with what a verdict changes."""
        data = {**self.data, **verdict.data}
        return replace(self, data=data, system=verdict.system or self.system)


T = TypeVar("T")

Judge: TypeAlias = Callable[[Failed], RetryVerdict | None]
"""Says what comes of a failure; None: as usual."""

ATTEMPTS = 3
MAX_HISTORY = 1000


class Reflection:
    """Tries work again that failed, with what was learned from the failure. Safe from threads.

    Rate limits, refused credentials and spent quotas end it at once, and so does an attempt that
    wrote what it must not write twice. What is not valid is tried again with the error as feedback;
    what was too late, once; anything else while attempts are left. A model may judge instead, and
    revise data or system prompt, which the next attempt is given. Each attempt is a node of the run
    tree (`X`, then `X (retry 1)`), each look at a failure another.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        enabled: bool = True,
        attempts: int = ATTEMPTS,
        delay_s: float = 0.0,
        stop: Stop | None = None,
        model: Model | None = None,
        observer: Observer | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            clock: Waits, and times.
            enabled: False: one attempt each, whose error is raised as it is.
            attempts: Attempts at most, the first one counted.
            delay_s: Seconds before each further attempt.
            stop: A further rule of when to give up.
            model: Is asked what went wrong; None: the kind of the failure decides.
            observer: Hears of reflections outside a run; inside one, the run's own does.
            redact: Changes every text of the history that must not be written down.

        Raises:
            InvalidSettings: no attempt, or a negative delay.
        """
        if delay_s < 0:
            raise InvalidSettings(f"delay_s is {delay_s!r}; expected 0 or more")
        bound = stop_after_attempts(attempts if enabled else 1)
        self._stop = bound if stop is None else bound | stop
        self._enabled = enabled
        self._attempts = attempts
        self._delay_s = delay_s
        self._model = model
        self._clock = clock
        self._observer = observer
        self._redact = redact
        self._lock = threading.Lock()
        self._history: deque[ReflectionEntry] = deque(maxlen=MAX_HISTORY)

    @property
    def history(self) -> tuple[ReflectionEntry, ...]:
        """The latest failures that were looked at, oldest first; at most 1000."""
        with self._lock:
            return tuple(self._history)

    @overload
    def step(
        self,
        name: str,
        work: Callable[[Attempt], Coroutine[Any, Any, T]],
        *,
        level: Level = "step",
        judge: Judge | None = None,
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def step(
        self,
        name: str,
        work: Callable[[Attempt], T],
        *,
        level: Level = "step",
        judge: Judge | None = None,
    ) -> T: ...
    def step(
        self,
        name: str,
        work: Callable[[Attempt], Any],
        *,
        level: Level = "step",
        judge: Judge | None = None,
    ) -> Any:
        """Return what `work` gives, tried as often as it makes sense; of an `async def`, await it.

        `judge` looks at a failure first; None from it: as usual.

        Raises:
            Exception: what the last attempt raised.
        """
        tries = _Tries(name, level, judge, sent=lambda: None, started_s=self._clock.monotonic())
        return (self._awaited if is_async(work) else self._tried)(tries, work)

    def ask(
        self, prompt: Prompt, model: Model, *, read: Callable[[str], T], name: str = "ask"
    ) -> T:
        """Return what `read` makes of the model's answer; what it raises is what is wrong with it.

        A further attempt sends the prompt as it was revised, and what was wrong; it takes nothing
        from the memory of a model that remembers, where the answer that failed is forgotten.

        Raises:
            Exception: what the last attempt raised: a ModelError, or an error of `read`.
        """
        current = [prompt]

        def work(attempt: Attempt) -> T:
            complaint = ""
            if attempt.verdict is not None and attempt.error is not None:
                current[0] = current[0].revised(attempt.verdict)
                complaint = f"The last answer could not be used: {told(attempt.error)}"
            messages = current[0].messages(complaint)
            said = complete(
                model,
                messages,
                purpose="ask",
                attempt=attempt.number,
                fresh=attempt.number > 1,
                observer=self._emit,
                clock=self._clock,
            )
            try:
                return read(said.text)
            except Exception:  # whatever is wrong with the answer, it is not to be remembered
                if isinstance(model, RememberingModel):
                    model.forget(messages)
                raise

        tries = _Tries(
            name,
            "model",
            None,
            sent=lambda: _sent(current[0]),
            started_s=self._clock.monotonic(),
        )
        return self._tried(tries, work)

    # Attempts ----------------------------------------------------------------------------------

    def _tried(self, tries: "_Tries", work: Callable[[Attempt], T]) -> T:
        while True:
            opened = open_node(tries.label, "attempt")
            try:
                with opened:
                    value = work(tries.attempt)
            except Exception as error:  # whatever work raises is looked at, and raised in the end
                if not self._again(tries, error, opened):
                    raise
            else:
                self._succeeded(tries.failures)
                return value

    async def _awaited(
        self, tries: "_Tries", work: Callable[[Attempt], Coroutine[Any, Any, T]]
    ) -> T:
        while True:
            opened = open_node(tries.label, "attempt")
            try:
                with opened:
                    value = await work(tries.attempt)
            except Exception as error:
                # A model may be asked, and a delay slept, which would hold up the loop.
                if not await asyncio.to_thread(self._again, tries, error, opened):
                    raise
            else:
                self._succeeded(tries.failures)
                return value

    def _again(self, tries: "_Tries", error: Exception, opened: Open) -> bool:
        """Look at a failure; return whether there is another attempt."""
        failed = Failed(
            name=tries.name,
            level=tries.level,
            attempt=tries.attempt.number,
            error=error,
            fault=fault_of(error),
            seconds=self._clock.monotonic() - tries.started_s,
            wrote=() if opened.here is None else tuple(opened.here.writes),
            sent=tries.sent(),
            history=tuple(tries.failures),
        )
        if self._stop(failed):
            return False
        verdict, entry = self._reflected(failed, tries.judge)
        if verdict.retry:
            tries.failures.append(entry)
            tries.attempt = Attempt(tries.attempt.number + 1, verdict, error)
        return verdict.retry

    def _reflected(
        self, failed: Failed, judge: Judge | None
    ) -> tuple[RetryVerdict, ReflectionEntry]:
        """Return what comes of a failure, and the entry of the history that says so."""
        error = str(kept(told(failed.error)))
        run = run_id()
        self._emit(
            ReflectionStarted(
                run=run,
                level=failed.level,
                name=failed.name,
                attempt=failed.attempt,
                error=error,
            )
        )
        with open_node(f"reflection on {failed.name}", "reflection") as opened:
            verdict = self._verdict(failed, judge)
            opened.note(decision=verdict.decision or failed.fault, reason=verdict.reason)
        entry = self._record(
            ReflectionEntry(
                at_s=self._clock.now(),
                level=failed.level,
                name=failed.name,
                attempt=failed.attempt,
                error=error,
                reason=verdict.reason,
                resolution="retry" if verdict.retry else "abort",
            )
        )
        if verdict.retry and self._delay_s:
            self._clock.sleep(self._delay_s)
        self._emit(
            ReflectionFinished(
                run=run,
                level=failed.level,
                name=failed.name,
                attempt=failed.attempt,
                retry=verdict.retry,
                reason=verdict.reason,
            )
        )
        return verdict, entry

    def _verdict(self, failed: Failed, judge: Judge | None) -> RetryVerdict:
        if failed.wrote:
            what = ", ".join(dict.fromkeys(failed.wrote))
            reason = f"{what} may have written already, and takes no idempotency key"
            return RetryVerdict(retry=False, reason=reason, decision="wrote")
        if failed.fault in HOPELESS:
            reason = f"Non-retryable error: {failed.fault}"
            return RetryVerdict(retry=False, reason=reason)
        found = judge(failed) if judge is not None else None
        if found is not None:
            return found
        if self._model is None:
            return _usual(failed)
        return diagnosed(
            failed,
            self._model,
            attempts=self._attempts,
            observer=self._emit,
            clock=self._clock,
        )

    # What is told of it ------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        standing = here()
        if standing is not None:
            standing.emit(event)
        elif self._observer is not None:
            self._observer(event)

    def _record(self, entry: ReflectionEntry) -> ReflectionEntry:
        if self._redact is not None:
            error, reason = (checked(self._redact, text) for text in (entry.error, entry.reason))
            entry = replace(entry, error=error, reason=reason)
        with self._lock:
            self._history.append(entry)
        return entry

    def _succeeded(self, failures: Sequence[ReflectionEntry]) -> None:
        if not failures:
            return
        with self._lock:
            for place in reversed(range(len(self._history))):
                if self._history[place] is failures[-1]:
                    self._history[place] = replace(failures[-1], success=True)
                    return


@dataclass(slots=True)
class _Tries:
    """The attempts at one piece of work."""

    name: str
    level: Level
    judge: Judge | None
    sent: Callable[[], Json]
    """What went to a model, for a diagnosis."""
    started_s: float
    attempt: Attempt = field(default_factory=lambda: Attempt(1))
    failures: list[ReflectionEntry] = field(default_factory=list)

    @property
    def label(self) -> str:
        """How the attempt is called in the tree."""
        number = self.attempt.number
        return self.name if number == 1 else f"{self.name} (retry {number - 1})"


def _usual(failed: Failed) -> RetryVerdict:
    """Return what the kind of a failure says."""
    if failed.fault == "validation":
        return RetryVerdict(
            retry=True, reason="Validation/parsing error: tried again with feedback"
        )
    if failed.fault == "timeout":
        again = failed.attempt < 2
        return RetryVerdict(
            retry=again, reason="Too late: tried again" if again else "Too late again"
        )
    return RetryVerdict(retry=True, reason=f"{type(failed.error).__name__}: tried again")


def _sent(prompt: Prompt) -> JsonObject:
    return {"user": prompt.user, "data": dict(prompt.data), "system": prompt.system}
