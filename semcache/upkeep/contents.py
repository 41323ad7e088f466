"""Contents: what is wrong with what a store holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from semcache.cache.entries.entry import from_record
from semcache.errors import (
    EmbeddingError,
    StoreCorrupt,
    StoreUnavailable,
)
from semcache.matching.words.content import embedded_text
from semcache.ports import Clock, Embedder, PlanStore, Record
from semcache.stores.disk.snapshots import SnapshotDirectory
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.upkeep.check import Check
from semcache.upkeep.verify import StoreProblem, verify

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
