"""What a program asks its model: texts, and whether a condition holds."""

from collections.abc import Sequence

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import InvalidPlan, ModelError
from semcache.events import ModelCalled
from semcache.execution.replies import RULE
from semcache.execution.variables import as_text
from semcache.plans.program import GENERATE
from semcache.ports import Clock, Completion, Message, Model, Observer

CONDITION = "condition"
"""Name of the call that decides a condition."""

_ASKED: JsonObject = {
    "type": "object",
    # StackVM's own tool takes `stream`; an answer is never streamed here.
    "properties": {"prompt": {}, "context": {}, "stream": {}},
    "required": ["prompt"],
    "additionalProperties": False,
}
CALLS = Catalog([
    Operation(GENERATE, "Ask the model.", _ASKED, effect="read"),
    Operation(CONDITION, "Let the model decide.", _ASKED, effect="read"),
])  # fmt: skip
"""What a model can be asked, described as operations."""


class Asker:
    """Asks the model for one run, and reports each call. As safe from several threads as it is."""

    def __init__(self, model: Model | None, observer: Observer, clock: Clock, run: str) -> None:
        self._model = model
        self._observer = observer
        self._clock = clock
        self._run = run

    def operation(self, name: str) -> Operation:
        """Return asking the model as an operation, so that the bounds of a call hold for it."""
        code = self._decide if name == CONDITION else self._generate
        return Operation(name, "", _ASKED, effect="read", call=code)

    def _generate(self, given: JsonObject) -> str:
        return self._complete([_question(given)], "generate")

    def _decide(self, given: JsonObject) -> str:
        return self._complete([Message("system", RULE), _question(given)], CONDITION)

    def _complete(self, messages: Sequence[Message], purpose: str) -> str:
        if self._model is None:
            raise InvalidPlan("the program asks a model, and the engine has none; give it one")
        started = self._clock.monotonic()
        try:
            said = self._model.complete(messages)
        except ModelError as error:
            self._report(Completion(""), purpose, started, type(error).__name__)
            raise
        self._report(said, purpose, started, "")
        return said.text

    def _report(self, said: Completion, purpose: str, started: float, error: str) -> None:
        self._observer(
            ModelCalled(
                run=self._run,
                purpose=purpose,
                model=said.model or (self._model.fingerprint if self._model else ""),
                attempt=1,
                seconds=self._clock.monotonic() - started,
                prompt_tokens=said.prompt_tokens,
                completion_tokens=said.completion_tokens,
                error=error,
            )
        )


def _question(given: JsonObject) -> Message:
    prompt, context = as_text(given["prompt"]), given.get("context")
    if context in (None, ""):
        return Message("user", prompt)
    return Message("user", f"{prompt}\n\nContext:\n{as_text(context)}")
