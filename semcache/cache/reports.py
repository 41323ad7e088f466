"""Reports: what each lookup came to and what failed is counted, logged, and told to who listens."""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal

from semcache.cache.result import Found, Hit, Miss
from semcache.cache.statistics import Counters
from semcache.errors import StoreError
from semcache.events import EntriesRemoved, Event, LookupFinished, PhaseFinished, TierFailed
from semcache.forks import Lock
from semcache.ports import Observer

log = logging.getLogger(__name__)

Why = Literal["invalidated", "expired", "evicted", "cleared", "feedback", "failed"]


class HealthReporter:
    """Passes events on, and keeps in mind which parts fail so that each is warned of once.

    Safe from several threads: the worst of a race is one warning more.
    """

    def __init__(self, observer: Observer | None) -> None:
        self.observer = observer
        """What hears of everything; None: nobody listens."""
        self._failing: set[tuple[str, str]] = set()

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        if self.observer is not None:
            self.observer(event)

    def removed(self, tenant: str, count: int, why: Why) -> None:
        """Tell that entries are gone."""
        self.emit(EntriesRemoved(tenant=tenant, count=count, why=why))

    @contextlib.contextmanager
    def guarded(self, tenant: str) -> Iterator[None]:
        """Turn store trouble inside into an event and one warning."""
        try:
            yield
        except StoreError as error:
            self.failed(tenant, "store", error, doing="writing")

    def failed(self, tenant: str, part: str, error: Exception, *, doing: str = "") -> None:
        """Report a failure, and warn if the part worked up to now.

        Writing may go on failing where reading works (a full disk): each is told apart, or every
        lookup between two failing writes would bring the warning back.
        """
        self.emit(TierFailed(tenant=tenant, part=part, error=f"{type(error).__name__}: {error}"))
        warned = any(known == part for known, _ in tuple(self._failing))
        self._failing.add((part, doing))
        if not warned:
            log.warning("%s failed and is passed over until it works again: %s", part, error)

    def mended(self, part: str, *, doing: str = "") -> None:
        """Forget that `part` failed, so that its next failure is warned of again."""
        self._failing.discard((part, doing))

    def worked(self, found: Found) -> None:
        """Forget failures of what this lookup has just used."""
        self.mended("store")
        failed = isinstance(found, Miss) and found.reason == "embedder_failed"
        if "embed" in found.trace.seconds and not failed:
            self.mended("embedder")


RUNS = 1024
"""Runs whose last lookup is remembered: more than are under way at once."""


class Reports:
    """Counts and tells what happens. Safe from several threads."""

    def __init__(
        self, counters: Counters, health: HealthReporter, *, flush: Callable[[], None]
    ) -> None:
        """Keep the parts; `flush` is called when so much is counted that it is to be written."""
        self._counters = counters
        self._health = health
        self._flush = flush
        self._runs: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Tenant and run → what its last lookup was counted as."""
        self._lock = Lock()

    def count(self, tenant: str, name: str, *, served: str = "", by: int = 1) -> None:
        """Count `name` `by` times, and one use of the entry `served`."""
        if self._counters.add(tenant, name, served=served, by=by):
            self._flush()

    def _count_run(self, tenant: str, run: str, name: str, served: str) -> None:
        """Count a lookup of a run in the place of the one before: a run may look up several times.

        It looks again once it has its turn to plan, and with the schema that a model told.
        """
        with self._lock:
            before = self._runs.pop((tenant, run), None)
            self._runs[tenant, run] = name
            if len(self._runs) > RUNS:
                self._runs.popitem(last=False)
        if before is not None:
            self.count(tenant, before, by=-1)
        self.count(tenant, name, served=served)

    def looked_up(self, found: Found, tenant: str, run: str, seconds: float) -> None:
        """Tell what a lookup of a run came to, and how many seconds it and its phases took."""
        if isinstance(found, Hit):
            log.info("HIT %s %s (%.1f ms)", found.tier, found.key, seconds * 1000)
            counted, served = f"hit:{found.tier}", found.entry
        else:
            log.info("MISS %s (%s)", found.trace.key or found.trace.template, found.reason)
            counted, served = f"miss:{found.reason}", ""
        if run:
            self._count_run(tenant, run, counted, served)
        else:
            self.count(tenant, counted, served=served)
        if self._health.observer is None:
            return
        self._health.emit(_finished(found, tenant, run, seconds))
        for phase, took in found.trace.seconds.items():
            self._health.emit(PhaseFinished(tenant=tenant, run=run, phase=phase, seconds=took))


def _finished(found: Found, tenant: str, run: str, seconds: float) -> LookupFinished:
    if isinstance(found, Hit):
        return LookupFinished(
            tenant=tenant,
            run=run,
            key=found.key,
            tier=found.tier,
            reason="",
            score=found.score,
            seconds=seconds,
        )
    return LookupFinished(
        tenant=tenant,
        run=run,
        key=found.trace.key,
        tier=None,
        reason=found.reason,
        score=found.nearest.score if found.nearest else None,
        seconds=seconds,
    )
