"""A store and an index that live as long as the process."""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from semcache.errors import StoreUnavailable
from semcache.ports import Change, Neighbor, Put, Record, Vector, Vectors
from semcache.stores.codec import check_record, check_text
from semcache.stores.rows import TIE, Rows
from semcache.stores.vectors import checked_vector

KEPT_CHANGES = 100_000  # changes that `changes` can tell; whoever is further behind scans


@dataclass(slots=True)
class _Tenant:
    """The records of one tenant, and the ways in to them."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)
    labels: dict[str, set[str]] = field(default_factory=dict)
    ages: list[tuple[float, int, str]] = field(default_factory=list)
    """A heap of (created, change, id); entries whose record has another change are stale."""
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        self.records[record.id] = record
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in names:
                ways.setdefault(name, set()).add(record.id)
        heapq.heappush(self.ages, (record.created_s, record.change, record.id))
        if len(self.ages) > 2 * len(self.records) + 64:
            self.ages = [(r.created_s, r.change, r.id) for r in self.records.values()]
            heapq.heapify(self.ages)

    def drop(self, id: str) -> bool:  # noqa: A002 - the word of the record
        record = self.records.pop(id, None)
        if record is None:
            return False
        for ways, names in ((self.keys, record.keys), (self.labels, record.labels)):
            for name in names:
                ways[name].discard(id)
                if not ways[name]:
                    del ways[name]
        return True

    def oldest(self, *, beside: str) -> str:
        """Return the id of the oldest record that is not `beside`."""
        kept: list[tuple[float, int, str]] = []
        while True:
            age = heapq.heappop(self.ages)
            record = self.records.get(age[2])
            if record is None or record.change != age[1]:
                continue
            kept.append(age)
            if record.id != beside:
                break
        for age in kept:
            heapq.heappush(self.ages, age)
        return kept[-1][2]


class MemoryStore:
    """Records in memory, as `ports.PlanStore` promises; gone with the process."""

    def __init__(self, *, kept_changes: int = KEPT_CHANGES) -> None:
        self._lock = threading.RLock()
        self._tenants: dict[str, _Tenant] = {}
        self._log: deque[Change] = deque(maxlen=kept_changes)
        self._number = 0
        self._closed = False

    def put(self, record: Record, *, max_entries: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the tenant's oldest over `max_entries`.

        The record just written is never evicted.

        Raises:
            InvalidInput: text with a lone surrogate, or a vector of the wrong dtype or not finite.
        """
        check_record(record)
        vector = None if record.vector is None else checked_vector(record.vector, None).copy()
        if vector is not None:
            vector.setflags(write=False)
        with self._lock:
            tenant = self._open().setdefault(record.tenant, _Tenant())
            replaced = tenant.drop(record.id)
            number = self._change(record.tenant, record.id, "put")
            tenant.add(replace(record, vector=vector, change=number))
            evicted = self._evict(tenant, record, max_entries)
            return Put(self._number, replaced, evicted)

    def _evict(self, tenant: _Tenant, record: Record, max_entries: int | None) -> tuple[str, ...]:
        evicted: list[str] = []
        while max_entries is not None and len(tenant.records) > max(max_entries, 1):
            oldest = tenant.oldest(beside=record.id)
            tenant.drop(oldest)
            self._change(record.tenant, oldest, "remove")
            evicted.append(oldest)
        return tuple(evicted)

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
            gone = [known for known in ids if kept.drop(known)]
            for known in gone:
                self._change(tenant, known, "remove")
        return len(gone)

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every record of the tenant, oldest change first."""
        with self._lock:
            records = list(self._read(tenant).records.values())
        return sorted(records, key=lambda record: record.change)

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
            notes = self._open().setdefault(tenant, _Tenant()).notes
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
        return len(kept.records)

    def close(self) -> None:
        """Forget everything; calling it twice is fine."""
        with self._lock:
            self._closed = True
            self._tenants = {}

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


class MemoryIndex:
    """Exact search with numpy alone, as `ports.VectorIndex` promises."""

    def __init__(self, dimension: int | None = None) -> None:
        self._rows = Rows(dimension)

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there; the first one sets the dimension.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        self._rows.add(id, vector)

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""
        return self._rows.remove(id)

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """
        return self._rows.search(vector, count, _near)

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return len(self._rows)

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `FaissIndex` can load it.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        self._rows.save(path, change=change)


def _near(rows: Vectors, query: Vector, count: int) -> NDArray[np.int64]:
    scores = rows @ query
    last = np.partition(scores, len(rows) - count)[len(rows) - count]
    return np.flatnonzero(scores >= last - TIE)
