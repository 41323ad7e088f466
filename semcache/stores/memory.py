"""A store that lives as long as the process."""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from semcache.errors import StoreUnavailable
from semcache.forks import Forked, follow_forks
from semcache.ports import (
    PAGE,
    UNBOUNDED,
    Bounds,
    Change,
    Put,
    Record,
    Room,
    Use,
)
from semcache.stores.eviction import largest, replaced, surplus, unused, used
from semcache.stores.records import check_record, check_text
from semcache.stores.vectors.ranking import checked_vector

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans


@dataclass(slots=True)
class _Total:
    """What the records of all tenants take, kept up so that no write has to look at each."""

    entries: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Tenant:
    """The records of one tenant, and the ways in to them."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)
    labels: dict[str, set[str]] = field(default_factory=dict)
    uses: dict[str, Use] = field(default_factory=dict)
    ranks: list[tuple[float, int, str]] = field(default_factory=list)
    """A heap of (worth, change, id); those of a record that is gone or worth more are stale."""
    size: int = 0
    """Bytes of the records."""
    notes: dict[str, str] = field(default_factory=dict)
    total: _Total = field(default_factory=_Total)

    @property
    def room(self) -> Room:
        return Room(len(self.records), self.size)

    def add(self, record: Record, use: Use) -> None:
        self.records[record.id] = record
        self.size += record.size
        self.total.entries += 1
        self.total.bytes += record.size
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in names:
                ways.setdefault(name, set()).add(record.id)
        self.rank(record, use)

    def rank(self, record: Record, use: Use) -> None:
        self.uses[record.id] = use
        heapq.heappush(self.ranks, (use.worth, record.change, record.id))
        if len(self.ranks) > 2 * len(self.records) + 64:
            self.ranks = [(self.uses[r.id].worth, r.change, r.id) for r in self.records.values()]
            heapq.heapify(self.ranks)

    def drop(self, id: str) -> Use | None:  # noqa: A002 - the word of the record
        """Forget a record; return what its use was, None if it was not there."""
        record = self.records.pop(id, None)
        if record is None:
            return None
        self.size -= record.size
        self.total.entries -= 1
        self.total.bytes -= record.size
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in set(names):
                ways[name].discard(id)
                if not ways[name]:
                    del ways[name]
        return self.uses.pop(id)

    def least(self, *, beside: Record) -> str | None:
        """Return the id of the record worth least that is not `beside`; None if there is none."""
        kept: list[tuple[float, int, str]] = []
        found = None
        while self.ranks and found is None:
            worth, change, known = heapq.heappop(self.ranks)
            record = self.records.get(known)
            if record is None or record.change != change or self.uses[known].worth != worth:
                continue
            kept.append((worth, change, known))
            found = None if record is beside else known
        for rank in kept:
            heapq.heappush(self.ranks, rank)
        return found


class MemoryStore(Forked):
    """Records in memory, as `ports.PlanStore` promises; gone with the process."""

    def __init__(self, *, kept_changes: int = KEPT_CHANGES) -> None:
        self._lock = threading.RLock()
        self._tenants: dict[str, _Tenant] = {}
        self._total = _Total()
        self._leases: dict[tuple[str, str], tuple[str, float]] = {}
        self._log: deque[Change] = deque(maxlen=kept_changes)
        self._number = 0
        self._closed = False
        follow_forks(self)

    def forking(self) -> None:
        """Let no other thread be in the middle of a change."""
        self._lock.acquire()

    def went_on(self) -> None:
        """Let the others in again."""
        self._lock.release()

    def forked(self) -> None:
        """Be free in the child, which has a copy of its own from here on."""
        self._lock = threading.RLock()

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        The record just written is never evicted. `over`: number of the change whose record this
        one is to replace, 0 for none; if another is there, nothing is done.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        vector = None if record.vector is None else checked_vector(record.vector, None).copy()
        if vector is not None:
            vector.setflags(write=False)
        with self._lock:
            tenant = self._tenant(record.tenant)
            there = tenant.records.get(record.id)
            if over is not None and over != (0 if there is None else there.change):
                return Put(self._number, replaced=False, evicted=(), written=False)
            use = tenant.drop(record.id)
            number = self._change(record.tenant, record.id, "put")
            record = replace(record, vector=vector, change=number)
            tenant.add(record, unused(record) if use is None else replaced(use, record))
            gone = self._evict(record, bounds)
            own = tuple(gone.pop(record.tenant, ()))
            others = {name: tuple(ids) for name, ids in gone.items()}
            return Put(self._number, use is not None, own, others)

    def _evict(self, record: Record, bounds: Bounds) -> dict[str, list[str]]:
        gone: dict[str, list[str]] = {}
        own = self._tenants[record.tenant]
        while surplus(own.room, bounds.tenant_entries, bounds.tenant_bytes):
            if not self._evict_from([record.tenant], record, gone):
                break
        while surplus(kept := self.room(), bounds.entries, bounds.bytes):
            rooms = ((name, known.room) for name, known in self._tenants.items())
            if not self._evict_from(largest(rooms, kept, bounds), record, gone):
                break
        return gone

    def _evict_from(
        self, tenants: Sequence[str], record: Record, gone: dict[str, list[str]]
    ) -> bool:
        """Evict one record of the first of `tenants` that has one; return whether one had."""
        for name in tenants:
            least = self._tenants[name].least(beside=record)
            if least is not None:
                self._tenants[name].drop(least)
                self._change(name, least, "remove")
                gone.setdefault(name, []).append(least)
                return True
        return False

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""
        with self._lock:
            kept = self._read(tenant)
            for known, count in uses.items():
                record = kept.records.get(known)
                if record is not None:
                    kept.rank(record, used(kept.uses[known], record, count, now_s))

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant."""
        with self._lock:
            return dict(self._read(tenant).uses)

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        with self._lock:
            if tenant is not None:
                return self._read(tenant).room
            self._open()
            return Room(self._total.entries, self._total.bytes)

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        with self._lock:
            self._open()
            has, until_s = self._leases.get((tenant, name), (holder, now_s))
            if has != holder and until_s > now_s:
                return False
            self._leases[tenant, name] = (holder, now_s + ttl_s)
            return True

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""
        with self._lock:
            self._open()
            has, _ = self._leases.get((tenant, name), ("", 0.0))
            if has == holder:
                del self._leases[tenant, name]

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None."""
        with self._lock:
            return self._read(tenant).records.get(id)

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none."""
        with self._lock:
            kept = self._read(tenant)
            found = [kept.records[known] for known in kept.keys.get(key, ())]
        return sorted(found, key=lambda record: -record.change)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        with self._lock:
            kept = self._read(tenant)
            gone = [known for known in ids if kept.drop(known) is not None]
            for known in gone:
                self._change(tenant, known, "remove")
        return len(gone)

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every record of the tenant, oldest change first."""
        with self._lock:
            records = list(self._read(tenant).records.values())
        return sorted(records, key=lambda record: record.change)

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time."""
        records = self.scan(tenant)
        return (records[start : start + size] for start in range(0, len(records), size))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        with self._lock:
            return sorted(self._read(tenant).labels.get(label, ()))

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        with self._lock:
            return len(self._read(tenant).records)

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        with self._lock:
            return sorted(name for name, kept in self._open().items() if kept.records)

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed."""
        self._open()
        return self._number

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten.

        A number that this store has not reached is another store's: also None.
        """
        with self._lock:
            self._open()
            behind = self._number - since
            if behind < 0 or behind > len(self._log):
                return None
            return [self._log[i] for i in range(-behind, 0)]

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None."""
        with self._lock:
            return self._read(tenant).notes.get(name)

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction."""
        with self._lock:
            notes = self._tenant(tenant).notes
            text = change(notes.get(name))
            if text is None:
                notes.pop(name, None)
            else:
                check_text(name, text)
                notes[name] = text

    def clear(self, tenant: str | None = None) -> int:
        """Remove all records and notes of the tenant, or of every tenant (None)."""
        with self._lock:
            names = list(self._open()) if tenant is None else [tenant]
            return sum(self._clear(name) for name in names)

    def _clear(self, tenant: str) -> int:
        kept = self._tenants.pop(tenant, None) or _Tenant()
        for known in sorted(kept.records):
            self._change(tenant, known, "remove")
        self._total.entries -= len(kept.records)
        self._total.bytes -= kept.size
        return len(kept.records)

    def close(self) -> None:
        """Forget everything; calling it twice is fine."""
        with self._lock:
            self._closed = True
            self._tenants = {}

    def _tenant(self, tenant: str) -> _Tenant:
        return self._open().setdefault(tenant, _Tenant(total=self._total))

    def _read(self, tenant: str) -> _Tenant:
        return self._open().get(tenant) or _Tenant()

    def _open(self) -> dict[str, _Tenant]:
        if self._closed:
            raise StoreUnavailable("the memory store is closed; make a new one")
        return self._tenants

    def _change(self, tenant: str, id: str, kind: Literal["put", "remove"]) -> int:  # noqa: A002 - the word of the record
        self._number += 1
        self._log.append(Change(self._number, tenant, id, kind))
        return self._number
