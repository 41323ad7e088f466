"""Wiring: from settings to a working cache; the only place that knows who implements what."""

import hashlib
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from semcache.cache.cached_model import CachedModel
from semcache.cache.plan_cache import PlanCache
from semcache.cache.responses import Responses
from semcache.cache.views import NOTE
from semcache.catalog.builtin import ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounding
from semcache.errors import InvalidSettings, MissingExtra, SemCacheError
from semcache.events import Event
from semcache.execution.program import ProgramEngine
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.models.openai import OpenAIModel
from semcache.models.redacting import RedactingEmbedder
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.planners.builtin_resolver import BuiltinResolver
from semcache.planners.catalog_planner import CatalogPlanner
from semcache.planners.decompose import Decomposer, Hybrid
from semcache.planners.deferring import Deferring
from semcache.planners.failures import FailureMemory
from semcache.planners.grounding import Groundings
from semcache.planners.learned import Learned, LearnedResolver
from semcache.planners.model_decomposer import Grounded, IntentFirst
from semcache.planners.model_normalizer import ModelNormalizer
from semcache.planners.model_planner import ModelPlanner
from semcache.planners.modular import ModularPlanner
from semcache.planners.operation_index import Indexes
from semcache.planners.parting import PARTING
from semcache.planners.patterns import Patterns
from semcache.planners.progress import IntentLog
from semcache.planners.questions import Ask
from semcache.planners.relevant import Relevant
from semcache.planners.resolution import Resolver
from semcache.planners.resolve import (
    Composite,
    RulesResolver,
    SuggestedResolver,
    WordResolver,
)
from semcache.planners.rules import RuleNormalizer
from semcache.planners.semantic_resolver import SemanticResolver
from semcache.planners.transforms import TRANSFORMS
from semcache.planners.waiting import Waiting
from semcache.planners.whole import Whole
from semcache.ports import (
    Clock,
    Embedder,
    Limits,
    Model,
    Normalizer,
    Observer,
    Planner,
    PlanStore,
    Snapshots,
    VectorIndex,
    Verifier,
)
from semcache.prompts.redaction import Redact
from semcache.reflection import Reflection
from semcache.runs.recorder import Runs
from semcache.runs.redacted import redacted_event
from semcache.runs.tree import Prices
from semcache.semcache import SemCache
from semcache.settings import Settings
from semcache.stores.cipher import Cipher
from semcache.stores.disk import DiskStore
from semcache.stores.disk_responses import DiskResponses
from semcache.stores.encrypted import unlocked
from semcache.stores.faiss import FaissIndex
from semcache.stores.frozen import FrozenStore
from semcache.stores.memory import MemoryStore
from semcache.stores.responses import MemoryResponses
from semcache.stores.shelf import VIEWS, Shelf

log = logging.getLogger(__name__)

