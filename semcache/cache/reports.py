"""Reports: what each lookup came to is counted, logged, and told to who listens."""

import logging
from collections import OrderedDict
from collections.abc import Callable

from semcache.cache.found import Found, Hit
from semcache.cache.statistics import Counters
from semcache.cache.trouble import Trouble
from semcache.events import LookupFinished, PhaseFinished
from semcache.forks import Lock

log = logging.getLogger(__name__)

RUNS = 1024
"""Runs whose last lookup is remembered: more than are under way at once."""


class Reports:
    """Counts and tells what happens. Safe from several threads."""

    def __init__(self, counters: Counters, trouble: Trouble, *, flush: Callable[[], None]) -> None:
        """Keep the parts; `flush` is called when so much is counted that it is to be written."""
        self._counters = counters
        self._trouble = trouble
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
        if self._trouble.observer is None:
            return
        self._trouble.emit(_finished(found, tenant, run, seconds))
        for phase, took in found.trace.seconds.items():
            self._trouble.emit(PhaseFinished(tenant=tenant, run=run, phase=phase, seconds=took))


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
