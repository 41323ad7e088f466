"""Verification: candidates that likeness alone kept from being served are shown to a verifier.

What it confirms joins the plan as one more prompt of it, so that the next prompt like it hits;
inline it is served at once, too. Whatever fails is a miss, as without a verifier.
"""

import logging
import threading
from collections.abc import Mapping
from queue import Empty, Full, Queue
from typing import Literal, TypeAlias

from semcache.cache.context import CacheContext
from semcache.cache.feedback.promotion import PendingVerification, Promotion, parameters_now
from semcache.cache.lookup.bind_entry import Refused
from semcache.cache.lookup.context import Lookup, bind_candidate
from semcache.cache.result import Found, Hit, Miss
from semcache.canonical import Json
from semcache.errors import SemCacheError
from semcache.ports import Verification, Verifier
from semcache.process.forks import Forked, Lock, follow_forks
from semcache.process.memo import Lru

log = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["confirmed", "rejected", "abstained", "failed", "dropped"]
"""What became of a candidate; `dropped`: the queue was full."""
REMEMBERED = 1024
"""Prompts that are not shown to the verifier again."""
CLOSING_S = 5.0
"""Seconds that closing waits for the candidate that is being verified."""


class VerificationQueue(Forked):
    """Asks a verifier, one candidate at a time, on a thread of its own or at once. Thread-safe."""

    def __init__(
        self,
        context: CacheContext,
        verifier: Verifier,
        promotion: Promotion,
    ) -> None:
        """Ask `verifier`; the thread begins with the first candidate."""
        self._context = context
        self._verifier = verifier
        self._promotion = promotion
        self._queue: Queue[PendingVerification | None] = Queue(context.settings.verify_waiting)
        self._thread: threading.Thread | None = None
        self._lock = Lock()
        self._closed = False
        self._shown: Lru[tuple[str, str], bool] = Lru(REMEMBERED)
        follow_forks(self)

    def forked(self) -> None:
        """Leave what waits to the parent, whose thread goes on."""
        self._queue = Queue(self._queue.maxsize)
        self._thread = None

    def asked(self, lookup: Lookup, missed: Miss, above: float | None) -> Found:
        """Show the nearest candidate in doubt to the verifier; a hit if it confirms at once.

        `above`: the prompt's own threshold, if it has one.
        """
        settings, query = self._context.settings, lookup.query
        hit = candidate_in_doubt(lookup, max(settings.verify_from, above or -1.0))
        entry = None if hit is None else lookup.known(hit.entry)
        if hit is None or entry is None:
            return missed
        doubt = PendingVerification(
            query.text, entry.prompt, hit, parameters_now(entry, query, hit), query.grounding
        )
        if settings.verify == "inline":
            return hit if self.settles(doubt) else missed
        self.later(doubt)
        return missed

    def settles(self, pending: PendingVerification) -> bool:
        """Return whether the verifier confirms `pending`, which then joins the plan; ask it now."""
        confirmed = self._confirms(pending)
        if confirmed:
            self._promotion.verified(pending)
        return confirmed

    def _confirms(self, pending: PendingVerification) -> bool:
        tenant = pending.hit.trace.tenant
        question = Verification(
            pending.prompt, pending.planned, pending.hit.plan.to_dict(), values(pending)
        )
        try:
            said = self._verifier.verify(question)
        except SemCacheError as error:
            self._context.health.failed(tenant, "verifier", error)
            self._count(tenant, "failed")
            return False
        self._count(tenant, "abstained" if said is None else "confirmed" if said else "rejected")
        return said is True

    def _count(self, tenant: str, outcome: Outcome) -> None:
        self._context.reports.count(tenant, f"verified:{outcome}")

    def later(self, pending: PendingVerification) -> None:
        """Let `pending` be verified in the background, once; return at once."""
        key = (pending.hit.trace.tenant, pending.prompt)
        with self._lock:
            if self._closed or key in self._shown:
                return
            self._shown.put(key, True)
            try:
                self._queue.put_nowait(pending)
            except Full:
                self._count(pending.hit.trace.tenant, "dropped")
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="semcache-verifier", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        while (pending := self._queue.get()) is not None:
            try:
                self.settles(pending)
            except SemCacheError as error:
                self._context.health.failed(pending.hit.trace.tenant, "verifier", error)
            finally:
                self._queue.task_done()
        self._queue.task_done()

    def wait(self) -> None:
        """Return once every candidate that waits has been verified."""
        self._queue.join()

    def close(self) -> None:
        """Forget what waits and let the thread end; calling it twice is fine."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            while True:
                try:
                    self._queue.get_nowait()
                except Empty:
                    break
                self._queue.task_done()
            if thread is not None:
                self._queue.put(None)
        if thread is not None:
            thread.join(CLOSING_S)


def values(pending: PendingVerification) -> Mapping[str, Json]:
    """Return name → this prompt's own value."""
    return {parameter.name: parameter.value for parameter in pending.params}


_OF_LIKENESS = frozenset({"threshold", "words", "risk"})
"""Gates that say how alike two prompts are, and not whether the plan would be valid."""


def candidate_in_doubt(lookup: Lookup, floor: float) -> Hit | None:
    """Return, bound, the nearest candidate of a miss that only its likeness kept back.

    `floor`: cosine in [-1, 1] under which none is in doubt.
    """
    near = [c for c in lookup.candidates if c.score >= floor and c.tier == "semantic"]
    for candidate in sorted(near, key=lambda c: -c.score):
        entry = lookup.known(candidate.entry)
        if entry is None or candidate.verdicts[-1].gate not in _OF_LIKENESS:
            continue
        try:
            score, known = candidate.score, candidate.entry
            passed = bind_candidate(
                lookup, "semantic", entry, lookup.query, score=score, entry_id=known
            )
        except Refused:
            continue
        lookup.tiers.append(("semantic", "the nearest is in doubt"))
        return lookup.hit("semantic", passed)
    return None
