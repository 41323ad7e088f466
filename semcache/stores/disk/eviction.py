"""Eviction from a store on disk: what is worth least makes room for what was just written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semcache.ports import Bounds, Record
from semcache.stores.disk import ledger
from semcache.stores.disk.records import DiskRecords
from semcache.stores.eviction import largest, surplus

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database


def evict(
    db: "Database", records: DiskRecords, record: Record, bounds: Bounds
) -> list[tuple[str, str]]:
    """Make room within `bounds` beside `record`; return tenant and id of what went, in order."""
    gone: list[tuple[str, str]] = []
    own = (bounds.tenant_entries, bounds.tenant_bytes)
    while own != (None, None) and surplus(ledger.room(db, record.tenant), *own):
        if not _evict_from(db, records, [record.tenant], record, gone):
            break
    every = (bounds.entries, bounds.bytes)
    while every != (None, None) and surplus(kept := ledger.total(db), *every):
        tenants = largest(ledger.rooms_of_all(db), kept, bounds)
        if not _evict_from(db, records, tenants, record, gone):
            break
    return gone


def _evict_from(
    db: "Database",
    records: DiskRecords,
    tenants: Sequence[str],
    record: Record,
    gone: list[tuple[str, str]],
) -> bool:
    """Evict one record of the first of `tenants` that has one; return whether one had."""
    for name in tenants:
        beside = record.id if name == record.tenant else None
        while (known := ledger.least(db, name, beside=beside)) is not None:
            there, _ = records.drop(db, name, known)
            if there:
                gone.append((name, known))
                return True
            ledger.lose(db, name, known)  # an order that was damaged, and led to no record
    return False
