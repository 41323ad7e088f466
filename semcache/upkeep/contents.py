"""Contents: what is wrong with what a store holds, and whether it would be served rightly."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from semcache.cache.entries.entry import faults, from_record
from semcache.cache.view.view import View
from semcache.cache.view.views import Views
from semcache.errors import (
    EmbeddingError,
    StoreCorrupt,
    StoreUnavailable,
)
from semcache.matching.words.content import embedded_text
from semcache.ports import Clock, Embedder, PlanStore, Record, Snapshots, VectorIndex
from semcache.stores.disk.sidecar import SnapshotDirectory
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.upkeep.checks import Check

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


AHEAD_S = 60.0
"""Seconds that clocks of machines may differ before a time counts as one of the future."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Looks at what is in a store: its records, their times, their vectors and the index."""

    store: PlanStore
    clock: Clock
    embedder: Embedder | None
    shelf: SnapshotDirectory | None
    """Where snapshots are that belong to the store; None: it has none of its own."""
    repair: bool
    """Whether to put right what can be."""

    def examine(self) -> Iterator[Check]:
        """Look at everything."""
        try:
            yield self._records()
            yield self._clock()
            yield from self._vectors()
        except (StoreUnavailable, StoreCorrupt) as error:
            yield Check("records", "broken", str(error), "see the other lines; then try again")

    def _records(self) -> Check:
        bad: list[tuple[str, str]] = []
        kept = aside = 0
        for tenant in self.store.tenants():
            before, records = self.store.count(tenant), self.store.scan(tenant)
            kept += len(records)
            aside += max(0, before - len(records))
            bad += [(tenant, record.id) for record in records if not _readable(record)]
        if not bad and not aside:
            many = len(self.store.tenants())
            return Check("records", "ok", f"{kept} entries of {many} tenants can be read")
        what = f"{len(bad)} entries cannot be read"
        if aside:
            what += f", and {aside} records were not what was written: they were set aside"
        cure = "`semcache doctor --repair` removes them; their prompts are planned again"
        found = Check("records", "broken" if bad else "warning", what, cure)
        if not self.repair:
            return found
        for tenant, known in bad:
            self.store.remove(tenant, [known])
        return replace(found, repaired=f"removed {len(bad)}")

    def _clock(self) -> Check:
        now = self.clock.now()
        ahead = [r for r in _all(self.store) if r.created_s > now + AHEAD_S]
        if not ahead:
            return Check("clock", "ok", "no entry is from the future")
        latest = max(record.created_s for record in ahead)
        found = Check(
            "clock",
            "broken",
            f"{len(ahead)} entries are from the future, up to {latest - now:,.0f} s from now",
            "set the clocks of all machines by NTP; then `semcache doctor --repair`",
        )
        if not self.repair:
            return found
        for record in ahead:
            self.store.put(_moved(record, now))
        return replace(found, repaired="they count as made now, and expire by that")

    def _vectors(self) -> Iterator[Check]:
        if self.embedder is None:
            return
        found = self._embeds(self.embedder)
        yield found
        if found.level != "ok":
            return
        yield self._embedded(self.embedder)
        yield self._index(self.embedder)

    def _embeds(self, embedder: Embedder) -> Check:
        try:
            (vector,) = embedder.embed(["total sales by category"])
        except EmbeddingError as error:
            cure = "install or name the weights; until then entries are found by exact keys only"
            return Check("embedder", "broken", str(error), cure)
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or abs(length - 1) > 0.01:
            what = f"{embedder.fingerprint} gives a vector of length {length:.3f}; expected 1"
            return Check("embedder", "broken", what, "name another embedder")
        what = f"{embedder.fingerprint} answers with {len(vector)} numbers"
        return Check("embedder", "ok", what)

    def _embedded(self, embedder: Embedder) -> Check:
        wanted = embedder.fingerprint
        strange = (r for r in _all(self.store) if r.vector is None or r.embedder != wanted)
        others = [record for record in strange if _readable(record)]
        if not others:
            return Check("vectors", "ok", f"all of {wanted}")
        names = sorted({record.embedder or "no embedder" for record in others})
        found = Check(
            "vectors",
            "warning",
            f"{len(others)} entries have vectors of {', '.join(names)}, and the embedder is "
            f"{wanted}: they are found by exact keys only",
            "use the embedder of before, or `semcache doctor --repair`, which embeds them anew",
        )
        if not self.repair:
            return found
        for record in others:
            text = embedded_text(from_record(record).template)
            self.store.put(replace(record, vector=embedder.embed([text])[0], embedder=wanted))
        return replace(found, repaired=f"embedded {len(others)} anew")

    def _index(self, embedder: Embedder) -> Check:
        shelf = self.shelf

        def problems() -> tuple[StoreProblem, ...]:
            done = verify(
                self.store, embedder=embedder.fingerprint, make_index=FaissIndex, snapshots=shelf
            )
            return done.problems

        wrong = problems()
        if not wrong:
            return Check("index", "ok", "it agrees with the records")
        what = f"{len(wrong)} problems, the first: {wrong[0]}"
        cure = "`semcache doctor --repair` forgets the snapshots and removes entries that are wrong"
        found = Check("index", "broken", what, cure)
        if not self.repair:
            return found
        if shelf is not None:
            shelf.discard(None)
        for problem in problems():
            self.store.remove(problem.tenant, [problem.entry])
        return replace(found, repaired="removed what was wrong")


def _all(store: PlanStore) -> Iterator[Record]:
    for tenant in store.tenants():
        yield from store.scan(tenant)


def _readable(record: Record) -> bool:
    try:
        from_record(record)
    except StoreCorrupt:
        return False
    return True


def _moved(record: Record, now: float) -> Record:
    """Return the record as if it had been made now."""
    entry = from_record(record)
    lasts = None if record.expires_s is None else record.expires_s - record.created_s
    made = replace(entry, created_s=now, expires_s=None if lasts is None else now + lasts)
    fresh = made.record(record.vector, record.embedder)
    return replace(fresh, cost_s=record.cost_s)
