"""Evidence of all tenants: kept in the store's notes, each tenant's apart."""

import contextlib
import hashlib
import itertools
import logging
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from semcache.cache.single_flight import KeyLocks
from semcache.canonical import dumps, loads
from semcache.errors import InvalidJson, StoreError
from semcache.matching.evidence import Evidence
from semcache.matching.evidence_note import copied, note_text, noted
from semcache.matching.model.bound import Certificate, TenantBound, certified_share
from semcache.matching.model.features import Beliefs
from semcache.matching.model.risk import (
    CONFIDENCE,
    Prior,
    RiskModel,
    lowest_cutoff,
    raised,
)
from semcache.ports import PlanStore
from semcache.process.forks import Lock

log = logging.getLogger(__name__)

NOTE = "evidence"
EVERY = 64
"""Labels of a tenant between two writes of its evidence. A crash loses those since the last, and
those on their way: what was learned is derived, and is learned again."""


UNANSWERED = 16
"""Prompts withheld to sample what is served under the shipped cutoff whose plans are outstanding,
over which nothing there is served until one comes: who stores no plans gives no samples."""

_VERSIONS = itertools.count(1)


@dataclass(slots=True)
class TenantEvidence:
    """A tenant's evidence, and what of it is not written yet."""

    evidence: Evidence
    pending: Evidence
    """What of it is in no note yet, nor on its way there."""
    noted: Evidence
    """What a note has of it, or will have once what is on its way is there."""
    note: bytes
    """Digest of the note that was read or written last."""
    model: RiskModel
    beliefs: Beliefs
    bound: TenantBound
    cutoff: float
    """Lowest score that may be served."""
    unanswered: int = 0
    """Prompts withheld since the last sample came."""
    version: int = field(default_factory=_VERSIONS.__next__)
    """Another number whenever the evidence changed, and of no two tenants the same; 0 while it is
    being changed."""
    lock: Lock = field(default_factory=Lock)
    """Held while it is changed in memory, never while a store is asked. Who reads it may do without
    the lock, and reads again if `version` was 0 or is another number afterwards."""

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Let it be changed inside."""
        with self.lock:
            self.version = 0
            try:
                yield
            finally:
                self.version = self.version or next(_VERSIONS)


class _Tenants(dict[str, TenantEvidence]):
    """Tenant → what is known of it, read at the first need. A `dict`, since every hit asks it."""

    def __init__(self, read: Callable[[str], TenantEvidence]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, tenant: str) -> TenantEvidence:
        return self._read(tenant)


class EvidenceNotes:
    """Evidence of all tenants in a store's notes. Safe from several threads.

    Threads of one tenant wait for each other's reading and writing of its note, and for nobody
    else's. Who only weighs waits for no store.
    """

    def __init__(
        self, store: PlanStore, prior: Prior, *, max_wrong: float, embedder: str, adapts: bool
    ) -> None:
        """`adapts`: whether a tenant's samples may lower its cutoff; see `TrainingLabels`."""
        self._store = store
        self._prior = prior
        self._max_wrong = max_wrong
        self._adapts = adapts
        self.shipped = lowest_cutoff(prior.steps, max_wrong)
        """Lowest score that may be served to a tenant that nothing is known of."""
        self.scale = f"{prior.fingerprint()}:{embedder}"
        """What the scores of samples are of."""
        self.tenants = _Tenants(self._of)
        """What is known of each tenant. To ask for one raises StoreUnavailable where its evidence
        cannot be read."""
        self._behind: dict[str, _Behind] = {}
        self._asking = KeyLocks()
        """Who reads or writes a tenant's note at the moment."""

    def forked(self) -> None:
        """Begin anew in a forked child: the parent writes what was pending, and has the threads."""
        self.tenants.clear()
        self._behind = {}

    @property
    def weights(self) -> int:
        """How many weights the risk model has."""
        return len(self._prior.weights)

    def _of(self, tenant: str) -> TenantEvidence:
        with self._asking.enter(tenant):
            known = self.tenants.get(tenant)  # another thread may have read it meanwhile
            if known is None:
                known = self.tenants[tenant] = self._first(tenant)
        return known

    def _first(self, tenant: str) -> TenantEvidence:
        note = self._store.get_note(tenant, NOTE)
        evidence = self._read(note)
        bound = self._bound(evidence)
        return TenantEvidence(
            evidence,
            pending=Evidence(),
            noted=copied(evidence),
            note=_digest(note),
            model=RiskModel(self._prior, evidence),
            beliefs=Beliefs(evidence),
            bound=bound,
            cutoff=self._cutoff(bound, evidence),
        )

    def _bound(self, evidence: Evidence) -> TenantBound:
        return TenantBound(self.shipped, self._max_wrong, evidence.samples.of(self.scale))

    def _cutoff(self, bound: TenantBound, evidence: Evidence) -> float:
        lowest = bound.cutoff if self._adapts else self.shipped
        return raised(lowest, self._max_wrong, evidence.record)

    def certificate(self, tenant: str) -> Certificate:
        """Return what is known of the wrong share of what the tenant is served.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        known = self.tenants[tenant]
        with known.lock:
            samples, cutoff = known.evidence.samples.of(self.scale), known.cutoff
            outcomes = [sample.right for sample in samples if sample.score >= cutoff]
        return Certificate(
            max_wrong=self._max_wrong,
            confidence=CONFIDENCE,
            share=certified_share(outcomes),
            samples=len(outcomes),
            wrong=len(outcomes) - sum(outcomes),
            loosened=0.0 if math.isinf(cutoff) else self.shipped - cutoff,
        )

    def withheld(self, tenant: str) -> None:
        """Take in that a prompt was withheld to sample what is served."""
        known = self.tenants[tenant]
        with known.changing():
            known.unanswered += 1
            if known.unanswered == UNANSWERED:
                self._derive(known)

    def flush(self) -> None:
        """Write what is pending.

        Raises:
            StoreUnavailable: the store cannot be written; what is pending waits for the next.
        """
        for tenant in [*self._behind]:
            with self._asking.enter(tenant):
                self._wait(tenant)
        for tenant, known in [*self.tenants.items()]:
            with self._asking.enter(tenant):
                if known.pending.is_news:
                    self._write(tenant, known)

    def forget(self, tenant: str | None) -> None:
        """Drop what is in memory of the tenant, or of all (None), and what is on its way."""
        for late in [known for known in self._behind if tenant in {None, known}]:
            with self._asking.enter(late):
                self._wait(late)
                # It may have come after the store was cleared.
                self._store.put_note(late, NOTE, None)
        for known in [*self.tenants] if tenant is None else [tenant]:
            self.tenants.pop(known, None)

    def written(self, tenant: str) -> Evidence:
        """Return a copy of the tenant's evidence, of all processes; written first.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._asking.enter(tenant):
            self._wait(tenant)
            known = self.tenants.get(tenant)
            if known is not None and known.pending.is_news:
                self._write(tenant, known)
            return self._read(self._store.get_note(tenant, NOTE))

    def absorb(self, tenant: str, evidence: Evidence) -> None:
        """Add `evidence` to the tenant's own, and write it.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        known = self.tenants[tenant]
        with known.lock:
            known.pending.merge(evidence)
        with self._asking.enter(tenant):
            self._write(tenant, known)

    def take(self, tenant: str, news: Evidence, *, at_once: bool = False) -> None:
        """Add `news` to the tenant's evidence; written now and then, or `at_once`.

        What is written now and then is written by a thread of its own: most of that takes time in
        proportion to all that a tenant ever said.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        known = self.tenants[tenant]
        with known.changing():
            known.pending.merge(news)
            known.evidence.merge(news)
            if news.samples.kept:
                known.unanswered = 0
                for sample in news.samples.kept:
                    known.bound.take(sample)
            if not at_once and known.pending.labels < EVERY:
                self._derive(known)
                return
        with self._asking.enter(tenant):
            if at_once:
                self._write(tenant, known)
            elif known.pending.is_news:  # else another thread has just taken them along
                self._write_behind(tenant, known)

    # Writing, for who has entered `_asking` ---------------------------------------------------

    def _write(self, tenant: str, known: TenantEvidence) -> None:
        self._wait(tenant)
        with known.lock:
            news, known.pending = known.pending, Evidence()
        try:
            self._store.update_note(tenant, NOTE, partial(self._added, news))
        except BaseException:  # an interrupt too: what was learned waits for the next writing
            with known.lock:
                known.pending.merge(news)
            raise
        note = self._store.get_note(tenant, NOTE)
        evidence = self._read(note)
        with known.changing():
            known.noted, known.note = copied(evidence), _digest(note)
            evidence.merge(known.pending)  # what came while the store was asked
            known.evidence = evidence
            known.bound = self._bound(evidence)
            self._derive(known)

    def _write_behind(self, tenant: str, known: TenantEvidence) -> None:
        behind = self._behind.get(tenant)
        writing = behind is not None and behind.is_alive()
        if not writing and _digest(self._store.get_note(tenant, NOTE)) != known.note:
            self._write(tenant, known)  # another process added to it: read what
            return
        with known.changing():
            news, known.pending = known.pending, Evidence()
            total = known.noted = noted(known.noted, news)
            known.evidence = copied(total)
            known.bound = self._bound(total)
            self._derive(known)
        if behind is None or not behind.takes(news, total):
            self._wait(tenant)
            put = partial(self._put, tenant, known)
            behind = self._behind[tenant] = _Behind(news, total, put)
            behind.start()

    def _put(self, tenant: str, known: TenantEvidence, news: Evidence, total: Evidence) -> None:
        text, expected, foreign = note_text(total), known.note, False

        def replaced(note: str | None) -> str:
            nonlocal foreign
            foreign = _digest(note) != expected
            return self._added(news, note) if foreign else text

        self._store.update_note(tenant, NOTE, replaced)
        if not foreign:  # else what another process wrote meanwhile is read before the next
            known.note = _digest(text)

    def _added(self, pending: Evidence, note: str | None) -> str:
        evidence = self._read(note)
        evidence.merge(pending)
        evidence.trim()
        return dumps(evidence.to_json())

    def _wait(self, tenant: str) -> None:
        """Return once nothing is on its way; what did not get through is pending again."""
        behind, known = self._behind.pop(tenant, None), self.tenants.get(tenant)
        if behind is not None and not behind.finished() and known is not None:
            with known.lock:
                known.pending.merge(behind.news)
                known.note = _UNKNOWN

    def _read(self, note: str | None) -> Evidence:
        if note is None:
            return Evidence()
        try:
            return Evidence.from_json(loads(note, what=NOTE), weights=self.weights)
        except InvalidJson as error:
            # What was learned is a convenience: without it the tenant starts from the prior again.
            log.warning("evidence is passed over: %s", error)
            return Evidence()

    def _derive(self, known: TenantEvidence) -> None:
        known.model = RiskModel(self._prior, known.evidence)
        known.beliefs = Beliefs(known.evidence)
        known.cutoff = self._cutoff(known.bound, known.evidence)
        if known.unanswered >= UNANSWERED:
            known.cutoff = max(known.cutoff, self.shipped)
        known.version = next(_VERSIONS)


