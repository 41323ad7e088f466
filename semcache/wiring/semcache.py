"""A SemCache with all its parts: who reads prompts, who makes plans, who runs them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from semcache.catalog.builtin import ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounding
from semcache.errors import PlanningError
from semcache.events import TokenPrices
from semcache.execution.program import ProgramEngine
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.planners.failures import FailureMemory
from semcache.planners.learned import Learned, LearnedResolver
from semcache.planners.model.decomposer import GroundedDecomposer, Hybrid, IntentFirst
from semcache.planners.model.grounding import Groundings
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.plan_files import PlanFiles
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.selector import ModelSelector
from semcache.planners.model.verification import VerifiedPlanner
from semcache.planners.pending_runs import PendingRuns
from semcache.planners.progress import IntentLog
from semcache.planners.questions import Ask
from semcache.planners.rules.catalog_planner import CatalogPlanner
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.planners.split_identifier import PARTING
from semcache.planners.steps.builtin_resolver import BuiltinResolver
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.planners.steps.patterns import SINGLE, Patterns
from semcache.planners.steps.resolver import Composite, SuggestedResolver, WordResolver
from semcache.planners.transforms import TRANSFORMS
from semcache.ports import (
    Clock,
    Embedder,
    Limits,
    Model,
    Normalizer,
    Observer,
    Planned,
    Planner,
    PlanRequest,
    Verifier,
)
from semcache.prompts.redaction import Redact
from semcache.responses.cache import Responses
from semcache.responses.cached_model import CachedModel
from semcache.runs.recorder import Runs
from semcache.runs.reflection import Reflection
from semcache.semcache import SemCache
from semcache.semcache.plan_runner import Checkpoints
from semcache.settings import Settings
from semcache.stores.memory import MemoryStore
from semcache.wiring.caches import RESPONSES, open_or_await_store, open_plan_cache
from semcache.wiring.models import (
    RedactingEmbedder,
    Reporter,
    SystemClock,
    check_parts,
    open_embedder,
    open_model,
)


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


# The whole.


def open_semcache(
    *,
    directory: Path | None,
    catalog: Catalog,
    settings: Settings,
    model: Model | None,
    embedder: Embedder | None,
    clock: Clock | None,
    observer: Observer | None,
    responses: Responses | None,
    groundings: Sequence[Grounding],
    ask: Ask | None,
    redact: Redact | None = None,
    verifier: Verifier | None = None,
) -> SemCache:
    """Return a SemCache for these settings; see `SemCache.open`."""
    check_parts(
        catalog=catalog,
        embedder=embedder,
        model=model,
        observer=observer,
        redact=redact,
        settings=settings,
        verifier=verifier,
        needed=("catalog",),
    )
    if directory is not None:
        settings = replace(settings, directory=directory)
    catalog = catalog.with_builtins([ask_user(), PARTING, *TRANSFORMS])
    clock = clock or SystemClock()
    runs = Runs(
        max_trees=settings.run_trees,
        max_nodes=settings.run_nodes,
        prices=TokenPrices(settings.prompt_token_price, settings.completion_token_price),
    )
    theirs = Reporter(observer, redact=redact)
    report = Reporter(runs, theirs, redact=redact)
    store = open_or_await_store(settings)
    learned = Learned(store)
    model = model or open_model(settings)
    embedder = embedder or open_embedder(settings)
    hiding = embedder if redact is None else RedactingEmbedder(embedder, redact)
    ours = None
    if responses is None and model is not None and settings.response_cache:
        folder = None if settings.frozen else settings.directory
        responses = ours = Responses.open(
            folder and folder / RESPONSES,
            max_entries=settings.response_entries,
            max_bytes=settings.response_bytes,
            ttl_s=settings.response_ttl_s,
            clock=clock,
            observer=observer,
            encryption_key=settings.encryption_key,
        )
    remembering = model
    if model is not None and responses is not None:
        remembering = CachedModel(model, responses, redact=redact)
    relevant = Relevant(hiding, most=settings.model_operations, domains=settings.domains)
    asking: Asking = {"observer": report, "clock": clock, "redact": redact}
    made = planning(settings, remembering, relevant, learned, asking)
    return SemCache(
        cache=open_plan_cache(
            settings,
            store=store,
            catalog=catalog,
            embedder=embedder,
            clock=clock,
            observer=None if observer is None else theirs,
            redact=redact,
            verifier=verifier,
        ),
        catalog=catalog,
        normalizers=made.normalizers,
        planners=made.planners,
        steps=made.steps,
        engines={"routes": RoutesEngine(), "tasks": TasksEngine(), "program": ProgramEngine(model)},
        failures=FailureMemory(store, clock),
        clock=clock,
        limits=Limits(
            max_steps=settings.max_steps,
            timeout_s=settings.timeout_s,
            call_timeout_s=settings.call_timeout_s,
            max_output_bytes=settings.max_output_bytes,
        ),
        responses=responses,
        runs=runs,
        reflection=Reflection(
            clock=clock,
            enabled=settings.reflection,
            attempts=settings.reflection_attempts,
            delay_s=settings.reflection_delay_s,
            redact=redact,
        ),
        groundings=Groundings(groundings, embedder) if groundings else None,
        plan_files=PlanFiles(Path(settings.plan_files), clock) if settings.plan_files else None,
        selector=(
            ModelSelector(remembering, **asking)
            if remembering is not None and settings.selection
            else None
        ),
        ask=ask,
        # What waits for an answer is a whole run, with all that its prompt has to hide; and so are
        # the steps of a goal.
        waiting=PendingRuns(store if redact is None else MemoryStore(), clock),
        checkpoints=Checkpoints(store if redact is None else MemoryStore(), clock),
        intents=IntentLog(store if redact is None else MemoryStore(), clock, learned),
        closing=[ours.close] if ours is not None else [],
    )