RESPONSES = "responses"
"""Folder in the directory of a cache that keeps what models answered."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Return epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)


class Reporter:
    """Hands events to observers that must not break a run: what one raises is logged once."""

    def __init__(self, *observers: Observer | None, redact: Redact | None = None) -> None:
        self._redact = redact
        self._observers = tuple(observer for observer in observers if observer is not None)
        self._warned: set[int] = set()

    def __call__(self, event: Event, /) -> None:
        """Pass `event` on to each."""
        if self._redact is not None:
            event = redacted_event(event, self._redact)
        for number, observer in enumerate(self._observers):
            try:
                observer(event)
            except Exception:  # a caller's observer may raise anything; a run goes on
                if number not in self._warned:
                    self._warned.add(number)
                    log.warning("the observer raised and is ignored where it does", exc_info=True)


def open_plan_cache(
    *,
    directory: Path | None,
    threshold: float,
    max_wrong: float | None,
    catalog: Catalog | None,
    embedder: Embedder | None,
    clock: Clock | None,
    observer: Observer | None,
    ttl_s: float | None,
    ttl_slides: str,
    max_entries: int | None,
    max_bytes: int | None,
    max_total_entries: int | None,
    max_total_bytes: int | None,
    frozen: bool,
    timezone: str,
    redact: Redact | None = None,
    verifier: Verifier | None = None,
    verify: str = "background",
    encryption_key: str = "",
    database: str,
    database_search: str,
) -> PlanCache:
    """Return a plan cache for these settings; see `PlanCache.open`."""
    settings = Settings(
        directory=directory,
        threshold=threshold,
        max_wrong=max_wrong,
        ttl_s=ttl_s,
        ttl_slides=ttl_slides,
        max_entries=max_entries,
        max_bytes=max_bytes,
        max_total_entries=max_total_entries,
        max_total_bytes=max_total_bytes,
        frozen=frozen,
        timezone=timezone,
        verify=verify,
        encryption_key=encryption_key,
        database=database,
        database_search=database_search,
    )
    return _plan_cache(
        settings,
        store=_store(settings),
        catalog=catalog,
        embedder=embedder or _embedder(settings),
        clock=clock or SystemClock(),
        observer=None if observer is None else Reporter(observer, redact=redact),
        redact=redact,
        verifier=verifier,
    )


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
    if directory is not None:
        settings = replace(settings, directory=directory)
    catalog = catalog.with_builtins([ask_user(), PARTING, *TRANSFORMS])
    clock = clock or SystemClock()
    runs = Runs(
        max_trees=settings.run_trees,
        max_nodes=settings.run_nodes,
        prices=Prices(settings.prompt_token_price, settings.completion_token_price),
    )
    theirs = Reporter(observer, redact=redact)
    report = Reporter(runs, theirs, redact=redact)
    store = _store(settings)
    learned = Learned(store, clock)
    model = model or _model(settings)
    embedder = embedder or _embedder(settings)
    hiding = embedder if redact is None else RedactingEmbedder(embedder, redact)
    ours = None
    if responses is None and model is not None and settings.response_cache:
        responses = ours = _responses(settings, clock, observer)
    remembering = model
    if model is not None and responses is not None:
        remembering = CachedModel(model, responses, redact=redact)
    return SemCache(
        cache=_plan_cache(
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
        normalizers=_normalizers(remembering, report, clock, redact),
        planners=_planners(
            settings,
            remembering,
            embedder=hiding,
            observer=report,
            clock=clock,
            resolver=_resolver(hiding, learned),
            redact=redact,
        ),
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
        groundings=(
            Groundings(groundings, embedder, closed=catalog.closed) if groundings else None
        ),
        ask=ask,
        # What waits for an answer is a whole run, with all that its prompt has to hide; and so are
        # the steps of a goal.
        waiting=Waiting(store if redact is None else MemoryStore(), clock),
        intents=IntentLog(store if redact is None else MemoryStore(), clock, learned=learned),
        closing=[ours.close] if ours is not None else [],
    )


def open_responses(
    *,
    directory: Path | None,
    max_entries: int,
    max_bytes: int,
    ttl_s: float | None,
    clock: Clock | None,
    observer: Observer | None,
    encryption_key: str = "",
) -> Responses:
    """Return a response cache for these settings; see `Responses.open`."""
    cipher = Cipher(encryption_key) if encryption_key else None
    return Responses(
        MemoryResponses() if directory is None else DiskResponses(directory, cipher=cipher),
        clock or SystemClock(),
        max_entries=max_entries,
        max_bytes=max_bytes,
        ttl_s=ttl_s,
        observer=None if observer is None else Reporter(observer),
    )


def _responses(settings: Settings, clock: Clock, observer: Observer | None) -> Responses:
    return open_responses(
        directory=None
        if settings.frozen
        else settings.directory and settings.directory / RESPONSES,
        max_entries=settings.response_entries,
        max_bytes=settings.response_bytes,
        ttl_s=settings.response_ttl_s,
        clock=clock,
        observer=observer,
        encryption_key=settings.encryption_key,
    )


def open_store(settings: Settings) -> PlanStore:
    """Return the store of these settings, for who looks after it.

    Raises:
        ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt, WrongKey: it cannot be used.
    """
    return _store(settings)


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder of these settings; it loads nothing before it is used."""
    return _embedder(settings)


def _plan_cache(
    settings: Settings,
    *,
    store: PlanStore,
    catalog: Catalog | None,
    embedder: Embedder,
    clock: Clock,
    observer: Observer | None,
    redact: Redact | None,
    verifier: Verifier | None,
) -> PlanCache:
    make_index, folder = _search(settings, store, embedder), settings.directory
    return PlanCache(
        store=store,
        embedder=embedder,
        clock=clock,
        make_index=make_index,
        snapshots=_snapshots(settings),
        snapshot_note=_snapshot_note(folder) if folder and settings.database else NOTE,
        observer=observer,
        settings=settings,
        catalog=catalog,
        normalizer=RuleNormalizer() if catalog is not None else None,
        redact=redact,
        verifier=verifier,
    )


