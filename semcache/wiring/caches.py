"""The plan cache and the response cache of settings."""

from importlib import import_module
from pathlib import Path

from semcache.binding.volatile import Ignore
from semcache.cache.context import CacheContext
from semcache.cache.plan_cache import PlanCache
from semcache.cache.view.views import NOTE
from semcache.catalog.catalog import Catalog
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.ports import (
    Clock,
    Embedder,
    Observer,
    PlanStore,
    Verifier,
)
from semcache.prompts.redaction import Redact
from semcache.responses.cache import Responses
from semcache.settings import Settings
from semcache.stores.cipher import Cipher
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.memory_responses import MemoryResponses
from semcache.wiring.models import open_embedder
from semcache.wiring.parts import Reporter, SystemClock, check_parts
from semcache.wiring.stores import (
    open_journal,
    open_or_await_store,
    open_snapshots,
    searching,
    snapshot_note,
)

RESPONSES = "responses"
"""Folder in the directory of a cache that keeps what models answered."""


def open_plan_cache(
    settings: Settings,
    *,
    catalog: Catalog | None = None,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    observer: Observer | None = None,
    redact: Redact | None = None,
    verifier: Verifier | None = None,
    ignore: Ignore = (),
) -> PlanCache:
    """Return a plan cache for these settings; see `PlanCache.open`."""
    check_parts(
        catalog=catalog, embedder=embedder, observer=observer, redact=redact, verifier=verifier
    )
    # Before threads need it: an import that an interrupt stops fails in all that wait for it.
    import_module("semcache.cache.entries.entry_schema")
    return plan_cache(
        settings,
        store=open_or_await_store(settings),
        catalog=catalog,
        embedder=embedder or open_embedder(settings),
        clock=clock or SystemClock(),
        observer=None if observer is None else Reporter(observer, redact=redact),
        redact=redact,
        verifier=verifier,
        ignore=ignore,
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


def plan_cache(
    settings: Settings,
    *,
    store: PlanStore,
    catalog: Catalog | None,
    embedder: Embedder,
    clock: Clock,
    observer: Observer | None,
    redact: Redact | None,
    verifier: Verifier | None,
    ignore: Ignore = (),
) -> PlanCache:
    """Return a plan cache of these parts."""
    make_index, folder = searching(settings, store, embedder), settings.directory
    context = CacheContext.of(
        settings,
        store=store,
        embedder=embedder,
        clock=clock,
        make_index=make_index,
        snapshots=open_snapshots(settings),
        snapshot_note=snapshot_note(folder) if folder and settings.database else NOTE,
        observer=observer,
        catalog=catalog,
        normalizer=RuleNormalizer(),  # of use where a catalog is, which a call may bring
        redact=redact,
        journal=open_journal(settings),
        ignore=ignore,
    )
    cache = PlanCache(context, verifier=verifier)
    cache.resume_embedding()
    if settings.warm_up == "before":
        cache.warm_up()
    elif settings.warm_up == "background":
        cache.begin_warm_up()
    return cache


def model_responses(settings: Settings, clock: Clock, observer: Observer | None) -> Responses:
    """Return what remembers the answers of models beside the plans of these settings."""
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
