"""Taking goals apart: the port of every strategy, and what stands for one that could not."""

from collections.abc import Sequence
from typing import Protocol

from semcache.planners.steps.intents import Decomposition, Deferred
from semcache.ports import PlanRequest

MAX_INTENTS = 50
"""Steps of a decomposition at most: half of what an engine runs, for a step may take two nodes."""

SURE = 0.7
"""Confidence from which a decomposition is taken without asking a further strategy."""


class Decomposer(Protocol):
    """Takes a goal apart into steps, or leaves it to another. Safe from several threads."""

    @property
    def name(self) -> str:
        """Which strategy this is, and by which version of its prompt text."""

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the steps of `request.prompt`, or why this strategy cannot tell them.

        Raises:
            NotActionable: a model says that this cannot be done.
            ModelError: the model behind it cannot answer.
        """


class Hybrid:
    """Asks strategies in turn and takes the first that is sure, else the surest.

    Every strategy that deferred, or was less than sure, stands in the reasons of the decomposition.
    Patterns first, then the grounded model, then the one that sees no operations, is the order that
    `wiring` gives. For a request whose last plan failed the first is asked last. Satisfies
    `Decomposer`.
    """

    def __init__(self, strategies: Sequence[Decomposer], *, sure: float = SURE) -> None:
        """Keep what is asked for.

        Args:
            strategies: Asked in this order.
            sure: Confidence in [0, 1] from which no further one is asked.
        """
        self._strategies = tuple(strategies)
        self._sure = sure

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
            elif found.confidence >= self._sure:
                return _with_reasons(found, told)
            else:
                told.append(
                    f"{found.strategy} is {found.confidence:.2f} sure; {self._sure:.2f} is wanted"
                )
                weak.append(found)
        if weak:
            return _with_reasons(max(weak, key=lambda one: one.confidence), told)
        return Deferred(self.name, "; ".join(told) or "there is no strategy; give it one")


def _with_reasons(found: Decomposition, told: Sequence[str]) -> Decomposition:
    return Decomposition(
        found.goal, found.intents, found.confidence, found.strategy, (*told, *found.reasons)
    )
