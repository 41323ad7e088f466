"""The tiers: one prompt is asked for by template text, by schema, and by meaning, in that order."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from semcache.cache.asked import Asked
from semcache.cache.entry import Decoded, Entry
from semcache.cache.found import Candidate, Found, Hit, Miss, Reason, Trace
from semcache.cache.serving import Refused, Served, serve_by_schema, serve_by_slots
from semcache.cache.view import View
from semcache.canonical import dumps
from semcache.catalog.catalog import Catalog
from semcache.errors import EmbeddingError, InvalidPlan, InvalidVector, StoreCorrupt
from semcache.events import Phase, Tier
from semcache.matching.content import embedded_text, is_telling
from semcache.matching.gates import Gates
from semcache.matching.pair import Pair, Verdict
from semcache.plans.checks import check_values
from semcache.plans.codec import adopt
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Clock, Embedder, PlanStore, Record
from semcache.prompts.alignment import align
from semcache.prompts.key import identity, psk

log = logging.getLogger(__name__)

KEPT = 8
"""Candidates that a trace keeps."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the tiers work with."""

    store: PlanStore
    decoded: Decoded
    embedder: Embedder
    clock: Clock
    catalog: Catalog | None
    neighbors: int
    exact: Gates
    """Gates of the template and schema tiers."""
    near: Gates
    """Gates of the semantic tier."""
    vetoed: Callable[[Asked, str], bool]
    """Whether feedback said that an entry is wrong for a prompt."""
    failed: Callable[[str, str, Exception], None]
    """Told the tenant, the part and the error when a part fails and is passed over."""


@dataclass(frozen=True, slots=True)
class _Passed:
    id: str
    entry: Entry
    served: Served
    plan: ExecutionPlan
    score: float


