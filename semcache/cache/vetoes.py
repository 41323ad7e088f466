"""Vetoes: pairs of template and entry that feedback called wrong; never served again."""

from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson
from semcache.forks import Lock
from semcache.ports import PlanStore

NOTE = "vetoes"
KEPT = 10_000
"""Vetoes a tenant keeps, oldest dropped first."""


class Vetoes:
    """Vetoes of all tenants, kept in the store's notes; every process sees them. Thread-safe."""

    def __init__(self, store: PlanStore) -> None:
        self._store = store
        self._read: dict[str, tuple[str | None, frozenset[str]]] = {}
        self._lock = Lock()

    def stands(self, tenant: str, template: str, entry: str) -> bool:
        """Return whether `entry` was called wrong for the template with that digest.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        note = self._store.get_note(tenant, NOTE)
        with self._lock:
            known = self._read.get(tenant)
            if known is None or known[0] != note:
                known = (note, frozenset(_pairs(note)))
                self._read[tenant] = known
        return _pair(template, entry) in known[1]

    def add(self, tenant: str, template: str, entry: str) -> None:
        """Remember that `entry` is wrong for the template.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        pair = _pair(template, entry)

        def added(note: str | None) -> str:
            pairs = [known for known in _pairs(note) if known != pair]
            kept: list[Json] = [*pairs, pair]
            return dumps(kept[-KEPT:])

        self._store.update_note(tenant, NOTE, added)

    def forget(self, tenant: str | None) -> None:
        """Drop what was read of the tenant, or of all (None)."""
        with self._lock:
            if tenant is None:
                self._read.clear()
            else:
                self._read.pop(tenant, None)


def _pair(template: str, entry: str) -> str:
    return f"{template[:32]}:{entry}"


def _pairs(note: str | None) -> list[str]:
    try:
        doc = loads(note, what="vetoes") if note else []
    except InvalidJson:
        return []  # a broken note forgets vetoes; it must not make every lookup fail
    return [pair for pair in doc if isinstance(pair, str)] if isinstance(doc, list) else []
