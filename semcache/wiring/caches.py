"""The plan cache and the response cache of settings, and where both keep what they hold."""

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path

from semcache.binding.volatile import Ignore
from semcache.cache.context import CacheContext
from semcache.cache.plan_cache import PlanCache
from semcache.cache.view.views import NOTE
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidSettings, MissingExtra, SemCacheError, StoreUnavailable
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.ports import (
    Clock,
    Embedder,
    Journal,
    Observer,
    PlanStore,
    ResponseStore,
    Snapshots,
    VectorIndex,
    Verifier,
)
from semcache.process.imports import ensure_imported
from semcache.prompts.redaction import Redact
from semcache.settings import Settings
from semcache.stores.cipher import Cipher
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.disk.sidecar import CORRECTIONS, VIEWS, FileJournal, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.stores.memory import MemoryStore
from semcache.stores.memory_responses import MemoryResponses
from semcache.stores.proxies import FrozenStore, LateStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.wiring.models import SystemClock, check_parts, open_embedder, reporting


def open_store(settings: Settings) -> PlanStore:
    """Return the store of these settings, for who looks after it.

    Raises:
        ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt, WrongKey: it cannot be used.
    """
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


def open_or_await_store(settings: Settings) -> PlanStore:
    """Return the store of these settings; one that does not answer now is opened once it does.

    Raises:
        ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt, WrongKey: it cannot be used,
            and waiting does not help.
    """
    try:
        return open_store(settings)
    except StoreUnavailable as error:
        if not error.passing:
            raise
        # Whoever uses it first warns of it.
        return LateStore(lambda: open_store(settings), error)


def open_snapshots(settings: Settings) -> Snapshots | None:
    """Return where views are kept; what is encrypted or in a server is read anew."""
    if settings.directory is None or settings.encryption_key or _searches_there(settings):
        return None
    return SnapshotDirectory(settings.directory / VIEWS)


def open_journal(settings: Settings) -> Journal | None:
    """Return where corrections wait for a store that cannot be written; None: in memory alone."""
    if settings.directory is None:
        return None
    cipher = Cipher(settings.encryption_key) if settings.encryption_key else None
    return FileJournal(settings.directory / CORRECTIONS, cipher=cipher)


def searching(
    settings: Settings, store: PlanStore, embedder: Embedder
) -> Callable[[str], VectorIndex]:
    """Return what makes the index of a tenant."""
    if not _searches_there(settings):
        return lambda _: FaissIndex()
    from semcache.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    def made(tenant: str) -> VectorIndex:
        beneath = store
        while isinstance(beneath, FrozenStore | LateStore):
            beneath = beneath.beneath
        assert isinstance(beneath, PostgresStore)  # noqa: S101 - it was opened, with no key
        return beneath.indexes(embedder.fingerprint)(tenant)

    return made


def _searches_there(settings: Settings) -> bool:
    return bool(settings.database) and settings.database_search == "server"


def snapshot_note(folder: Path) -> str:
    """Return the note of this machine's snapshots: others that share the database have theirs."""
    place = f"{socket.gethostname()}:{folder.absolute()}"
    return f"{NOTE}:{hashlib.sha256(place.encode()).hexdigest()[:16]}"


def _database(settings: Settings) -> PlanStore:
    try:
        ensure_imported("semcache.stores.postgres.store")
        from semcache.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra(
            f"a cache in PostgreSQL needs {error.name or 'psycopg'!r}; "
            "install `semcache-plans[postgres]`"
        ) from error
    return PostgresStore.open(
        settings.database,
        schema=settings.database_schema,
        lag_s=settings.database_lag_s,
        pool_size=settings.database_pool,
        statement_timeout_s=settings.database_timeout_s,
    )


# The plan cache and the response cache of settings.

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
    ensure_imported("semcache.cache.entries.entry_schema")  # before threads need it
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