def _snapshots(settings: Settings) -> Snapshots | None:
    """Return where views are kept; what is encrypted or in a server is read anew."""
    if settings.directory is None or settings.encryption_key or _searches_there(settings):
        return None
    return Shelf(settings.directory / VIEWS)


def _search(
    settings: Settings, store: PlanStore, embedder: Embedder
) -> Callable[[str], VectorIndex]:
    """Return what makes the index of a tenant."""
    if not _searches_there(settings):
        return lambda _: FaissIndex()
    from semcache.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra

    store = store.beneath if isinstance(store, FrozenStore) else store
    assert isinstance(store, PostgresStore)  # noqa: S101 - `_store` opened it, with no key
    return store.indexes(embedder.fingerprint)


def _searches_there(settings: Settings) -> bool:
    return bool(settings.database) and settings.database_search == "server"


def _snapshot_note(folder: Path) -> str:
    """Return the note of this machine's snapshots: others that share the database have theirs."""
    place = f"{socket.gethostname()}:{folder.absolute()}"
    return f"{NOTE}:{hashlib.sha256(place.encode()).hexdigest()[:16]}"


def _store(settings: Settings) -> PlanStore:
    if _searches_there(settings) and settings.encryption_key:
        raise InvalidSettings(
            "database_search is 'server', which cannot search what is encrypted; choose 'replica'"
        )
    store: PlanStore
    if settings.database:
        store, what = _database(settings), "the database"
    elif settings.directory is not None:
        store = DiskStore.open(settings.directory, frozen=settings.frozen)
        what = repr(str(settings.directory))
    else:
        return MemoryStore()
    try:
        store = unlocked(store, settings.encryption_key, what=what)
        return FrozenStore(store) if settings.frozen else store
    except SemCacheError:
        store.close()
        raise


def _database(settings: Settings) -> PlanStore:
    try:
        from semcache.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra(
            f"a cache in PostgreSQL needs {error.name or 'psycopg'!r}; install `semcache[postgres]`"
        ) from error
    return PostgresStore.open(
        settings.database,
        schema=settings.database_schema,
        lag_s=settings.database_lag_s,
        pool_size=settings.database_pool,
        statement_timeout_s=settings.database_timeout_s,
    )


def _embedder(settings: Settings) -> Embedder:
    return SentenceTransformersEmbedder(
        settings.embedder or None, threads=settings.embedder_threads
    )


def _model(settings: Settings) -> Model | None:
    if not settings.model:
        return None
    return OpenAIModel(
        settings.model,
        api_key=settings.api_key or None,
        base_url=settings.base_url or None,
        timeout_s=settings.model_timeout_s,
        max_retries=settings.model_retries,
    )


def _normalizers(
    model: Model | None, observer: Observer, clock: Clock, redact: Redact | None
) -> list[Normalizer]:
    """Rules first: what they settle costs nothing."""
    rules: list[Normalizer] = [RuleNormalizer()]
    if model is None:
        return rules
    return [*rules, ModelNormalizer(model, observer=observer, clock=clock, redact=redact)]


def _planners(
    settings: Settings,
    model: Model | None,
    *,
    embedder: Embedder,
    observer: Observer,
    clock: Clock,
    resolver: Resolver,
    redact: Redact | None,
) -> list[Planner]:
    """The catalog for what one query settles, then steps; a model that writes whole plans last."""
    patterns = Patterns(domains=settings.domains)
    # Neither strategy would say anything else to a repair.
    alone = ModularPlanner(Hybrid([patterns, Whole()]), resolver, rounds=0)
    if model is None:
        return [CatalogPlanner(), alone]
    relevant = Relevant(embedder, most=settings.model_operations)
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
        steps = ModularPlanner(Hybrid(asked), resolver)
    return [Deferring(CatalogPlanner()), steps, by_model]


def _resolver(embedder: Embedder, learned: Learned) -> Resolver:
    """What is built in, what a model names, what ran well, what rules and words say, meaning."""
    indexes = Indexes()
    told: list[Resolver] = [RulesResolver(), WordResolver(indexes=indexes)]
    asked: list[Resolver] = [
        BuiltinResolver(),
        SuggestedResolver(),
        LearnedResolver(learned, Composite(told)),
        *told,
        SemanticResolver(embedder, indexes=indexes),
    ]
    return Composite(asked)
