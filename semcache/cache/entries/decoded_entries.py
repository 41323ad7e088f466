"""Decoded entries: those that were served last, ready to be bound."""

from semcache.cache.entries.entry import Entry, from_record
from semcache.ports import Record
from semcache.process.memo import Lru

KEPT = 5_000
"""Entries that are kept: half of what a tenant has by default, those that were served last."""


class DecodedEntries(Lru[tuple[str, str], tuple[int, Entry]]):
    """The entries served last, so that a hit reads and parses its record once. Thread-safe.

    Tenant and id → number of the change that wrote the record, and the entry. What entries share is
    one object in all of them, so that one takes about 2 KB beside its plan. They are for serving:
    without their `examples`, which are not needed for it.
    """

    def __init__(self, keep: int = KEPT) -> None:
        super().__init__(keep)

    def drop(self, tenant: str | None, entry: str | None = None) -> None:
        """Drop an entry of the tenant; None: all of them, of the tenant or of all tenants."""
        if tenant is not None and entry is not None:
            self.pop((tenant, entry))
        else:
            self.forget(lambda key: tenant in {None, key[0]})

    def entry(self, record: Record) -> Entry:
        """Return the entry of `record`, decoded anew if the record changed.

        Raises:
            StoreCorrupt: the body is not an entry of a version that we know.
        """
        key = record.tenant, record.id
        known = self.use(key)
        if known is not None and known[0] == record.change:
            return known[1]
        entry = from_record(record, lean=True)
        self.put(key, (record.change, entry))
        return entry
