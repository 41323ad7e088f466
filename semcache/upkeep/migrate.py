"""Migrate and compact: a store in another one, and a directory without what it needs no more."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from semcache.cache.entries.entry import expired
from semcache.cache.evidence.evidence_notes import NOTE as EVIDENCE_NOTE
from semcache.cache.feedback.corrections import VETOES_NOTE
from semcache.cache.reports import STATISTICS_NOTE
from semcache.cache.view.views import NOTE as VIEW_NOTE
from semcache.errors import InvalidInput, StoreCorrupt
from semcache.ports import Clock, PlanStore, Record
from semcache.stores.disk.directory import existing
from semcache.stores.disk.sidecar import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.upkeep.checks import room

NOTES = (EVIDENCE_NOTE, VETOES_NOTE, STATISTICS_NOTE)
"""What is kept beside the records and moves with them; failures and leases are of the moment."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was copied."""

    tenants: int
    records: int
    notes: int
    passed_over: tuple[str, ...] = ()
    """What could not be read, as `tenant: what`."""


def migrate(source: PlanStore, target: PlanStore) -> Migrated:
    """Copy records, their vectors and uses, evidence, vetoes and counts of every tenant.

    Nothing is embedded or planned anew, and `source` stays as it is: others may go on using it, and
    what they had stored before this began is copied. Records keep the order of their changes, with
    other numbers. Running it again after a crash replaces what is there.

    Raises:
        InvalidInput: `target` has records that `source` has not: two caches are never mixed.
        StoreUnavailable: one of them cannot be used; what was copied up to then is whole.
    """
    tenants = source.tenants()
    strange = [name for name in target.tenants() if name not in tenants]
    if strange:
        raise InvalidInput(
            f"the target has plans of tenant {strange[0]!r}, and the source has none; name an "
            "empty target"
        )
    records = notes = 0
    passed_over: list[str] = []
    for tenant in tenants:
        count = source.count(tenant)  # before: others may write meanwhile
        found = source.scan(tenant)
        lost = count - len(found)
        if lost > 0:
            passed_over.append(f"{tenant}: {lost} records are not what was written")
        _refuse_strange(tenant, found, target)
        for record in found:
            target.put(record)
        records += len(found)
        _move_uses(tenant, source, target)
        notes += sum(_move_note(tenant, name, source, target, passed_over) for name in NOTES)
    return Migrated(len(tenants), records, notes, tuple(passed_over))


def _refuse_strange(tenant: str, found: Sequence[Record], target: PlanStore) -> None:
    ids = {record.id for record in found}
    strange = [record.id for record in target.scan(tenant) if record.id not in ids]
    if strange:
        raise InvalidInput(
            f"the target has entry {strange[0]!r} of tenant {tenant!r}, and the source has not; "
            "name an empty target"
        )


def _move_uses(tenant: str, source: PlanStore, target: PlanStore) -> None:
    there = target.uses(tenant)
    for known, use in source.uses(tenant).items():
        more = use.count - there[known].count if known in there else 0
        if more > 0:
            target.use(tenant, {known: more}, now_s=use.last_s)


def _move_note(
    tenant: str, name: str, source: PlanStore, target: PlanStore, passed_over: list[str]
) -> bool:
    try:
        note = source.get_note(tenant, name)
    except StoreCorrupt as error:
        passed_over.append(f"{tenant}: {error}")
        return False
    if note is None:
        return False
    target.put_note(tenant, name, note)
    return True


@dataclass(frozen=True, slots=True)
class Compacted:
    """What compacting removed."""

    expired: int
    """Entries that had expired."""
    damaged: int
    """Entries that were not what was written: they are set aside, and count no more."""
    snapshots: int
    """Snapshots that no tenant names any more."""
    bytes_before: int
    """Bytes of all files of the directory."""
    bytes_after: int


def compact(directory: str | Path, *, clock: Clock, encryption_key: str = "") -> Compacted:
    """Remove expired entries and snapshots that nobody reads, and give their room back to the disk.

    Other processes may go on working; they wait while the database is written anew, which takes
    about as much free room as it has.

    Raises:
        ForeignDirectory: there is no cache at `directory`.
        StoreUnavailable, StoreCorrupt, WrongKey: it cannot be opened or written.
    """
    directory = existing(Path(directory))
    before = room(directory)
    plain = DiskStore.open(directory)
    with closing(unlocked(plain, encryption_key, what=repr(str(directory)))) as store:
        gone = [_expire(store, tenant, clock.now()) for tenant in store.tenants()]
        named = {t for t in store.tenants() if store.get_note(t, VIEW_NOTE) is not None}
        snapshots = SnapshotDirectory(directory / VIEWS).keep(named)
        plain.shrink()
    old, damaged = (sum(each) for each in zip(*gone, strict=True)) if gone else (0, 0)
    return Compacted(old, damaged, snapshots, before, room(directory))


def _expire(store: PlanStore, tenant: str, now_s: float) -> tuple[int, int]:
    """Return how many expired entries were removed, and how many damaged ones were set aside."""
    count, records = store.count(tenant), store.scan(tenant)
    old = [record.id for record in records if expired(record, now_s)]
    removed = store.remove(tenant, old) if old else 0
    return removed, max(0, count - len(records))  # others may write meanwhile
