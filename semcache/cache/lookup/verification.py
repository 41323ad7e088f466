"""Verification: candidates that likeness alone kept from being served are shown to a verifier.

What it confirms joins the plan as one more prompt of it, so that the next prompt like it hits;
inline it is served at once, too. Whatever fails is a miss, as without a verifier.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Literal, TypeAlias

from semcache.cache.entries.entry import Entry
from semcache.cache.query import Query
from semcache.cache.result import Hit
from semcache.canonical import Json
from semcache.errors import SemCacheError
from semcache.forks import Forked, Lock, follow_forks
from semcache.matching.slot_roles import match_slots
from semcache.ports import Verification, Verifier
from semcache.prompts.parameter import Parameter

log = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["confirmed", "rejected", "abstained", "failed", "dropped"]
"""What became of a candidate; `dropped`: the queue was full."""
REMEMBERED = 1024
"""Prompts that are not shown to the verifier again."""
CLOSING_S = 5.0
"""Seconds that closing waits for the candidate that is being verified."""


@dataclass(frozen=True, slots=True)
class PendingVerification:
    """A candidate in doubt."""

    asked: str
    """The prompt."""
    planned: str
    """The prompt that the plan was made for."""
    hit: Hit
    """What would be served."""
    params: tuple[Parameter, ...]
    """The values that the plan depends on, with this prompt's own."""
    grounding: str


class VerificationQueue(Forked):
    """Asks a verifier, one candidate at a time, on a thread of its own or at once. Thread-safe."""

    def __init__(
        self,
        verifier: Verifier,
        *,
        promote: Callable[[PendingVerification], None],
        count: Callable[[str, Outcome], None],
        failed: Callable[[str, str, Exception], None],
        waiting: int,
    ) -> None:
        """Keep what is asked for; the thread begins with the first candidate.

        `promote` is given what was confirmed, `count` a tenant and an outcome,
        `failed` what went wrong. `waiting`: candidates that may wait; more are dropped.
        """
        self._verifier = verifier
        self._promote = promote
        self._count = count
        self._failed = failed
        self._queue: Queue[PendingVerification | None] = Queue(waiting)
        self._thread: threading.Thread | None = None
        self._lock = Lock()
        self._closed = False
        self._shown: OrderedDict[tuple[str, str], None] = OrderedDict()
        follow_forks(self)

    def forked(self) -> None:
        """Leave what waits to the parent, whose thread goes on."""
        self._queue = Queue(self._queue.maxsize)
        self._thread = None

    def settles(self, grey: PendingVerification) -> bool:
        """Return whether the verifier confirms `grey`, which then joins the plan; ask it now."""
        confirmed = self._confirms(grey)
        if confirmed:
            self._promote(grey)
        return confirmed

    def _confirms(self, grey: PendingVerification) -> bool:
        tenant = grey.hit.trace.tenant
        question = Verification(grey.asked, grey.planned, grey.hit.plan.to_dict(), values(grey))
        try:
            said = self._verifier.verify(question)
        except SemCacheError as error:
            self._failed(tenant, "verifier", error)
            self._count(tenant, "failed")
            return False
        self._count(tenant, "abstained" if said is None else "confirmed" if said else "rejected")
        return said is True

    def later(self, grey: PendingVerification) -> None:
        """Let `grey` be verified in the background, once; return at once."""
        key = (grey.hit.trace.tenant, grey.asked)
        with self._lock:
            if self._closed or key in self._shown:
                return
            self._shown[key] = None
            if len(self._shown) > REMEMBERED:
                self._shown.popitem(last=False)
            try:
                self._queue.put_nowait(grey)
            except Full:
                self._count(grey.hit.trace.tenant, "dropped")
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="semcache-verifier", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        while (grey := self._queue.get()) is not None:
            try:
                self.settles(grey)
            except SemCacheError as error:
                self._failed(grey.hit.trace.tenant, "verifier", error)
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


def said_now(entry: Entry, asked: Query, hit: Hit) -> tuple[Parameter, ...]:
    """Return the named parameters of `entry` with the values of `asked` and the words for them."""
    roles = match_slots(entry.template.slots, asked.template.slots) or ()
    words = {
        slot.name: asked.mentions[role].text
        for slot, role in zip(entry.reading.slots, roles, strict=False)
        if not asked.given
    }
    return tuple(
        Parameter(name, value, mention=words.get(name))
        for name, value in hit.params.items()
        if name in entry.named
    )


def values(grey: PendingVerification) -> Mapping[str, Json]:
    """Return name → this prompt's own value."""
    return {parameter.name: parameter.value for parameter in grey.params}
