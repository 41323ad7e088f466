"""What lookups need is loaded before the first one: the embedder, and the tenants' views.

`Preparation` is a part of `PlanCache`, which has its methods as its own.
"""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from semcache.cache.context import CacheContext
from semcache.cache.lookup.tiers import Tiers
from semcache.cache.query import check_tenant
from semcache.cache.vector_renewal import VectorRenewal
from semcache.errors import EmbeddingError, StoreError
from semcache.process.forks import ErrorCapture, Lock

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


class Preparation:
    """What a cache loads or embeds before anybody asks, at once or on a thread of its own."""

    _preload: Preload
    _renewal: VectorRenewal

    def warm_up(self, *, tenants: Collection[str] | None = None) -> WarmUp:
        """Load what the first lookups and stores would load; return what was loaded.

        That is the embedder, on an empty cache too, and plans, index and evidence of `tenants`
        (None: of all that have plans). Nothing is counted. Trouble is an event and one warning, as
        ever, and told in `failures`.

        Raises:
            InvalidInput: one of `tenants` can name none.
        """
        return self._preload.run(tenants)

    def begin_warm_up(self, *, tenants: Collection[str] | None = None) -> None:
        """Do as `warm_up` on a thread of its own; return at once.

        Lookups meanwhile wait for what they need themselves, if at all. `close` ends it.
        """
        self._preload.start(tenants)

    def embed_anew(self, *, tenants: Collection[str] | None = None) -> int:
        """Embed the entries that another embedder embedded, or none; return how many.

        Of `tenants`, or of all (None). Lookups go on meanwhile, in other processes too: an entry is
        found by exact keys only where its vector is not of the embedder that looks. Of processes
        that share the cache one does it at a time; if it ends early, one that opens the cache with
        this embedder goes on by itself.

        Raises:
            InvalidInput: one of `tenants` can name none.
            EmbeddingError, StoreUnavailable: it cannot go on; what is done stays.
        """
        return self._renewal.run(tenants)

    def resume_embedding(self) -> None:
        """Go on, on a thread of its own, with what `embed_anew` of another process began.

        Only if that had this embedder; else nothing is done. `close` ends it.
        """
        self._renewal.start()
