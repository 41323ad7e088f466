"""Reports: what each lookup came to is counted, logged, and told to who listens."""

import logging
from collections.abc import Callable

from semcache.cache.found import Found, Hit
from semcache.cache.statistics import Counters
from semcache.cache.trouble import Trouble
from semcache.events import LookupFinished, PhaseFinished

log = logging.getLogger(__name__)


class Reports:
    """Counts and tells what happens. Safe from several threads."""

    def __init__(self, counters: Counters, trouble: Trouble, *, flush: Callable[[], None]) -> None:
        """Keep the parts; `flush` is called when so much is counted that it is to be written."""
        self._counters = counters
        self._trouble = trouble
        self._flush = flush

    def count(self, tenant: str, name: str, *, served: str = "") -> None:
        """Count one `name`, and one use of the entry `served`."""
        if self._counters.add(tenant, name, served=served):
            self._flush()

    def looked_up(self, found: Found, tenant: str, run: str, seconds: float) -> None:
        """Tell what a lookup of a run came to, and how many seconds it and its phases took."""
        if isinstance(found, Hit):
            log.info("HIT %s %s (%.1f ms)", found.tier, found.key, seconds * 1000)
            counted, served = f"hit:{found.tier}", found.entry
        else:
            log.info("MISS %s (%s)", found.trace.key or found.trace.template, found.reason)
            counted, served = f"miss:{found.reason}", ""
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
