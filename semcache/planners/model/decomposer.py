"""Decomposition by a language model: with the operations in sight (grounded), or without."""

from collections.abc import Sequence
from dataclasses import replace

from semcache.canonical import JsonObject
from semcache.catalog.operation import Operation
from semcache.planners.model.planner import circumstances, described
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.step_answers import StepReader
from semcache.planners.steps.intents import Decomposer, Decomposition, Deferred
from semcache.ports import Clock, Message, Model, Observer, PlanRequest
from semcache.prompts.redaction import Redact
from semcache.runs.dialog import Dialog, Rejected
from semcache.runs.texts import load, shown

ATTEMPTS = 2
"""Calls at most for one prompt; each after the first is told what was wrong."""


class ModelDecomposer:
    """Asks a model for the steps of a goal; what it says is checked and sent back if it is wrong.

    `IntentFirst` shows it no operations, `GroundedDecomposer` the operations that are near. Safe
    from several threads if the model is. Satisfies `Decomposer`.
    """

    strategy = "intent-first"
    confidence = 0.7

    def __init__(
        self,
        model: Model,
        *,
        relevant: Relevant | None = None,
        observer: Observer | None = None,
        clock: Clock | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            relevant: Tells which operations a grounded model is shown; None: all.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
            redact: Leaves of what is wrong with an answer what may be logged; None: all.
        """
        self._dialog = Dialog(model, "decompose", ATTEMPTS, observer, clock, redact)
        self._text = load("decompose")
        self._relevant = relevant

    @property
    def name(self) -> str:
        """The strategy, the model and the version of its prompt text."""
        return f"{self.strategy}/{self._dialog.model.fingerprint}/{self._text.label}"

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the steps that the model tells, or why it told none that can be used.

        Raises:
            NotActionable: the model says that the request cannot be taken apart.
            ModelError: the model cannot answer.
        """
        tools = self._tools(request)
        reading = StepReader(request, tools)
        result = self._dialog.ask(
            self._messages(request, tools),
            read=reading.read,
            retry=lambda errors: self._text.fill("retry", errors=errors),
            fresh=bool(request.failure),
        )
        if isinstance(result, Rejected):
            told = "; ".join(result.errors)
            what = f"no steps after {ATTEMPTS} attempt(s): {told}"
            return Deferred(self.strategy, what)
        return Decomposition(request.prompt, result.value, self.confidence, self.strategy)

    def _tools(self, request: PlanRequest) -> tuple[Operation, ...] | None:
        """Return the operations to show; None to show none."""
        del request
        return None

    def _messages(self, request: PlanRequest, tools: Sequence[Operation] | None) -> list[Message]:
        system = self._text.fill(
            "system",
            toolfield=', "tool": "..."' if tools else "",
            tools=self._text.fill("tools", operations=shown(described(tools))) if tools else "",
        )
        values: JsonObject = {one.name: one.value for one in request.params}
        user = self._text.fill(
            "user",
            params=shown(values) if values else "none",
            prompt=shown(request.prompt),
            **circumstances(self._text, request),
        )
        return [Message("system", system), Message("user", user)]


class IntentFirst(ModelDecomposer):
    """Takes goals apart with no operation in sight: what people want, whatever can be done."""


class GroundedDecomposer(ModelDecomposer):
    """Takes goals apart with the operations in sight that are near in domain and in meaning.

    A step names the operation that does it, or says that none does; an operation that it made up
    is sent back.
    """

    strategy = "grounded"
    confidence = 0.75

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the steps that the model tells; deferred for an empty catalog. See the base."""
        if not request.catalog:
            return Deferred(self.strategy, "the catalog is empty: there is no operation to show")
        return super().decompose(request)

    def _tools(self, request: PlanRequest) -> tuple[Operation, ...] | None:
        if self._relevant is None:
            return tuple(request.catalog)
        return self._relevant.find(request.prompt, request.catalog)


class Hybrid:
    """Asks strategies in turn and takes the first that does not defer.

    Every strategy that deferred stands in the reasons of the decomposition. For a request whose
    last plan failed the first is asked last. Satisfies `Decomposer`.
    """

    def __init__(self, strategies: Sequence[Decomposer]) -> None:
        """Keep the strategies, asked in this order."""
        self._strategies = tuple(strategies)

    @property
    def name(self) -> str:
        """The strategies, in order."""
        return "hybrid(" + ", ".join(one.name for one in self._strategies) + ")"

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the first decomposition, else why there is none.

        Raises:
            NotActionable: a model says that this cannot be done.
            ModelError: the model behind a strategy cannot answer.
        """
        told: list[str] = []
        # What failed was most likely said by the first one, which would only say it again.
        last = self._strategies[:1] if request.failure else ()
        for strategy in (*self._strategies[len(last) :], *last):
            found = strategy.decompose(request)
            if isinstance(found, Decomposition):
                return replace(found, reasons=(*told, *found.reasons))
            told.append(f"{found.strategy} deferred: {found.why}")
        return Deferred(self.name, "; ".join(told) or "there is no strategy; give it one")
