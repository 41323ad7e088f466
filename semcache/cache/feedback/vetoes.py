"""Vetoes: pairs of template and entry that feedback called wrong; never served again."""

from typing import NamedTuple

from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson
from semcache.forks import Lock
from semcache.ports import PlanStore

NOTE = "vetoes"
KEPT = 10_000
"""Vetoes a tenant keeps, oldest dropped first."""


class Vetoes:
    """Vetoes of all tenants, kept in the store's notes; every process sees them. Thread-safe.

    A veto counts as a change of its entry, so that a tenant's note is read again only after the
    store has changed: a lookup in a store that stands still reads none.
    """

    def __init__(self, store: PlanStore, *, frozen: bool = False) -> None:
        """`frozen`: whether no record can be written; then vetoes are this process's alone."""
        self._store = store
        self._frozen = frozen
        self._read: dict[str, _Read] = {}
        self._lock = Lock()

    def stands(self, tenant: str, template: str, entry: str, *, change: int) -> bool:
        """Return whether `entry` was called wrong for the template with that digest.

        `change`: number of the store's last change that the caller has seen.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        with self._lock:
            known = self._read.get(tenant)
        if known is None or known.change != change:
            # Outside the lock: a store that hangs must not stop those who ask for other tenants.
            note = self._store.get_note(tenant, NOTE)
            if known is not None and known.note == note:
                known = known._replace(change=change)
            else:
                known = _Read(change, note, frozenset(_pairs(note)))
            with self._lock:
                self._read[tenant] = known
        return _pair(template, entry) in known.pairs

    def add(self, tenant: str, template: str, entry: str) -> None:
        """Remember that `entry` is wrong for the template.

        Raises:
            StoreUnavailable: the store cannot be read or written.
        """
        pair = _pair(template, entry)

        def added(note: str | None) -> str:
            pairs = [known for known in _pairs(note) if known != pair]
            kept: list[Json] = [*pairs, pair]
            return dumps(kept[-KEPT:])

        self._store.update_note(tenant, NOTE, added)
        self.forget(tenant)
        record = None if self._frozen else self._store.get(tenant, entry)
        if record is not None:
            # Over what was read: an entry that was written or removed meanwhile has changed anyway.
            self._store.put(record, over=record.change)

    def forget(self, tenant: str | None) -> None:
        """Drop what was read of the tenant, or of all (None)."""
        with self._lock:
            if tenant is None:
                self._read.clear()
            else:
                self._read.pop(tenant, None)


class _Read(NamedTuple):
    """What was read of a tenant's vetoes."""

    change: int
    """Number of the store's last change before the note was read."""
    note: str | None
    pairs: frozenset[str]


def _pair(template: str, entry: str) -> str:
    return f"{template[:32]}:{entry}"


def _pairs(note: str | None) -> list[str]:
    try:
        doc = loads(note, what="vetoes") if note else []
    except InvalidJson:
        return []  # a broken note forgets vetoes; it must not make every lookup fail
    return [pair for pair in doc if isinstance(pair, str)] if isinstance(doc, list) else []
