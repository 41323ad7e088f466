"""The whole: a SemCache with all its parts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from semcache.catalog.builtin import ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounding
from semcache.events import TokenPrices
from semcache.execution.program import ProgramEngine
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.planners.failures import FailureMemory
from semcache.planners.learned import Learned
from semcache.planners.model.grounding import Groundings
from semcache.planners.model.plan_files import PlanFiles
from semcache.planners.model.relevant import Relevant
from semcache.planners.model.selector import ModelSelector
from semcache.planners.pending_runs import PendingRuns
from semcache.planners.progress import IntentLog
from semcache.planners.questions import Ask
from semcache.planners.split_identifier import PARTING
from semcache.planners.transforms import TRANSFORMS
from semcache.ports import Clock, Embedder, Limits, Model, Observer, Verifier
from semcache.prompts.redaction import Redact
from semcache.responses.cache import Responses
from semcache.responses.cached_model import CachedModel
from semcache.runs.recorder import Runs
from semcache.runs.reflection import Reflection
from semcache.semcache import SemCache
from semcache.semcache.checkpoints import Checkpoints
from semcache.settings import Settings
from semcache.stores.memory import MemoryStore
from semcache.wiring.caches import RESPONSES, open_plan_cache
from semcache.wiring.models import RedactingEmbedder, open_embedder, open_model
from semcache.wiring.parts import Reporter, SystemClock, check_parts
from semcache.wiring.planners import Asking, planning
from semcache.wiring.stores import open_or_await_store


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
