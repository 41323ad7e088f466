"""Removal: entries go by what they are called, by age, or all at once."""

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import expired
from semcache.cache.feedback.corrections import Correction, Removed
from semcache.cache.query import check_tenant, check_word
from semcache.errors import InvalidInput


class Removal:
    """Removes entries and tells of it. Safe from several threads; trouble removes none."""

    def __init__(self, context: CacheContext) -> None:
        self._corrections = context.corrections
        self._store = context.store
        self._clock = context.clock
        self._health = context.health

    def named(
        self,
        tenant: str,
        *,
        entry: str | None,
        tag: str | None,
        operation: str | None,
        key: str | None,
    ) -> Removed:
        """Remove what any of these names; return how many entries. See `PlanCache.invalidate`."""
        check_tenant(tenant)
        labels = {"tag": tag, "operation": operation, "key": key}
        wanted = [f"{name}:{value}" for name, value in labels.items() if value is not None]
        if not wanted and entry is None:
            raise InvalidInput("name an id, a tag, an operation or a key; `clear` removes all")
        for name, value in {**labels, "id": entry}.items():
            if value is not None:
                check_word(name, value)
        ids = () if entry is None else (entry,)
        return self._corrections.make(Correction("remove", tenant, ids, tuple(wanted)))

    def expired(self, tenant: str) -> int:
        """Remove what has expired by now; return how many entries."""
        check_tenant(tenant)
        removed = 0
        with self._health.guarded(tenant):
            now = self._clock.now()
            old = [r.id for r in self._store.scan(tenant) if expired(r, now)]
            removed = self._store.remove(tenant, old)
            if removed:
                self._health.removed(tenant, removed, "expired")
        return removed

    def everything(self, tenant: str | None) -> Removed:
        """Remove and forget everything of the tenant, or of all (None); return how many entries."""
        if tenant is not None:
            check_tenant(tenant)
        return self._corrections.make(Correction("clear", tenant, why="cleared"))
