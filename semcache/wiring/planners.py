"""Who reads prompts and who makes plans, in the order in which they are asked."""

from semcache.planners.arguments.operation_index import Indexes
from semcache.planners.learned import Learned, LearnedResolver
from semcache.planners.model.decomposer import Grounded, IntentFirst
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.verification import VerifiedPlanner
from semcache.planners.rules.catalog_planner import CatalogPlanner
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.decompose import Decomposer, Hybrid
from semcache.planners.steps.deferring import Deferring
from semcache.planners.steps.modular import ModularPlanner
from semcache.planners.steps.patterns import Patterns
from semcache.planners.steps.resolution import Resolver
from semcache.planners.steps.resolve import (
    Composite,
    RulesResolver,
    SuggestedResolver,
    WordResolver,
)
from semcache.planners.steps.semantic_resolver import SemanticResolver
from semcache.planners.steps.whole import Whole
from semcache.ports import (
    Clock,
    Embedder,
    Model,
    Normalizer,
    Observer,
    Planner,
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


def planners(
    settings: Settings,
    model: Model | None,
    *,
    embedder: Embedder,
    observer: Observer,
    clock: Clock,
    resolver: Resolver,
    indexes: Indexes,
    redact: Redact | None,
) -> list[Planner]:
    """The catalog for what one query settles, then steps; a model that writes whole plans last."""
    patterns = Patterns(domains=settings.domains)
    # Neither strategy would say anything else to a repair.
    alone = ModularPlanner(Hybrid([patterns, Whole()]), resolver, rounds=0)
    if model is None:
        return [CatalogPlanner(), alone]
    relevant = Relevant(embedder, most=settings.model_operations, indexes=indexes)
    asked: list[Decomposer] = [
        patterns,
        Grounded(
            model,
            relevant=relevant,
            domains=settings.domains,
            observer=observer,
            clock=clock,
            redact=redact,
        ),
        IntentFirst(model, domains=settings.domains, observer=observer, clock=clock, redact=redact),
    ]
    by_model = ModelPlanner(
        model,
        plan_format=settings.plan_format,
        relevant=relevant,
        observer=observer,
        clock=clock,
        redact=redact,
    )
    steps: Planner = Deferring(alone)
    if settings.steps_by_model:
        steps = VerifiedPlanner(ModularPlanner(Hybrid(asked), resolver))
    return [Deferring(CatalogPlanner()), steps, by_model]


def resolver(embedder: Embedder, learned: Learned, indexes: Indexes) -> Resolver:
    """What is built in, what a model names, what ran well, what rules and words say, meaning."""
    told: list[Resolver] = [RulesResolver(), WordResolver(indexes=indexes)]
    asked: list[Resolver] = [
        BuiltinResolver(),
        SuggestedResolver(),
        LearnedResolver(learned, Composite(told)),
        *told,
        SemanticResolver(embedder, indexes=indexes),
    ]
    return Composite(asked)
