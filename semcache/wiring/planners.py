"""Who reads prompts and who makes plans, in the order in which they are asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from semcache.errors import PlanningError
from semcache.planners.learned import Learned, LearnedResolver
from semcache.planners.model.decomposer import GroundedDecomposer, Hybrid, IntentFirst
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.verification import VerifiedPlanner
from semcache.planners.rules.catalog_planner import CatalogPlanner
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.planners.steps.patterns import SINGLE, Patterns
from semcache.planners.steps.resolver import Composite, SuggestedResolver, WordResolver
from semcache.ports import (
    Clock,
    Model,
    Normalizer,
    Observer,
    Planned,
    Planner,
    PlanRequest,
)
from semcache.prompts.redaction import Redact
from semcache.settings import Settings


class FirstTry:
    """Plans by rules unless something was said in plain words that the plan must heed.

    That is how the last plan failed, and the constraints of a grounding: rules would make the same
    plan again, or one that breaks a constraint. Satisfies `Planner`.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def __repr__(self) -> str:
        return f"FirstTry({self._planner!r})"

    def plan(self, request: PlanRequest) -> Planned:
        """Return the plan of the planner. Raises as it does.

        Raises:
            PlanningError: there is something to heed that rules cannot read.
        """
        if request.failure:
            raise PlanningError(
                "the last plan failed, and a planner by rules would make the same again"
            )
        if request.grounding is not None and request.grounding.grounding.constraints:
            raise PlanningError(
                f"the grounding {request.grounding.grounding.name!r} has constraints, which a "
                "planner by rules cannot read"
            )
        return self._planner.plan(request)


class Asking(TypedDict):
    """What everybody who asks a model is given beside it."""

    observer: Observer
    clock: Clock
    redact: Redact | None


@dataclass(frozen=True, slots=True)
class Planning:
    """Who reads prompts and who makes plans, in the order in which they are asked."""

    normalizers: Sequence[Normalizer]
    """Rules first: what they settle costs nothing."""
    planners: Sequence[Planner]
    steps: ModularPlanner
    """Takes goals apart; of the planners only where it is asked before others."""


def planning(
    settings: Settings, model: Model | None, relevant: Relevant, learned: Learned, asking: Asking
) -> Planning:
    """One operation by rules, then the model where there is one, then steps by patterns.

    Rules and patterns account for every word and value or refuse, so that what they plan need not
    be asked of a model; and what one operation does not account for is the model's before it is
    taken apart without one.
    """
    words = WordResolver()
    # What is built in, what a model names, what ran well, what words say.
    resolver = Composite(
        [BuiltinResolver(), SuggestedResolver(), LearnedResolver(learned, words), words]
    )
    # Patterns would say nothing else to a repair.
    patterns = ModularPlanner(Patterns(), resolver, rounds=0)
    if model is None:
        return Planning([RuleNormalizer()], [CatalogPlanner(), patterns], patterns)
    grounded = GroundedDecomposer(model, relevant=relevant, **asking)
    steps = ModularPlanner(Hybrid([grounded, IntentFirst(model, **asking)]), resolver)
    by_model: list[Planner] = [
        ModelPlanner(model, plan_format=settings.plan_format, relevant=relevant, **asking)
    ]
    if settings.steps_by_model:
        by_model.insert(0, VerifiedPlanner(steps))
    one = ModularPlanner(Patterns([SINGLE]), resolver, rounds=0)
    return Planning(
        [RuleNormalizer(), ModelNormalizer(model, **asking)],
        [FirstTry(CatalogPlanner()), FirstTry(one), *by_model, FirstTry(patterns)],
        steps,
    )
