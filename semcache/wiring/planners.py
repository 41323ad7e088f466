"""Who reads prompts and who makes plans, in the order in which they are asked."""

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
from semcache.planners.steps.resolution import Resolver
from semcache.planners.steps.resolver import (
    Composite,
    SuggestedResolver,
    WordResolver,
)
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


def normalizers(
    model: Model | None, observer: Observer, clock: Clock, redact: Redact | None
) -> list[Normalizer]:
    """Rules first: what they settle costs nothing."""
    rules: list[Normalizer] = [RuleNormalizer()]
    if model is None:
        return rules
    return [*rules, ModelNormalizer(model, observer=observer, clock=clock, redact=redact)]


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


def step_planner(
    model: Model | None,
    *,
    relevant: Relevant,
    observer: Observer,
    clock: Clock,
    resolver: Resolver,
    redact: Redact | None,
) -> ModularPlanner:
    """Steps by the model where there is one, else by patterns."""
    if model is None:
        # Patterns would say nothing else to a repair.
        return ModularPlanner(Patterns(), resolver, rounds=0)
    grounded = GroundedDecomposer(
        model,
        relevant=relevant,
        observer=observer,
        clock=clock,
        redact=redact,
    )
    plain = IntentFirst(model, observer=observer, clock=clock, redact=redact)
    return ModularPlanner(Hybrid([grounded, plain]), resolver)


def planners(
    settings: Settings,
    model: Model | None,
    *,
    relevant: Relevant,
    observer: Observer,
    clock: Clock,
    resolver: Resolver,
    steps: ModularPlanner,
    redact: Redact | None,
) -> list[Planner]:
    """One operation by rules, then the model where there is one, then steps by patterns.

    Rules and patterns account for every word and value or refuse, so that what they plan need not
    be asked of a model; and what one operation does not account for is the model's before it is
    taken apart without one.
    """
    if model is None:
        return [CatalogPlanner(), steps]
    patterns = ModularPlanner(Patterns(), resolver, rounds=0)
    one = ModularPlanner(Patterns([SINGLE]), resolver, rounds=0)
    by_model: list[Planner] = [
        ModelPlanner(
            model,
            plan_format=settings.plan_format,
            relevant=relevant,
            observer=observer,
            clock=clock,
            redact=redact,
        )
    ]
    if settings.steps_by_model:
        by_model.insert(0, VerifiedPlanner(steps))
    return [FirstTry(CatalogPlanner()), FirstTry(one), *by_model, FirstTry(patterns)]


def resolver(learned: Learned) -> Resolver:
    """What is built in, what a model names, what ran well, what words say."""
    words = WordResolver()
    return Composite(
        [BuiltinResolver(), SuggestedResolver(), LearnedResolver(learned, words), words]
    )
