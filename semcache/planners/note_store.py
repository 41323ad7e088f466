"""A store of JSON texts by tenant and id, beside the cache, bounded in number and in age."""

import logging
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from semcache.canonical import JsonObject, dumps, loads
from semcache.errors import InvalidJson
from semcache.ports import Clock, PlanStore

log = logging.getLogger(__name__)

Row = TypeVar("Row")

_INDEX = TypeAdapter(dict[str, float])
"""Id → when it was written."""


class NoteStore:
    """Small JSON objects by tenant and id, in the notes of a store. Safe from several threads.

    The oldest make room, and none outlives `ttl_s`. Every method may raise `StoreUnavailable`.
    """

    def __init__(
        self, store: PlanStore, clock: Clock, name: str, *, most: int = 500, ttl_s: float
    ) -> None:
        """Keep what is asked for; nothing is read yet.

        Args:
            store: Where they are kept.
            clock: What time it is.
            name: What they are; the notes are named for it.
            most: How many a tenant may have.
            ttl_s: Seconds from writing until one is forgotten.
        """
        self._store = store
        self._clock = clock
        self._name = name
        self._most = most
        self._ttl_s = ttl_s

    def put(self, tenant: str, key: str, told: JsonObject) -> None:
        """Keep `told` under `key`, in place of what was there."""
        self._store.put_note(tenant, self._note(key), dumps(told))
        gone: list[str] = []

        def add(note: str | None) -> str:
            known = self._index(note)
            known.pop(key, None)
            known[key] = self._clock.now()
            gone[:] = [name for name, at in known.items() if self._old(at)]
            gone.extend(list(known)[: max(0, len(known) - self._most)])
            return _INDEX.dump_json({k: at for k, at in known.items() if k not in gone}).decode()

        self._store.update_note(tenant, self._name, add)
        for name in gone:
            self._store.put_note(tenant, self._note(name), None)

    def get(self, tenant: str, key: str) -> JsonObject | None:
        """Return what is kept under `key`; None if nothing is, or no longer."""
        written = self._index(self._store.get_note(tenant, self._name)).get(key)
        if written is None or self._old(written):
            return None
        note = self._store.get_note(tenant, self._note(key))
        try:
            told = None if note is None else loads(note, what=f"the note of {key!r}")
        except InvalidJson:
            return None
        return told if isinstance(told, dict) else None

    def names(self, tenant: str) -> tuple[str, ...]:
        """Return what is kept, oldest first."""
        known = self._index(self._store.get_note(tenant, self._name))
        return tuple(name for name, at in known.items() if not self._old(at))

    def take(self, tenant: str, key: str) -> bool:
        """Forget what is kept under `key`; return whether it was there. One caller gets it."""
        taken: list[bool] = []

        def drop(note: str | None) -> None:
            taken[:] = [note is not None]

        self._store.update_note(tenant, self._note(key), drop)
        return taken == [True]

    def _index(self, note: str | None) -> dict[str, float]:
        return rows_of(note, _INDEX, f"the list of {self._name!r}")

    def _note(self, key: str) -> str:
        return f"{self._name}:{key}"

    def _old(self, written_s: float) -> bool:
        return abs(self._clock.now() - written_s) >= self._ttl_s  # clocks may be set back


def rows_of(note: str | None, adapter: "TypeAdapter[dict[str, Row]]", what: str) -> dict[str, Row]:
    """Return the rows of a note by their names, in the order in which they were written.

    None of a note that cannot be read: `what` it held is forgotten then, with a warning.
    """
    if note is None:
        return {}
    try:
        return adapter.validate_json(note)
    except ValidationError as error:
        log.warning("%s cannot be read and is forgotten: %s", what, error.errors()[0]["msg"])
        return {}
