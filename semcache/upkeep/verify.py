"""Verify: whether all that a cache keeps is what was written, and would be served rightly."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from semcache.cache.entries.entry import faults, from_record
from semcache.cache.view.view import View
from semcache.cache.view.views import Views
from semcache.errors import StoreCorrupt
from semcache.ports import PlanStore, Record, Snapshots, VectorIndex

NEAR = 0.999
"""Cosine that a vector has with itself at least, whatever rounding does."""


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """Something that is not as it should be."""

    tenant: str
    entry: str
    """Id of the entry; empty if it is about all of the tenant."""
    what: str

    def __str__(self) -> str:
        place = f"{self.tenant}/{self.entry}" if self.entry else self.tenant
        return f"{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at, and what is wrong with it."""

    tenants: int
    entries: int
    problems: tuple[StoreProblem, ...]


def verify(
    store: PlanStore,
    *,
    embedder: str,
    make_index: Callable[[], VectorIndex],
    snapshots: Snapshots | None = None,
) -> Verified:
    """Return what is wrong with any entry: record, keys, plan, bindings, vector, index.

    `embedder`: fingerprint of the embedder whose vectors the index holds. Cost: every record read,
    and every vector searched for. Damaged records are set aside by the store when they are found.

    Raises:
        StoreUnavailable: the store cannot be read.
    """
    views = Views(store, make_index=lambda _: make_index(), embedder=embedder, snapshots=snapshots)
    problems: list[StoreProblem] = []
    tenants, entries = store.tenants(), 0
    for tenant in tenants:
        before = store.count(tenant)
        records = {record.id: record for record in store.scan(tenant)}
        entries += len(records)
        if before != len(records):
            what = f"{before - len(records)} of {before} records are not what was written"
            problems.append(StoreProblem(tenant, "", what))
        found = [StoreProblem(tenant, r.id, what) for r in records.values() for what in _record(r)]
        broken = {problem.entry for problem in found}
        whole = {known: record for known, record in records.items() if known not in broken}
        view = views.current(tenant)
        found += [
            StoreProblem(tenant, known, "the index has it, and the store has not")
            for known in set(view.entries) - set(records)
        ]
        found += [
            StoreProblem(tenant, known, what) for known, what in _index(whole, view, embedder)
        ]
        problems += found
    return Verified(len(tenants), entries, tuple(problems))


def _record(record: Record) -> Iterator[str]:
    try:
        entry = from_record(record)
    except StoreCorrupt as error:
        yield str(error)
        return
    expected = entry.record(record.vector, record.embedder)
    if record.id != expected.id:
        yield f"its content is that of entry {expected.id!r}"
    for name, has, wants in (
        ("keys", record.keys, expected.keys),
        ("labels", record.labels, expected.labels),
    ):
        if set(has) != set(wants):
            yield f"its {name} are {sorted(has)!r}; by its content they are {sorted(wants)!r}"
    yield from faults(entry)


def _index(records: Mapping[str, Record], view: View, embedder: str) -> Iterator[tuple[str, str]]:
    for known, record in records.items():
        seen = view.entries.get(known)
        if seen is None or seen.change != record.change:
            yield known, "the store has it, and the index has not, or an older one"
        elif record.vector is not None and record.embedder == embedder:
            norm = float(np.linalg.norm(record.vector))
            if abs(norm - 1) > 1 - NEAR:
                yield known, f"its vector has length {norm:.4f}; expected 1"
            elif not _finds(view.index, known, record):
                yield known, "the index does not find it by its own vector"


def _finds(index: VectorIndex, known: str, record: Record) -> bool:
    assert record.vector is not None  # noqa: S101 - the caller looked
    count = 8
    while True:
        # Entries with the same text have the same vector: all of those come before the rest.
        near = index.search(record.vector, count)
        if any(n.id == known and n.similarity > NEAR for n in near):
            return True
        if len(near) < count or near[-1].similarity < NEAR:
            return False
        count *= 4
