"""A dialog with a model: asked until its answer can be used, and told what was wrong."""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from semcache.canonical import Json, JsonObject, no_constant, plain
from semcache.errors import InvalidJson, InvalidSettings, SemCacheError
from semcache.events import ModelCalled
from semcache.ports import Clock, Completion, Message, Model, Observer, RememberingModel
from semcache.prompts.redaction import Redact
from semcache.runs.run_context import run_id

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
class Dialog:
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
            text = complete(
                self.model,
                said,
                purpose=self.purpose,
                attempt=attempt,
                fresh=fresh or attempt > 1,
                observer=self.observer,
                clock=self.clock,
            ).text
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


def complete(
    model: Model,
    messages: Sequence[Message],
    *,
    purpose: str,
    observer: Observer | None,
    clock: Clock | None,
    attempt: int = 1,
    fresh: bool = False,
    run: str | None = None,
) -> Completion:
    """Return what `model` says, and tell of the call.

    Args:
        model: Is asked.
        messages: The conversation so far.
        purpose: What it is asked for: `plan`.
        observer: Hears of the call, failed or not; None: nobody does.
        clock: Times the call; None: the machine's own clock.
        attempt: 1 for the first.
        fresh: Whether a model that remembers is asked all the same.
        run: Id of the run that the call belongs to; None: the one that the running code stands in.

    Raises:
        ModelError: the model cannot answer.
    """
    monotonic = time.monotonic if clock is None else clock.monotonic
    ask = model.fresh if fresh and isinstance(model, RememberingModel) else model.complete
    started = monotonic()

    def tell(said: Completion, error: str = "") -> None:
        if observer is not None:
            observer(
                ModelCalled(
                    run=run_id() if run is None else run,
                    purpose=purpose,
                    model=said.model or model.fingerprint,
                    attempt=attempt,
                    seconds=monotonic() - started,
                    prompt_tokens=said.prompt_tokens,
                    completion_tokens=said.completion_tokens,
                    error=error,
                    cached=said.cached,
                )
            )

    try:
        said = ask(messages)
    except SemCacheError as error:
        tell(Completion(""), type(error).__name__)
        raise
    tell(said)
    return said


def _complaint(errors: tuple[str, ...], retry: Callable[[str], str]) -> list[Message]:
    if not errors:
        return []
    return [Message("user", retry("\n".join(f"- {error}" for error in errors)))]


CONTEXT = 30
"""Characters shown on each side of a fault."""
SHOWN = 1500
"""Characters of an answer that are shown with a fault."""


def json_object(text: str, *, listed: str = "") -> JsonObject:
    """Return the first JSON object in `text`.

    With `listed`, an array of objects counts too, as the object that has it under that name.

    Reasoning in `<think>` and words around the object are passed over; a fenced block goes before
    anything outside it, the first before others. Commas before a closing bracket, closing brackets
    that nothing opened, and line breaks inside texts are forgiven; nothing that could be read in
    two ways is.

    Raises:
        InvalidJson: there is no object, or it is broken; the message shows where, for the model.
    """
    said = _without_reasoning(text)
    start = _start(said, listed)
    found = "".join(_mended(said, start))
    try:
        value: Json = json.loads(
            found, strict=False, parse_constant=no_constant, object_pairs_hook=_members
        )
        copy = plain(value, what="the answer")
    except json.JSONDecodeError as error:
        raise InvalidJson(_broken(error.msg, found, error.pos)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidJson(_broken(str(error), found, 0)) from error
    if listed and isinstance(copy, list):
        return {listed: copy}
    if not isinstance(copy, dict):
        raise InvalidJson("the answer is no JSON object; expected one that starts with '{'")
    return copy


def _without_reasoning(text: str) -> str:
    """Return `text` after its reasoning; some models close `<think>` without having opened it."""
    before, closed, after = text.partition("</think>")
    opened = text.lstrip().startswith("<think>")
    if closed and (opened or "<think>" not in before):
        return after
    if opened:
        raise InvalidJson("the answer ends inside <think>; expected one JSON object after it")
    return text


# At the start of a line only: inside a text of the object a fence is data.
_FENCES = (
    re.compile(r"^[ \t]*```json\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*```\w*\s*(?=\{)", re.MULTILINE),
)
_LISTED_FENCES = (_FENCES[0], re.compile(r"^[ \t]*```\w*\s*(?=[\[{])", re.MULTILINE))
_OBJECT = re.compile(r"\{(?=\s*[\"}])")
_LISTED = re.compile(r"\{(?=\s*[\"}])|\[(?=\s*\{\s*\")")


def _start(said: str, listed: str) -> int:
    """Return where the object begins.

    Only a brace before a quote or its own end counts: words may have braces too, and an object
    inside a broken one must never be taken for the whole.
    """
    fences, begins = (_LISTED_FENCES, _LISTED) if listed else (_FENCES, _OBJECT)
    fence = next((match for match in (f.search(said) for f in fences) if match), None)
    found = begins.search(said, fence.end() if fence else 0)
    if found is None:
        raise InvalidJson(
            f"no JSON object was found in {said.strip()[:SHOWN]!r}; expected one JSON object"
        )
    return found.start()


_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[{}\[\]]|(?P<surplus>,)(?=\s*[}\]])|[^"{}\[\],]+|.', re.DOTALL
)
_OPENS = {"}": "{", "]": "["}


def _mended(said: str, start: int) -> Iterator[str]:
    """Yield the object that begins at `start`, less the commas and brackets that are too many."""
    stack: list[str] = []
    for token in _TOKEN.finditer(said, start):
        match token[0]:
            case "{" | "[":
                stack.append(token[0])
                yield token[0]
            case "}" | "]" as closer:
                if stack[-1] == _OPENS[closer]:
                    stack.pop()
                    yield closer
                if not stack:
                    _nothing_follows(said, start, token.end())
                    return
            case word if token["surplus"] is None:
                yield word
    raise InvalidJson(_broken("it ends before it is closed", said[start:], len(said) - start))


_CONTINUES = re.compile(r"[\s}\]]*(?:[,:]\s*[\"{\[]|\"[^\"\n]*\"\s*:)")


def _nothing_follows(said: str, start: int, end: int) -> None:
    """Raise if the object goes on after its end: a bracket too many would cut it in half."""
    if _CONTINUES.match(said, end):
        raise InvalidJson(_broken("it is closed too early", said[start:], end - start))


def _members(pairs: list[tuple[str, Json]]) -> JsonObject:
    members: JsonObject = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key!r} stands twice in one object")
        members[key] = value
    return members


def _broken(what: str, text: str, at: int) -> str:
    near = text[max(0, at - CONTEXT) : at + CONTEXT]
    return f"the JSON is broken: {what} at character {at}, near {near!r}, in {text[:SHOWN]}"
