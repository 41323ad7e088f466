"""Writes entries: embedded, merged with what was there, in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from semcache.cache.entries.entry import Entry, from_record, merged
from semcache.cache.reports import HealthReporter
from semcache.errors import EmbeddingError, StoreCorrupt, StoreError
from semcache.events import EntryStored
from semcache.matching.words.content import embedded_text
from semcache.ports import Bounds, Embedder, PlanStore, Put, Record, Vector
from semcache.process.forks import give_way

EXAMPLES = 16
"""Parameter sets that an entry remembers of the prompts planned into it."""
ATTEMPTS = 8
"""How often writing is tried over what others write in between; then theirs is replaced."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing a plan did."""

    id: str
    """Id of the entry; empty if nothing was stored."""
    replaced: bool = False
    """Whether an entry of the same template and fixed values was there."""
    reason: str = ""
    """Why nothing was stored, why it is found by exact keys only, or which values it serves alone
    and why; empty if all went well."""
    key: str = ""
    """Readable key of the entry; empty if nothing was stored."""
    bound: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parameter → where in the plan another prompt's value will go, as JSON pointers. What was
    read from the prompt without a name has one of its own: `number1`."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Parameter → the only value that is served, and why."""

    def __bool__(self) -> bool:
        return bool(self.id)


class EntryWriter:
    """Puts entries into a store. Trouble is reported and answered, never raised."""

    def __init__(
        self, store: PlanStore, embedder: Embedder, health: HealthReporter, *, bounds: Bounds
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._health = health
        self._bounds = bounds

    def put(self, entry: Entry) -> Stored:
        """Write `entry`; say what came of it. Cost: one embedding."""
        vector, health = self._vector(entry)
        record = entry.record(vector, self._embedder.fingerprint)
        too_large = _too_large(record, self._bounds)
        if too_large:
            return Stored("", reason=too_large)
        try:
            put = self._written(entry, vector)
        except StoreError as error:
            self._health.failed(entry.tenant, "store", error, doing="writing")
            return Stored("", reason=f"the store failed: {error}")
        self._health.mended("store", doing="writing")
        self._health.mended("store")  # a store that writes answers too
        stored = EntryStored(
            tenant=entry.tenant, entry=entry.id, replaced=put.replaced, evicted=len(put.evicted)
        )
        self._health.emit(stored)
        for tenant, gone in {entry.tenant: put.evicted, **put.elsewhere}.items():
            if gone:
                self._health.removed(tenant, len(gone), "evicted")
        held = entry.plan.held
        alone = "; ".join(f"serves only {name} = {why}" for name, why in held.items())
        return Stored(
            entry.id,
            replaced=put.replaced,
            reason="; ".join(filter(None, (health, alone))),
            key=entry.label,
            bound=entry.plan.places,
            pinned=held,
        )

    def _written(self, entry: Entry, vector: Vector | None) -> Put:
        """Write `entry` merged with what is there, and again if that was replaced meanwhile."""
        for _ in range(ATTEMPTS):
            change, old = self._old(entry)
            examples = entry.examples if old is None else (*old.examples, *entry.examples)
            whole = replace(entry, examples=merged(examples, EXAMPLES))
            record = whole.record(vector, self._embedder.fingerprint)
            put = self._store.put(record, bounds=self._bounds, over=change)
            if put.written:
                return put
        return self._store.put(record, bounds=self._bounds)

    def extend(self, tenant: str, id: str, until_s: float, *, least_s: float) -> None:  # noqa: A002 - the word of the entry
        """Let an entry live until `until_s`, unless it ends after `least_s` or is gone."""
        with self._health.guarded(tenant):
            record = self._store.get(tenant, id)
            if record is None or record.expires_s is None or record.expires_s > least_s:
                return
            entry = replace(from_record(record), expires_s=until_s)
            # Over what was read, so that an entry that was removed meanwhile does not come back.
            self._store.put(entry.record(record.vector, record.embedder), over=record.change)

    def _vector(self, entry: Entry) -> tuple[Vector | None, str]:
        try:
            vector = self._embedded(embedded_text(entry.template))
        except EmbeddingError as error:
            self._health.failed(entry.tenant, "embedder", error)
            return None, f"not embedded: {error}"
        self._health.mended("embedder")
        return vector, ""

    def _embedded(self, text: str) -> Vector:
        give_way()
        vector: Vector = self._embedder.embed([text])[0]
        if not np.isfinite(vector).all():
            raise EmbeddingError("the vector holds NaN or infinity; expected finite numbers")
        return vector

    def _old(self, entry: Entry) -> tuple[int, Entry | None]:
        """Return what is there under the id of `entry`, and the change that wrote it."""
        record = None
        try:
            record = self._store.get(entry.tenant, entry.id)
            return (0, None) if record is None else (record.change, from_record(record))
        except StoreCorrupt as error:
            self._health.failed(entry.tenant, "store", error)
            return (0, None) if record is None else (record.change, None)


def _too_large(record: Record, bounds: Bounds) -> str:
    """Return why `record` alone is over a bound, so that everything else would go for it."""
    least = min((b for b in (bounds.tenant_bytes, bounds.bytes) if b is not None), default=None)
    if least is None or record.size <= least:
        return ""
    return f"the entry has {record.size:,} bytes; the bound of all together is {least:,}"
