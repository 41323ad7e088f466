"""Statistics: what a tenant's lookups came to, counted in memory and kept beside the records."""

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from semcache.canonical import dumps, loads
from semcache.errors import InvalidJson
from semcache.ports import PlanStore

NOTE = "statistics"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one tenant since its first lookup."""

    entries: int
    """Entries that the tenant has now."""
    lookups: int
    hits: Mapping[str, int]
    """Tier → hits."""
    misses: Mapping[str, int]
    """Reason → misses."""
    stored: int
    feedback_right: int
    feedback_wrong: int

    @property
    def hit_rate(self) -> float:
        """Share of lookups that hit, in [0, 1]; 0 before the first."""
        return sum(self.hits.values()) / self.lookups if self.lookups else 0.0


class Counters:
    """Counts events of all tenants; adds them to the store's notes now and then. Thread-safe."""

    def __init__(self, store: PlanStore, *, every: int = 256) -> None:
        self._store = store
        self._every = every
        self._lock = threading.Lock()
        self._pending: dict[str, Counter[str]] = defaultdict(Counter)
        self._size = 0

    def add(self, tenant: str, name: str) -> bool:
        """Count one `name`; return whether enough is pending to be worth a `flush`."""
        with self._lock:
            self._pending[tenant][name] += 1
            self._size += 1
            return self._size >= self._every

    def flush(self) -> None:
        """Write what is pending to the store.

        Raises:
            StoreUnavailable: the store cannot be written; what is pending waits for the next.
        """
        with self._lock:
            pending, self._pending, self._size = self._pending, defaultdict(Counter), 0
        try:
            while pending:
                tenant, counts = next(iter(pending.items()))
                self._store.update_note(tenant, NOTE, partial(_added, counts))
                del pending[tenant]
        finally:
            self._keep(pending)

    def _keep(self, pending: dict[str, Counter[str]]) -> None:
        with self._lock:
            for tenant, counts in pending.items():
                self._pending[tenant].update(counts)

    def read(self, tenant: str) -> Counter[str]:
        """Return the tenant's counts, pending ones included."""
        counts = _read(self._store.get_note(tenant, NOTE))
        with self._lock:
            counts.update(self._pending.get(tenant, Counter()))
        return counts

    def forget(self, tenant: str | None) -> None:
        """Drop what is pending for the tenant, or for all (None)."""
        with self._lock:
            if tenant is None:
                self._pending.clear()
            else:
                self._pending.pop(tenant, None)


def _read(text: str | None) -> Counter[str]:
    try:
        doc = loads(text, what="statistics") if text else {}
    except InvalidJson:
        return Counter()  # counts are worth less than an error to a caller who wants an answer
    pairs = doc.items() if isinstance(doc, dict) else ()
    return Counter({name: n for name, n in pairs if isinstance(n, int)})


def _added(new: Counter[str], old: str | None) -> str:
    return dumps(dict(_read(old) + new))


def statistics(counts: Counter[str], entries: int) -> Statistics:
    """Return `counts` by their names: `hit:<tier>`, `miss:<reason>`, `stored`, `right`, `wrong`."""
    hits = {name[4:]: n for name, n in counts.items() if name.startswith("hit:")}
    misses = {name[5:]: n for name, n in counts.items() if name.startswith("miss:")}
    return Statistics(
        entries=entries,
        lookups=sum(hits.values()) + sum(misses.values()),
        hits=hits,
        misses=misses,
        stored=counts["stored"],
        feedback_right=counts["right"],
        feedback_wrong=counts["wrong"],
    )
