"""Where plans, vectors and snapshots are kept, by the settings."""

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import cast

from semcache.cache.view.views import NOTE
from semcache.errors import InvalidSettings, MissingExtra, SemCacheError, StoreUnavailable
from semcache.ports import (
    Embedder,
    Journal,
    PlanStore,
    Snapshots,
    VectorIndex,
)
from semcache.settings import Settings
from semcache.stores.cipher import Cipher
from semcache.stores.disk.journal import CORRECTIONS, FileJournal
from semcache.stores.disk.snapshots import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.stores.frozen import FrozenStore
from semcache.stores.late import LateStore
from semcache.stores.memory import MemoryStore
from semcache.stores.vectors.faiss_index import FaissIndex


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
        return cast("PlanStore", LateStore(lambda: open_store(settings), error))


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
