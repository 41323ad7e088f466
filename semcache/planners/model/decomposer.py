"""Decomposition by a language model: with the operations in sight (grounded), or without."""

from collections.abc import Sequence

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Operation
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.step_answers import StepReader
from semcache.planners.steps.intents import Decomposer, Decomposition, Deferred
from semcache.ports import Clock, Message, Model, Observer, PlanRequest
from semcache.prompts.redaction import Redact
from semcache.runs.dialog import Dialog, Rejected
from semcache.runs.texts import load, shown

ATTEMPTS = 2
"""Calls at most for one prompt; each after the first is told what was wrong."""
SURE = 0.7
"""Confidence from which a decomposition is taken without asking a further strategy."""


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
        grounded = tools is not None
        system = self._text.fill(
            "system",
            toolfield=', "tool": "..."' if grounded else "",
            tools=self._text.fill("tools", operations=shown(_described(tools or ())))
            if grounded
            else "",
        )
        values: JsonObject = {one.name: one.value for one in request.params}
        failure = self._text.fill("failure", error=request.failure) if request.failure else ""
        grounding = (
            self._text.fill("grounding", grounding=shown(request.grounding.to_json()))
            if request.grounding
            else ""
        )
        user = self._text.fill(
            "user",
            params=shown(values) if values else "none",
            failure=f"\n{failure}\n" if failure else "",
            grounding=f"\n{grounding}\n" if grounding else "",
            prompt=shown(request.prompt),
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
    """Asks strategies in turn and takes the first that is sure, else the surest.

    Every strategy that deferred, or was less than sure, stands in the reasons of the decomposition.
    Patterns first, then the grounded model, then the one that sees no operations, is the order that
    `wiring` gives. For a request whose last plan failed the first is asked last. Satisfies
    `Decomposer`.
    """

    def __init__(self, strategies: Sequence[Decomposer]) -> None:
        """Keep the strategies, asked in this order."""
        self._strategies = tuple(strategies)

    @property
    def name(self) -> str:
        """The strategies, in order."""
        return "hybrid(" + ", ".join(one.name for one in self._strategies) + ")"

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the first sure decomposition, else the surest, else why there is none.

        Raises:
            NotActionable: a model says that this cannot be done.
            ModelError: the model behind a strategy cannot answer.
        """
        told: list[str] = []
        weak: list[Decomposition] = []
        # What failed was most likely said by the first one, which would only say it again.
        last = self._strategies[:1] if request.failure else ()
        for strategy in (*self._strategies[len(last) :], *last):
            found = strategy.decompose(request)
            if isinstance(found, Deferred):
                told.append(f"{found.strategy} deferred: {found.why}")
            elif found.confidence >= SURE:
                return _with_reasons(found, told)
            else:
                told.append(
                    f"{found.strategy} is {found.confidence:.2f} sure; {SURE:.2f} is wanted"
                )
                weak.append(found)
        if weak:
            return _with_reasons(max(weak, key=lambda one: one.confidence), told)
        return Deferred(self.name, "; ".join(told) or "there is no strategy; give it one")


def _with_reasons(found: Decomposition, told: Sequence[str]) -> Decomposition:
    return Decomposition(
        found.goal, found.intents, found.confidence, found.strategy, (*told, *found.reasons)
    )


def _described(tools: Sequence[Operation]) -> list[Json]:
    return [
        {
            "name": one.name,
            "summary": one.summary,
            "input_schema": one.input_schema,
            "output_schema": one.output_schema or "unknown",
        }
        for one in tools
    ]
