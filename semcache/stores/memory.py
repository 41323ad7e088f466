"""A store that lives as long as the process."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from semcache.errors import StoreUnavailable
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, Put, Record, Room, Use
from semcache.process.forks import Lock
from semcache.stores.eviction import (
    TenantRanking,
    by_tenant,
    make_room,
    replaced,
    unused,
    used,
)
from semcache.stores.records import check_record, check_text
from semcache.stores.vectors.ranking import checked_vector

KEPT_CHANGES = 10_000  # changes that `changes` can tell, 2 MB; whoever is further behind scans


class _Tenant:
    """The records of one tenant, their uses, and what follows from these: the ways in to them."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.uses: dict[str, Use] = {}
        self.notes: dict[str, str] = {}
        self.keys: dict[str, set[str]] = {}
        self.labels: dict[str, set[str]] = {}
        self.ranks: list[tuple[float, int, str]] = []
        """A heap of (worth, change, id); those of a record that is gone or worth more are stale."""
        self.size = 0
        """Bytes of the records."""

    @property
    def room(self) -> Room:
        return Room(len(self.records), self.size)

    def settle(self) -> None:
        """Work out anew what follows from the records."""
        self.uses = {k: self.uses.get(k) or unused(r) for k, r in self.records.items()}
        self.keys, self.labels, self.ranks, self.size = {}, {}, [], 0
        for record in self.records.values():
            self.lead_to(record)

    def lead_to(self, record: Record) -> None:
        """Take in what follows from `record`, which is here now."""
        self.size += record.size
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in names:
                ways.setdefault(name, set()).add(record.id)
        self.rank(record, self.uses[record.id])

    def lead_away(self, record: Record) -> None:
        """Forget what followed from `record`, which is not here any more."""
        self.size -= record.size
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in set(names):
                ways[name].discard(record.id)
                if not ways[name]:
                    del ways[name]

    def rank(self, record: Record, use: Use) -> None:
        self.uses[record.id] = use
        heapq.heappush(self.ranks, (use.worth, record.change, record.id))
        if len(self.ranks) > 2 * len(self.records) + 64:
            self.ranks = [(self.uses[r.id].worth, r.change, r.id) for r in self.records.values()]
            heapq.heapify(self.ranks)

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


