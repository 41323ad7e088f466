"""Whether the cache can do what it is for: the store answers, the embedder is loaded."""

import threading
import time
from collections.abc import Collection
from typing import Literal

from semcache.cache.plan_cache import PlanCache
from semcache.cache.warm_up import WarmUp
from semcache.canonical import JsonObject
from semcache.errors import StoreError

State = Literal["ok", "loading", "failing"]
ASKED_S = 1.0
"""Seconds for which an answer of the store holds: anybody may ask whether we are ready."""

LOADED_S = 30.0
"""Seconds that a load may keep a server that stops."""


class Readiness:
    """What is ready of a cache. Safe from several threads."""

    def __init__(self, cache: PlanCache, tenants: Collection[str]) -> None:
        """Tell of `cache`, as the `tenants` need it that may ask."""
        self._cache = cache
        self._tenants = tenants
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._warm: WarmUp | None = None
        self._asked_s = float("-inf")
        self._store: State = "loading"

    def begin(self) -> None:
        """Load embedder and plans on a thread of its own, unless that is done or under way."""
        with self._lock:
            if self._loading or (self._warm is not None and not self._warm.failures):
                return
            self._thread = threading.Thread(target=self._load, name="semcache-load", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Wait for what is being loaded: a process that ends in the middle of it is aborted."""
        thread = self._thread
        if thread is not None:
            thread.join(LOADED_S)

    def to_dict(self) -> JsonObject:
        """Return how each part stands; what failed to load is tried again from now on."""
        with self._lock:
            if time.monotonic() - self._asked_s >= ASKED_S:
                self._store = self._ask_store()
                self._asked_s = time.monotonic()
            embedder: State = "loading"
            if self._warm is not None:
                failing = any(told.startswith("embedder") for told in self._warm.failures)
                embedder = "failing" if failing else "ok"
            parts: JsonObject = {"store": self._store, "embedder": embedder}
        self.begin()
        return {"ready": all(state == "ok" for state in parts.values()), **parts}

    @property
    def _loading(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _load(self) -> None:
        self._warm = self._cache.warm_up(tenants=self._tenants)

    def _ask_store(self) -> State:
        try:
            self._cache.stats()
        except StoreError:
            return "failing"
        return "ok"