DELAY_S = 0.2
"""How long a note waits before it is written: threads share one interpreter, and who brought the
last label has something better to do meanwhile."""


class _Behind(threading.Thread):
    """A tenant's note on its way. Not a daemon: an interpreter that ends waits for it."""

    def __init__(
        self, news: Evidence, total: Evidence, write: Callable[[Evidence, Evidence], None]
    ) -> None:
        """Take what to write: `news`, after which the note has `total`."""
        super().__init__(name="semcache evidence")
        self.news = news
        self._total = total
        self._write = write
        self._lock = Lock()
        self._wanted = threading.Event()
        self._begun = self._failed = False

    def takes(self, news: Evidence, total: Evidence) -> bool:
        """Take in more news, after which the note has `total`; False: it is too late for them."""
        with self._lock:
            if not self._begun:
                self.news.merge(news)
                self._total = total
            return not self._begun

    def run(self) -> None:
        self._wanted.wait(DELAY_S)
        with self._lock:
            self._begun = True
        try:
            self._write(self.news, self._total)
        except StoreError as error:
            log.warning("evidence is written later: %s", error)
            self._failed = True

    def finished(self) -> bool:
        """Return whether it got through, once that can be told; it is not delayed any more."""
        self._wanted.set()
        self.join()
        return not self._failed


_UNKNOWN = b"?"  # digest of no note: what is there is read before anything is written


def _digest(note: str | None) -> bytes:
    return b"" if note is None else hashlib.sha256(note.encode()).digest()
