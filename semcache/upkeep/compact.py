"""Compact: a directory without what it does not need any more."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from semcache.cache.entries.entry import expired
from semcache.cache.view.views import NOTE
from semcache.ports import Clock, PlanStore
from semcache.stores.disk.directory import existing
from semcache.stores.disk.snapshots import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked


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
        named = {t for t in store.tenants() if store.get_note(t, NOTE) is not None}
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


def room(directory: Path) -> int:
    """Return the bytes of all files below `directory`."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