@dataclass(slots=True)
class Lookup:
    """One lookup on its way: what was considered, and how long each phase took."""

    parts: Parts
    view: View
    asked: Asked
    candidates: list[Candidate] = field(default_factory=list)
    tiers: list[tuple[Tier, str]] = field(default_factory=list)
    seconds: dict[Phase, float] = field(default_factory=dict)
    trouble: Reason | None = None

    def find(self) -> Found:
        """Return the hit of the first tier that has one, or a miss."""
        for tier in (self._template, self._aligned, self._schema, self._semantic):
            hit = tier()
            if hit is not None:
                return hit
        return self._miss()

    @contextmanager
    def timed(self, phase: Phase) -> Iterator[None]:
        """Add the seconds inside to `phase`."""
        start = self.parts.clock.monotonic()
        try:
            yield
        finally:
            took = self.parts.clock.monotonic() - start
            self.seconds[phase] = self.seconds.get(phase, 0.0) + took

    # Template tier -------------------------------------------------------------------------

    def _template(self) -> Hit | None:
        keys = self.view.template_keys(self.asked.template)
        records = [r for key in keys for r in self.parts.store.find(self.asked.tenant, key)]
        hit = self._exact("template", records, self.asked)
        return self._said("template", hit, "no entry with this template text", records)

    def _aligned(self) -> Hit | None:
        """Find values never seen before: what stands where a template has its slots."""
        for entry_id in self.view.skeletons.candidates(self.asked.text):
            seen = self.view.entries.get(entry_id)
            if seen is None or seen.side.template.text == self.asked.template.text:
                continue
            if not is_telling(seen.side.template):
                continue
            mentions = align(
                self.asked.text,
                seen.side.template,
                mentions=self.asked.mentions,
                vocabulary=self.view.vocabulary,
            )
            record = self._read(entry_id) if mentions else None
            if mentions is None or record is None:
                continue
            hit = self._exact("template", [record], self.asked.aligned(mentions))
            if hit is not None:
                self.tiers.append(("template", "hit by alignment"))
                return replace(hit, trace=self._trace())
        return None

    # Schema tier ---------------------------------------------------------------------------

    def _schema(self) -> Hit | None:
        schema = self.asked.schema
        if schema is None:
            return None
        if schema.partial:
            self.tiers.append(("schema", f"partial: {', '.join(schema.unexplained)}"))
            return None
        records = self.parts.store.find(self.asked.tenant, f"schema:{identity(schema)}")
        hit = self._exact("schema", records, self.asked)
        return self._said("schema", hit, f"no entry with the key {psk(schema)}", records)

    def _said(
        self, tier: Tier, hit: Hit | None, nothing: str, records: Sequence[Record]
    ) -> Hit | None:
        self.tiers.append((tier, "hit" if hit else "refused" if records else nothing))
        return replace(hit, trace=self._trace()) if hit else None

    def _exact(self, tier: Tier, records: Sequence[Record], asked: Asked) -> Hit | None:
        for record in records:
            entry = self._entry(record)
            if entry is None:
                continue
            pair = Pair(asked.side(), entry.side(), 1.0)
            passed = self._judge(tier, entry, asked, self.parts.exact(pair), 1.0, record.id)
            if passed is not None:
                return self._hit(tier, passed)
        return None

    # Semantic tier -------------------------------------------------------------------------

    def _semantic(self) -> Hit | None:
        if not len(self.view.index):
            self.tiers.append(("semantic", "nothing to compare with"))
            return None
        try:
            with self.timed("embed"):
                vector = self.parts.embedder.embed([embedded_text(self.asked.template)])[0]
            with self.timed("search"):
                neighbors = self.view.index.search(vector, self.parts.neighbors)
        except (EmbeddingError, InvalidVector) as error:
            self.parts.failed(self.asked.tenant, "embedder", error)
            self.trouble = "embedder_failed"
            self.tiers.append(("semantic", "the embedder failed"))
            return None
        passed = [one for n in neighbors if (one := self._near(n.id, n.similarity)) is not None]
        return self._agreed(passed)

    def _near(self, entry_id: str, score: float) -> _Passed | None:
        seen = self.view.entries.get(entry_id)
        if seen is None:
            return None
        with self.timed("gates"):
            verdicts = self.parts.near(Pair(self.asked.side(), seen.side, score))
        if not verdicts[-1].passed:
            text = seen.side.template.text
            self._consider(entry_id, seen.label, text, "semantic", score, verdicts)
            return None
        record = self._read(entry_id)
        entry = self._entry(record) if record else None
        if entry is None:
            return None
        return self._judge("semantic", entry, self.asked, verdicts, score, entry_id)

    def _agreed(self, passed: Sequence[_Passed]) -> Hit | None:
        """Serve the best that passed, if all that passed say the same."""
        if not passed:
            self.tiers.append(("semantic", "no candidate passed"))
            return None
        if len({dumps(one.served.bound.plan) for one in passed}) > 1:
            self.tiers.append(("semantic", "candidates that passed disagree"))
            self.trouble = "contested"
            return None
        self.tiers.append(("semantic", "hit"))
        return self._hit("semantic", passed[0])

    # What the tiers share ------------------------------------------------------------------

    def _read(self, entry_id: str) -> Record | None:
        try:
            return self.parts.store.get(self.asked.tenant, entry_id)
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def _entry(self, record: Record) -> Entry | None:
        """Return the entry of a record that may be served now."""
        if record.expires_s is not None and record.expires_s <= self.parts.clock.now():
            return None
        try:
            return self.parts.decoded.entry(record)
        except StoreCorrupt as error:
            self.parts.failed(self.asked.tenant, "store", error)
            return None

    def _judge(
        self,
        tier: Tier,
        entry: Entry,
        asked: Asked,
        verdicts: tuple[Verdict, ...],
        score: float,
        entry_id: str,
    ) -> _Passed | None:
        passed = None
        if verdicts[-1].passed:
            try:
                passed = self._serve(tier, entry, asked, score, entry_id)
                verdicts = (*verdicts, Verdict("binding", passed=True))
            except Refused as refused:
                verdicts = (*verdicts, refused.verdict)
        self._consider(entry_id, entry.label, entry.template.text, tier, score, verdicts)
        return passed

    def _serve(
        self, tier: Tier, entry: Entry, asked: Asked, score: float, entry_id: str
    ) -> _Passed:
        if self.parts.vetoed(asked, entry_id):
            raise Refused("vetoed", "feedback said that this plan is wrong for this prompt")
        with self.timed("bind"):
            if tier == "schema":
                served = serve_by_schema(entry, asked)
            else:
                served = serve_by_slots(entry, asked, self.view.learned)
        with self.timed("check"):
            plan = self._checked(served)
        return _Passed(entry_id, entry, served, plan, score)

    def _checked(self, served: Served) -> ExecutionPlan:
        try:
            plan = adopt(served.bound.plan, served.bound.data)
        except InvalidPlan as error:
            raise Refused("check", str(error)) from error
        findings = check_values(plan, self.parts.catalog) if self.parts.catalog is not None else ()
        if findings:
            raise Refused("check", f"{findings[0].path}: {findings[0].what}")
        return plan

    def _consider(
        self,
        entry_id: str,
        label: str,
        text: str,
        tier: Tier,
        score: float,
        verdicts: tuple[Verdict, ...],
    ) -> None:
        if len(self.candidates) < KEPT:
            self.candidates.append(Candidate(entry_id, label, text, tier, score, verdicts))

    def _hit(self, tier: Tier, passed: _Passed) -> Hit:
        return Hit(
            plan=passed.plan,
            tier=tier,
            score=passed.score,
            params=dict(passed.served.values),
            entry=passed.id,
            key=passed.entry.label,
            trace=self._trace(),
        )

    def _miss(self) -> Miss:
        refused = [c for c in self.candidates if not c.served]
        nearest = max(refused, key=lambda c: (c.score, len(c.verdicts)), default=None)
        reason = (
            self.trouble or _reason(nearest) or ("no_candidate" if self.view.entries else "empty")
        )
        return Miss(reason, nearest, self._trace())

    def _trace(self) -> Trace:
        schema = self.asked.schema
        return Trace(
            prompt=self.asked.text,
            tenant=self.asked.tenant,
            template=self.asked.template.text,
            key=psk(schema) if schema else "",
            unexplained=schema.unexplained if schema else (),
            tiers=tuple(self.tiers),
            candidates=tuple(self.candidates),
            seconds=self.seconds,
        )


def _reason(nearest: Candidate | None) -> Reason | None:
    return cast(Reason, nearest.verdicts[-1].gate) if nearest else None