class _Contents:
    """The records of all tenants, as a store with a lock has them.

    An interrupt may end a change between any two lines. So what will change is noted first, the
    record comes or goes in one step, and whoever comes next works out anew what follows from that.
    """

    def __init__(self, kept_changes: int) -> None:
        self.tenants: dict[str, _Tenant] = {}
        self.log: deque[Change] = deque(maxlen=max(1, kept_changes))
        self.changing: list[tuple[str, str]] = []
        """Tenants and ids that the change under way is about; else empty."""
        self._total = Room(0, 0)
        self._by_entries = TenantRanking(lambda tenant: self.room(tenant).entries)
        self._by_bytes = TenantRanking(lambda tenant: self.room(tenant).bytes)

    def settle(self) -> None:
        """Put in order what an interrupted change left."""
        for tenant in {name for name, _ in self.changing}:
            self.tenants.setdefault(tenant, _Tenant()).settle()
            self._by_entries.changed(tenant)
            self._by_bytes.changed(tenant)
        rooms = [kept.room for kept in self.tenants.values()]
        self._total = Room(sum(r.entries for r in rooms), sum(r.bytes for r in rooms))
        for tenant, known in self.changing:  # told twice is better than not at all
            self._tell(tenant, known)
        self.changing = []

    def of(self, tenant: str) -> _Tenant:
        """Return what the tenant has; to read alone."""
        return self.tenants.get(tenant) or _Tenant()

    def put(self, record: Record) -> None:
        """Write `record` over its id."""
        kept = self.tenants.setdefault(record.tenant, _Tenant())
        there = kept.records.get(record.id)
        use = unused(record) if there is None else replaced(kept.uses[record.id], record)
        self.changing.append((record.tenant, record.id))
        kept.uses[record.id] = use
        kept.records[record.id] = record
        self._tell(record.tenant, record.id)
        self._count(record.tenant, there, record)

    def drop(self, tenant: str, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget a record; return whether it was there."""
        kept = self.of(tenant)
        record = kept.records.get(id)
        if record is None:
            return False
        self.changing.append((tenant, id))
        del kept.records[id]
        self._tell(tenant, id)
        self._count(tenant, record, None)
        del kept.uses[id]
        return True

    def done(self, tenant: str) -> None:
        """Note that a change is whole; forget the tenant if nothing is left of it."""
        self.changing = []
        kept = self.of(tenant)
        if not kept.records and not kept.notes:
            self.tenants.pop(tenant, None)

    def last_change(self) -> int:
        """Return the number of the latest change."""
        return self.log[-1].number if self.log else 0

    def _count(self, tenant: str, before: Record | None, now: Record | None) -> None:
        """Take in what follows from a record that came, went or was replaced."""
        kept = self.tenants[tenant]
        entries, size = self._total.entries, self._total.bytes
        if before is not None:
            kept.lead_away(before)
            entries, size = entries - 1, size - before.size
        if now is not None:
            kept.lead_to(now)
            entries, size = entries + 1, size + now.size
        self._total = Room(entries, size)
        self._by_entries.changed(tenant)
        self._by_bytes.changed(tenant)

    def _tell(self, tenant: str, id: str) -> None:  # noqa: A002 - the word of the record
        """Number the change of a record by what is there now."""
        kind: Literal["put", "remove"] = "put" if id in self.of(tenant).records else "remove"
        self.log.append(Change(self.last_change() + 1, tenant, id, kind))

    # While room is made, as `stores.eviction.Occupancy` promises --------------------------------

    def room(self, tenant: str) -> Room:
        """Return what the records of the tenant take."""
        return self.of(tenant).room

    def total(self) -> Room:
        """Return what the records of all tenants take."""
        return self._total

    def largest(self, *, in_bytes: bool) -> list[str]:
        """Return the two tenants that have most, most first."""
        return (self._by_bytes if in_bytes else self._by_entries).largest()

    def evict(self, tenant: str, beside: Record) -> str | None:
        """Remove the tenant's record that is worth least and not `beside`; return its id."""
        known = self.of(tenant).least(beside=beside)
        if known is not None:
            self.drop(tenant, known)
            if not self.of(tenant).records:
                self.done(tenant)
        return known


class MemoryStore:
    """Records in memory, as `ports.PlanStore` promises; gone with the process.

    A forked child has a copy of its own. A change that another thread was in the middle of is
    settled there as after an interrupt.
    """

    def __init__(self, *, kept_changes: int = KEPT_CHANGES) -> None:
        self._lock = Lock()
        self._contents = _Contents(kept_changes)
        self._leases: dict[tuple[str, str], tuple[str, float]] = {}
        self._closed = False

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record` and make room for it; see `ports.PlanStore`.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        vector = None if record.vector is None else checked_vector(record.vector, None).copy()
        if vector is not None:
            vector.setflags(write=False)
        with self._lock:
            contents = self._settled()
            there = contents.of(record.tenant).records.get(record.id)
            if over is not None and over != (0 if there is None else there.change):
                return Put(contents.last_change(), replaced=False, evicted=(), written=False)
            record = replace(record, vector=vector, change=contents.last_change() + 1)
            contents.put(record)
            others = by_tenant(make_room(contents, record, bounds))
            contents.done(record.tenant)
            own = others.pop(record.tenant, ())
            return Put(contents.last_change(), there is not None, own, others)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""
        with self._lock:
            contents = self._settled()
            gone = sum(contents.drop(tenant, known) for known in ids)
            contents.done(tenant)
        return gone

    def clear(self, tenant: str | None = None) -> int:
        """Remove all records and notes of the tenant, or of every tenant (None)."""
        with self._lock:
            contents = self._settled()
            gone = 0
            for name in [*contents.tenants] if tenant is None else [tenant]:
                known = sorted(contents.of(name).records)
                gone += sum(contents.drop(name, one) for one in known)
                contents.of(name).notes.clear()
                contents.done(name)
            return gone

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""
        with self._lock:
            kept = self._settled().of(tenant)
            for known, count in uses.items():
                record = kept.records.get(known)
                if record is not None:
                    kept.rank(record, used(kept.uses[known], record, count, now_s))

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant."""
        with self._lock:
            return dict(self._settled().of(tenant).uses)

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""
        with self._lock:
            contents = self._settled()
            return contents.total() if tenant is None else contents.room(tenant)

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it."""
        check_text(tenant, name, holder)
        with self._lock:
            self._open()
            has, until_s = self._leases.get((tenant, name), (holder, now_s))
            # One that would last longer than two of its kind is of a clock that was set back since.
            if has != holder and now_s < until_s <= now_s + 2 * ttl_s:
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
            return self._settled().of(tenant).records.get(id)

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none."""
        with self._lock:
            kept = self._settled().of(tenant)
            found = [kept.records[known] for known in kept.keys.get(key, ())]
        return sorted(found, key=lambda record: -record.change)

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every record of the tenant, oldest change first."""
        with self._lock:
            records = list(self._settled().of(tenant).records.values())
        return sorted(records, key=lambda record: record.change)

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time."""
        records = self.scan(tenant)
        return (records[start : start + size] for start in range(0, len(records), size))

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        with self._lock:
            return sorted(self._settled().of(tenant).labels.get(label, ()))

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self.room(tenant).entries

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        with self._lock:
            tenants = self._settled().tenants
            return sorted(name for name, kept in tenants.items() if kept.records)

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed."""
        return self._open().last_change()  # of a change under way too: no lock for every lookup

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after `since`, in order; None if forgotten, or not reached yet."""
        with self._lock:
            contents = self._settled()
            behind = contents.last_change() - since
            if behind < 0 or behind > len(contents.log):
                return None
            return [contents.log[i] for i in range(-behind, 0)]

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note, or None."""
        with self._lock:
            return self._settled().of(tenant).notes.get(name)

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction."""
        with self._lock:
            contents = self._settled()
            text = change(contents.of(tenant).notes.get(name))
            if text is None:
                contents.of(tenant).notes.pop(name, None)
            else:
                check_text(name, text)
                contents.tenants.setdefault(tenant, _Tenant()).notes[name] = text
            contents.done(tenant)

    def close(self) -> None:
        """Forget everything; calling it twice is fine."""
        with self._lock:
            self._closed = True
            self._contents = _Contents(1)

    def _settled(self) -> _Contents:
        """Return what is kept, with all that was interrupted before put in order."""
        contents = self._open()
        if contents.changing:
            contents.settle()
        return contents

    def _open(self) -> _Contents:
        if self._closed:
            raise StoreUnavailable("the memory store is closed; make a new one")
        return self._contents
