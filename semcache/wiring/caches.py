"""The plan cache and the response cache of settings."""

from importlib import import_module
from pathlib import Path

from semcache.binding.volatile import Ignore
from semcache.cache.context import CacheContext
from semcache.cache.plan_cache import PlanCache
from semcache.cache.view.views import NOTE
from semcache.catalog.catalog import Catalog
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.ports import Clock, Embedder, Observer, PlanStore, ResponseStore, Verifier
from semcache.prompts.redaction import Redact
from semcache.settings import Settings
from semcache.stores.cipher import Cipher
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.memory_responses import MemoryResponses
from semcache.wiring.models import open_embedder
from semcache.wiring.parts import SystemClock, check_parts, reporting
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
    store: PlanStore | None = None,
    catalog: Catalog | None = None,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    observer: Observer | None = None,
    redact: Redact | None = None,
    verifier: Verifier | None = None,
    ignore: Ignore = (),
) -> PlanCache:
    """Return a plan cache for these settings; see `PlanCache.open`.

    `store`: one that is open already; None: the one that the settings name.
    """
    check_parts(
        catalog=catalog, embedder=embedder, observer=observer, redact=redact, verifier=verifier
    )
    # Before threads need it: an import that an interrupt stops fails in all that wait for it.
    import_module("semcache.cache.entries.entry_schema")
    store = store or open_or_await_store(settings)
    embedder, folder = embedder or open_embedder(settings), settings.directory
    context = CacheContext.of(
        settings,
        store=store,
        embedder=embedder,
        clock=clock or SystemClock(),
        make_index=searching(settings, store, embedder),
        snapshots=open_snapshots(settings),
        snapshot_note=snapshot_note(folder) if folder and settings.database else NOTE,
        observer=reporting(observer, redact),
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


def open_response_store(directory: Path | None, encryption_key: str) -> ResponseStore:
    """Return where responses are kept: in a directory, encrypted or not, or in memory (None)."""
    if directory is None:
        return MemoryResponses()
    return DiskResponses(directory, cipher=Cipher(encryption_key) if encryption_key else None)
