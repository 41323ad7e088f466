"""Vector renewal: after a change of embedder, entries are embedded anew while lookups go on."""

import logging
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from uuid import uuid4

import numpy as np

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import from_record
from semcache.cache.query import check_tenant
from semcache.canonical import as_object, dumps, loads
from semcache.errors import EmbeddingError, InvalidJson, SemCacheError, StoreCorrupt, StoreError
from semcache.matching.words.content import embedded_text
from semcache.ports import Record
from semcache.process.forks import ErrorCapture, Lock

log = logging.getLogger(__name__)

NOTE, EVERYONE = "embedder", ""
"""The note that names the embedder whose vectors entries are to have, and the tenant of that note,
which can name no tenant. Only the embedder that it names renews: processes that still have the one
before would turn everything back."""
LEASE_S, AGAIN_S = 20.0, 5.0
"""Seconds that one process alone renews, unless it goes on; and after which the others look whether
it still does: it may have been killed."""
BATCH = 64
"""Entries that are embedded together."""


class VectorRenewal:
    """Embeds entries anew whose vectors are of another embedder. Safe from several threads.

    Each entry is written by itself, unless somebody wrote it meanwhile; until then it is found by
    exact keys only.
    """

    def __init__(self, context: CacheContext) -> None:
        self._context = context
        self._lock = Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._holder = uuid4().hex

    def run(self, tenants: Collection[str] | None) -> int:
        """Embed entries of these tenants, or of all, anew; see `PlanCache.embed_anew`."""
        for tenant in tenants or ():
            check_tenant(tenant)
        if self._context.settings.frozen:
            return 0
        store, ours = self._context.store, self._context.embedder.fingerprint
        store.put_note(EVERYONE, NOTE, dumps({"embedder": ours, "done": False}))
        return self._renew(store.tenants() if tenants is None else tenants, whole=tenants is None)

    def start(self) -> None:
        """Go on with what another process began with this embedder, on a thread; return at once."""
        if self._context.settings.frozen or not self._is_due():
            return
        with self._lock:
            if self._closed.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(
                target=self._behind, name="semcache-vector-renewal", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End after the batch that is being embedded; calling it twice is fine."""
        with self._lock:
            self._closed.set()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _behind(self) -> None:
        caught = ErrorCapture()
        with caught:
            self._renew(self._context.store.tenants(), whole=True)
            while self._is_due() and not self._closed.wait(AGAIN_S):
                self._renew(self._context.store.tenants(), whole=True)
        if isinstance(caught.error, SemCacheError):
            part = "embedder" if isinstance(caught.error, EmbeddingError) else "store"
            self._context.health.failed("", part, caught.error)

    def _is_due(self) -> bool:
        try:
            note = self._context.store.get_note(EVERYONE, NOTE)
            said = {} if note is None else as_object(loads(note))
        except (StoreError, InvalidJson) as error:
            self._context.health.failed("", "store", error)
            return False
        return said == {"embedder": self._context.embedder.fingerprint, "done": False}

    def _renew(self, tenants: Collection[str], *, whole: bool) -> int:
        """Embed what is of another embedder; `whole`: whether nothing is due afterwards."""
        count = 0
        try:
            for tenant in tenants:
                for batch in self._strange(tenant):
                    if self._closed.is_set() or not self._has_turn():
                        return count
                    count += self._embedded(tenant, batch)
        finally:
            self._context.store.release(EVERYONE, NOTE, self._holder)
        if whole and self._is_due():
            done = dumps({"embedder": self._context.embedder.fingerprint, "done": True})
            self._context.store.put_note(EVERYONE, NOTE, done)
        log.info("embedded %d entries anew", count)
        return count

    def _has_turn(self) -> bool:
        now = self._context.clock.now()
        return self._context.store.lease(EVERYONE, NOTE, self._holder, ttl_s=LEASE_S, now_s=now)

    def _strange(self, tenant: str) -> Iterator[Sequence[Record]]:
        ours = self._context.embedder.fingerprint
        for page in self._context.store.pages(tenant):
            found = [r for r in page if r.vector is None or r.embedder != ours]
            for start in range(0, len(found), BATCH):
                yield found[start : start + BATCH]

    def _embedded(self, tenant: str, batch: Sequence[Record]) -> int:
        texts: dict[str, str] = {}
        for record in batch:
            try:
                texts[record.id] = embedded_text(from_record(record).template)
            except StoreCorrupt as error:
                self._context.health.failed(tenant, "store", error)
        if not texts:
            return 0
        embedder = self._context.embedder
        rows = embedder.embed([*texts.values()])
        if not np.isfinite(rows).all():
            raise EmbeddingError(f"{embedder!r} gave numbers that are not finite")
        vectors = dict(zip(texts, rows, strict=True))
        renewed = [
            replace(record, vector=vectors[record.id].copy(), embedder=embedder.fingerprint)
            for record in batch
            if record.id in vectors
        ]
        return sum(self._context.store.put(r, over=r.change).written for r in renewed)
