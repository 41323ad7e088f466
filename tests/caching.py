"""A plan cache, and a SemCache with one planner, over a store that the test holds."""

from collections.abc import Callable, Sequence
from typing import Any

from semcache import Catalog, PlanCache, SemCache, Settings
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.planners.failures import FailureMemory
from semcache.ports import (
    Clock,
    Embedder,
    Limits,
    Normalizer,
    Observer,
    Planner,
    PlanStore,
    Verifier,
)
from semcache.prompts.redaction import Redact
from semcache.testing import FakeClock, HashEmbedder
from semcache.wiring import open_plan_cache


def cache_over(
    store: PlanStore,
    settings: Settings | None = None,
    *,
    catalog: Catalog | None = None,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    observer: Observer | None = None,
    redact: Redact | None = None,
    verifier: Verifier | None = None,
) -> PlanCache:
    """Return a cache with a clock that stands still and an embedder that needs no model."""
    return open_plan_cache(
        settings or Settings(),
        store=store,
        catalog=catalog,
        embedder=embedder or HashEmbedder(),
        clock=clock or FakeClock(),
        observer=observer,
        redact=redact,
        verifier=verifier,
    )


def semcache_over(
    store: PlanStore,
    cache: PlanCache,
    planner: Planner,
    *,
    clock: Clock,
    normalizers: Sequence[Normalizer] = (),
    chance: Callable[[], float] | None = None,
) -> SemCache:
    """Return a SemCache over the cache and its catalog: `planner` plans, nothing else does."""
    assert cache.catalog is not None
    engines: dict[str, Any] = {"routes": RoutesEngine(), "tasks": TasksEngine()}
    return SemCache(
        cache=cache,
        catalog=cache.catalog,
        normalizers=normalizers,
        planners=[planner],
        engines=engines,
        failures=FailureMemory(store, clock),
        clock=clock,
        limits=Limits(),
        chance=chance,
    )
