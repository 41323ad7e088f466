"""Wiring: from settings to a working cache; the only place that knows who implements what."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from semcache.cache.cached_model import CachedModel
from semcache.cache.plan_cache import PlanCache
from semcache.cache.responses import Responses
from semcache.catalog.builtin import ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounding
from semcache.events import Event
from semcache.execution.program import ProgramEngine
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.models.openai import OpenAIModel
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.planners.catalog_planner import CatalogPlanner
from semcache.planners.failures import FailureMemory
from semcache.planners.grounding import Groundings
from semcache.planners.model_normalizer import ModelNormalizer
from semcache.planners.model_planner import ModelPlanner
from semcache.planners.questions import Ask
from semcache.planners.relevant import Relevant
from semcache.planners.rules import RuleNormalizer
from semcache.planners.transforms import TRANSFORMS
from semcache.planners.waiting import Waiting
from semcache.ports import (
    Clock,
    Embedder,
    Limits,
    Model,
    Normalizer,
    Observer,
    Planner,
    PlanStore,
    VectorIndex,
)
from semcache.runs.recorder import Runs
from semcache.runs.tree import Prices
from semcache.semcache import SemCache
from semcache.settings import Settings
from semcache.stores.disk import DiskStore
from semcache.stores.disk_responses import DiskResponses
from semcache.stores.faiss import FaissIndex
from semcache.stores.memory import MemoryStore
from semcache.stores.responses import MemoryResponses
from semcache.stores.shelf import Shelf

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

    def __init__(self, *observers: Observer | None) -> None:
        self._observers = tuple(observer for observer in observers if observer is not None)
        self._warned: set[int] = set()

    def __call__(self, event: Event, /) -> None:
        """Pass `event` on to each."""
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
    timezone: str,
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
        timezone=timezone,
    )
    return _plan_cache(
        settings,
        store=_store(settings),
        catalog=catalog,
        embedder=embedder or _embedder(settings),
        clock=clock or SystemClock(),
        observer=None if observer is None else Reporter(observer),
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
) -> SemCache:
    """Return a SemCache for these settings; see `SemCache.open`."""
    if directory is not None:
        settings = replace(settings, directory=directory)
    catalog = catalog.with_builtins([ask_user(), *TRANSFORMS])
    clock = clock or SystemClock()
    runs = Runs(
        max_trees=settings.run_trees,
        max_nodes=settings.run_nodes,
        prices=Prices(settings.prompt_token_price, settings.completion_token_price),
    )
    theirs = Reporter(observer)
    report = Reporter(runs, theirs)
    store = _store(settings)
    model = model or _model(settings)
    embedder = embedder or _embedder(settings)
    ours = None
    if responses is None and model is not None and settings.response_cache:
        responses = ours = _responses(settings, clock, observer)
    remembering = model
    if model is not None and responses is not None:
        remembering = CachedModel(model, responses)
    return SemCache(
        cache=_plan_cache(
            settings,
            store=store,
            catalog=catalog,
            embedder=embedder,
            clock=clock,
            observer=None if observer is None else theirs,
        ),
        catalog=catalog,
        normalizers=_normalizers(remembering, report, clock),
        planners=_planners(settings, remembering, embedder, report, clock),
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
        groundings=(
            Groundings(groundings, embedder, closed=catalog.closed) if groundings else None
        ),
        ask=ask,
        waiting=Waiting(store, clock),
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
) -> Responses:
    """Return a response cache for these settings; see `Responses.open`."""
    return Responses(
        MemoryResponses() if directory is None else DiskResponses(directory),
        clock or SystemClock(),
        max_entries=max_entries,
        max_bytes=max_bytes,
        ttl_s=ttl_s,
        observer=None if observer is None else Reporter(observer),
    )


def _responses(settings: Settings, clock: Clock, observer: Observer | None) -> Responses:
    return open_responses(
        directory=settings.directory and settings.directory / RESPONSES,
        max_entries=settings.response_entries,
        max_bytes=settings.response_bytes,
        ttl_s=settings.response_ttl_s,
        clock=clock,
        observer=observer,
    )


def _plan_cache(
    settings: Settings,
    *,
    store: PlanStore,
    catalog: Catalog | None,
    embedder: Embedder,
    clock: Clock,
    observer: Observer | None,
) -> PlanCache:
    make_index: Callable[[], VectorIndex] = FaissIndex
    return PlanCache(
        store=store,
        embedder=embedder,
        clock=clock,
        make_index=make_index,
        snapshots=None if settings.directory is None else Shelf(settings.directory / "views"),
        observer=observer,
        settings=settings,
        catalog=catalog,
        normalizer=RuleNormalizer() if catalog is not None else None,
    )


def _store(settings: Settings) -> PlanStore:
    if settings.directory is None:
        return MemoryStore()
    return DiskStore.open(settings.directory)


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


def _normalizers(model: Model | None, observer: Observer, clock: Clock) -> list[Normalizer]:
    """Rules first: what they settle costs nothing."""
    rules: list[Normalizer] = [RuleNormalizer()]
    if model is None:
        return rules
    return [*rules, ModelNormalizer(model, observer=observer, clock=clock)]


def _planners(
    settings: Settings,
    model: Model | None,
    embedder: Embedder,
    observer: Observer,
    clock: Clock,
) -> list[Planner]:
    catalog: list[Planner] = [CatalogPlanner()]
    if model is None:
        return catalog
    by_model = ModelPlanner(
        model,
        plan_format=settings.plan_format,
        relevant=Relevant(embedder, most=settings.model_operations),
        observer=observer,
        clock=clock,
    )
    return [*catalog, by_model]
