"""What lookups need is loaded before the first one: the embedder, and the tenants' views."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from semcache.cache.context import CacheContext
from semcache.cache.lookup.lookup import Tiers
from semcache.cache.query import check_tenant
from semcache.contexts import ErrorCapture
from semcache.errors import EmbeddingError, StoreError
from semcache.forks import Lock

PROMPT = "warm up"
"""The prompt that tenants are asked with, to see no more than that they answer."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What was loaded before the first prompt."""

    tenants: int
    """How many tenants have their plans and indexes in memory now."""
    entries: int
    """How many plans these have."""
    seconds: float
    failures: tuple[str, ...] = ()
    """What could not be loaded: the lookup that needs it tries again."""


class Preload:
    """Loads what the first lookups would load. Safe from several threads."""

    def __init__(self, context: CacheContext, tiers: Tiers) -> None:
        self._context = context
        self._tiers = tiers
        self._lock = Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, tenants: Collection[str] | None) -> WarmUp:
        """Load the embedder and these tenants, or all; see `PlanCache.warm_up`."""
        for tenant in tenants or ():
            check_tenant(tenant)
        clock, start = self._context.clock, self._context.clock.monotonic()
        failures = [*self._load_embedder()]
        loaded = entries = 0
        try:
            wanted = self._context.store.tenants() if tenants is None else dict.fromkeys(tenants)
            for tenant in wanted:
                if self._closed:
                    break
                self._load(tenant, searched=not failures)
                entries += self._context.store.count(tenant)
                loaded += 1
        except StoreError as error:  # of one tenant, and so of all
            self._context.health.failed("", "store", error)
            failures.append(f"store: {error}")
        return WarmUp(loaded, entries, clock.monotonic() - start, tuple(failures))

    def start(self, tenants: Collection[str] | None) -> None:
        """Do the same on a thread of its own, unless one is at it or this was closed."""
        with self._lock:
            if self._closed or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(
                target=self._behind, args=(tenants,), name="semcache-warm-up", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End after the tenant that is being loaded; calling it twice is fine."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _behind(self, tenants: Collection[str] | None) -> None:
        caught = ErrorCapture()  # what `redact` raises, which is a caller's, has nowhere to go here
        with caught:
            self.run(tenants)
        if isinstance(caught.error, Exception):
            self._context.health.failed("", "warm_up", caught.error)

    def _load_embedder(self) -> Sequence[str]:
        try:
            self._context.embedder.embed([PROMPT])
        except EmbeddingError as error:
            self._context.health.failed("", "embedder", error)
            return (f"embedder: {error}",)
        self._context.health.mended("embedder")
        return ()

    def _load(self, tenant: str, *, searched: bool) -> None:
        self._context.views.current(tenant)
        if searched:
            # A whole lookup, and not a list of its parts, which would not grow with it.
            request = self._context.queries.request(PROMPT, tenant=tenant)
            self._tiers.lookup(request, what_if=True)
