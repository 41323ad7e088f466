"""Evidence of all tenants: kept in the store's notes, each tenant's apart."""

import itertools
import logging
from dataclasses import dataclass, field
from functools import partial

from semcache.canonical import dumps, loads
from semcache.errors import InvalidJson
from semcache.matching.beliefs import Beliefs
from semcache.matching.evidence import Evidence
from semcache.matching.risk import Model, Prior, lowest_cutoff, raised
from semcache.ports import PlanStore

log = logging.getLogger(__name__)

NOTE = "evidence"
EVERY = 64
"""Labels of a tenant between two writes of its evidence; what a crash loses."""


_VERSIONS = itertools.count()


@dataclass(slots=True)
class Known:
    """A tenant's evidence, and what of it is not written yet."""

    evidence: Evidence
    pending: Evidence
    model: Model
    beliefs: Beliefs
    cutoff: float
    """Lowest score that may be served."""
    version: int = field(default_factory=_VERSIONS.__next__)
    """Another number whenever the evidence changed, and of no two tenants the same."""


class EvidenceNotes:
    """Evidence of all tenants in a store's notes. Whoever uses it holds a lock of its own."""

    def __init__(self, store: PlanStore, prior: Prior, *, max_wrong: float) -> None:
        self._store = store
        self._prior = prior
        self._max_wrong = max_wrong
        self._lowest = lowest_cutoff(prior.steps, max_wrong)
        self._known: dict[str, Known] = {}

    @property
    def weights(self) -> int:
        """How many weights the risk model has."""
        return len(self._prior.weights)

    def of(self, tenant: str) -> Known:
        """Return what is known of the tenant, read from its note at the first need.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        known = self._known.get(tenant)
        if known is None:
            evidence = self._read(self._store.get_note(tenant, NOTE))
            model, beliefs = Model(self._prior, evidence), Beliefs(evidence)
            cutoff = raised(self._lowest, self._max_wrong, evidence.record)
            known = self._known[tenant] = Known(evidence, Evidence(), model, beliefs, cutoff)
        return known

    def flush(self) -> None:
        """Write what is pending.

        Raises:
            StoreUnavailable: the store cannot be written; what is pending waits for the next.
        """
        for tenant, known in self._known.items():
            if known.pending.labels:
                self._write(tenant, known)

    def forget(self, tenant: str | None) -> None:
        """Drop what is in memory of the tenant, or of all (None)."""
        self._known = {t: known for t, known in self._known.items() if tenant not in {None, t}}

    def written(self, tenant: str) -> Evidence:
        """Return a copy of the tenant's evidence, of all processes; written first.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        known = self._known.get(tenant)
        if known is not None and known.pending.labels:
            self._write(tenant, known)
        return self._read(self._store.get_note(tenant, NOTE))

    def absorb(self, tenant: str, evidence: Evidence) -> None:
        """Add `evidence` to the tenant's own, and write it.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        known = self.of(tenant)
        known.pending.merge(evidence)
        self._write(tenant, known)

    def take(self, tenant: str, news: Evidence) -> None:
        """Add `news` to the tenant's evidence; written now and then, and at once if of a hit.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        known = self.of(tenant)
        known.pending.merge(news)
        known.evidence.merge(news)
        self._derive(known)
        if known.pending.labels >= EVERY or news.record.same or news.record.other:
            self._write(tenant, known)

    def _read(self, note: str | None) -> Evidence:
        if note is None:
            return Evidence()
        try:
            return Evidence.from_json(loads(note, what=NOTE), weights=self.weights)
        except (InvalidJson, ValueError) as error:
            # What was learned is a convenience: without it the tenant starts from the prior again.
            log.warning("evidence is passed over: %s", error)
            return Evidence()

    def _write(self, tenant: str, known: Known) -> None:
        self._store.update_note(tenant, NOTE, partial(self._added, known.pending))
        known.pending = Evidence()
        known.evidence = self._read(self._store.get_note(tenant, NOTE))
        self._derive(known)

    def _added(self, pending: Evidence, note: str | None) -> str:
        evidence = self._read(note)
        evidence.merge(pending)
        evidence.trim()
        return dumps(evidence.to_json())

    def _derive(self, known: Known) -> None:
        known.model = Model(self._prior, known.evidence)
        known.beliefs = Beliefs(known.evidence)
        known.cutoff = raised(self._lowest, self._max_wrong, known.evidence.record)
        known.version = next(_VERSIONS)
