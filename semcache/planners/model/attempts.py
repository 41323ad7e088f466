"""Asking a model until its answer can be used, and telling it what was wrong."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from semcache.errors import InvalidSettings, ModelError
from semcache.events import ModelCalled
from semcache.ports import Clock, Completion, Message, Model, Observer, RememberingModel
from semcache.prompts.redaction import Redact
from semcache.runs.here import run_id

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T]):
    """An answer that can be used."""

    value: T
    answer: str = ""
    """The answer as it came."""


@dataclass(frozen=True, slots=True)
class Rejected(Generic[T]):
    """An answer that should be better, or that cannot be used at all."""

    errors: tuple[str, ...]
    """What is wrong, in words for the model that gave it."""
    usable: T | None = None
    """What it is good for if no better answer comes; None: nothing."""
    answer: str = ""
    """The answer as it came."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked: for what, how often, and who hears of it."""

    model: Model
    purpose: str
    """What it is asked for: `normalize`, `plan`."""
    attempts: int
    """Calls at most; at least 1."""
    observer: Observer | None = None
    clock: Clock | None = None
    """Times the calls; None: the machine's own clock."""
    redact: Redact | None = None
    """Leaves of a text what may be logged; None: all."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidSettings(f"attempts is {self.attempts!r}; expected 1 or more")

    def ask(
        self,
        messages: Sequence[Message],
        *,
        read: Callable[[str], Accepted[T] | Rejected[T]],
        retry: Callable[[str], str],
        fresh: bool = False,
    ) -> Accepted[T] | Rejected[T]:
        """Return the first answer that `read` accepts; else the last one that it rejected.

        After a rejection the same messages are sent with one more: `retry(errors)`. What was said
        before does not pile up (specs/onemcp.md, A3). An answer that was rejected but is usable
        is accepted in the end.

        A model that remembers forgets what was rejected, and takes nothing from memory after a
        rejection, nor at all if `fresh`.

        Raises:
            ModelError: the model cannot answer.
        """
        rejected: Rejected[T] = Rejected(())
        usable: Accepted[T] | None = None
        for attempt in range(1, self.attempts + 1):
            said = [*messages, *_complaint(rejected.errors, retry)]
            text = self._call(said, attempt, fresh=fresh or attempt > 1).text
            result = read(text)
            if isinstance(result, Accepted):
                return Accepted(result.value, text)
            self.forget(said)
            rejected = Rejected(result.errors, result.usable, text)
            usable = usable if result.usable is None else Accepted(result.usable, text)
            self._log(attempt, rejected.errors)
        return usable or rejected

    def _log(self, attempt: int, errors: tuple[str, ...]) -> None:
        # What is wrong is said in the words of the answer, which has the values of the prompt.
        said = errors if self.redact is None else tuple(map(self.redact, errors))
        log.info("attempt %d to %s was rejected: %s", attempt, self.purpose, said)

    def forget(self, messages: Sequence[Message]) -> None:
        """Let a model that remembers forget its answer to `messages`."""
        if isinstance(self.model, RememberingModel):
            self.model.forget(messages)

    def _call(self, messages: Sequence[Message], attempt: int, *, fresh: bool) -> Completion:
        started = self._seconds()
        asked = self.model
        complete = asked.fresh if fresh and isinstance(asked, RememberingModel) else asked.complete
        try:
            completion = complete(messages)
        except ModelError as error:
            self._report(Completion(""), attempt, started, type(error).__name__)
            raise
        self._report(completion, attempt, started, "")
        return completion

    def _report(self, completion: Completion, attempt: int, started: float, error: str) -> None:
        if self.observer is not None:
            self.observer(
                ModelCalled(
                    run=run_id(),
                    purpose=self.purpose,
                    model=completion.model or self.model.fingerprint,
                    attempt=attempt,
                    seconds=self._seconds() - started,
                    prompt_tokens=completion.prompt_tokens,
                    completion_tokens=completion.completion_tokens,
                    error=error,
                    cached=completion.cached,
                )
            )

    def _seconds(self) -> float:
        return self.clock.monotonic() if self.clock is not None else time.monotonic()


def _complaint(errors: tuple[str, ...], retry: Callable[[str], str]) -> list[Message]:
    if not errors:
        return []
    return [Message("user", retry("\n".join(f"- {error}" for error in errors)))]
