"""Planning once: of all that want the same plan, over threads and processes, one makes it.

Threads wait for each other; of the processes that share a store, one has a lease there. A holder
that lives renews its lease, one that dies lets it run out, and then somebody who waits makes the
plan. Nobody waits longer than told: who is late plans beside the holder, which costs a plan and
nothing else.
"""

import hashlib
import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semcache.cache.checks import check_found
from semcache.cache.flight import Flights
from semcache.cache.found import Found
from semcache.cache.trouble import Trouble
from semcache.errors import StoreError
from semcache.ports import Clock, PlanStore

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.01
LAST_PAUSE_S = 0.1
"""Seconds between two looks at a lease that another process has: the first, and after many."""
BEATS = 3
"""How often a lease is renewed before it would run out."""


class Planning:
    """Lets one caller at a time plan for a template of a tenant. Safe from several threads."""

    def __init__(
        self,
        store: PlanStore,
        clock: Clock,
        trouble: Trouble,
        *,
        ttl_s: float,
        wait_s: float,
        shared: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._trouble = trouble
        self._ttl_s = ttl_s
        self._wait_s = wait_s
        self._shared = shared
        self._flights = Flights()
        self._id = uuid.uuid4().hex

    @contextmanager
    def once(self, found: Found) -> Iterator[bool]:
        """Plan alone for what was looked up; give whether to look it up again."""
        check_found(found)
        trace = found.trace
        # With other tools it is another plan, which nobody need wait for.
        work = "\0".join(filter(None, (trace.template or trace.prompt, trace.catalog)))
        with self.alone(trace.tenant, work) as waited:
            yield waited or self._changed(trace.tenant, trace.change)

    def _changed(self, tenant: str, change: int) -> bool:
        try:
            return self._store.last_change() != change
        except StoreError as error:
            self._trouble.failed(tenant, "store", error)
            return False

    @contextmanager
    def alone(self, tenant: str, template: str) -> Iterator[bool]:
        """Plan for `template` alone; give whether somebody else did until now.

        Store trouble leaves the threads of this process to wait for each other.
        """
        until = self._clock.monotonic() + self._wait_s

        def late() -> bool:
            return self._clock.monotonic() >= until

        with self._flights.enter(f"{tenant}\0{template}", late=late) as waited:
            if not self._shared:
                yield waited
                return
            name = "plan:" + hashlib.sha256(template.encode()).hexdigest()[:32]
            with self._leased(tenant, name, late) as queued:
                yield waited or queued

    @contextmanager
    def _leased(self, tenant: str, name: str, late: Callable[[], bool]) -> Iterator[bool]:
        # A forked child has the id of its parent, and threads of the same number.
        holder = f"{self._id}:{os.getpid()}:{threading.get_ident()}"
        has, pause, queued = self._ask(tenant, name, holder), FIRST_PAUSE_S, False
        while has is False and not late():
            queued = True
            self._clock.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)
            has = self._ask(tenant, name, holder)
        if not has:
            yield queued
            return
        try:
            with self._beating(tenant, name, holder):
                yield queued
        finally:
            with self._trouble.guarded(tenant):
                self._store.release(tenant, name, holder)

    def _ask(self, tenant: str, name: str, holder: str) -> bool | None:
        """Return whether `holder` has the lease now; None if the store cannot tell."""
        try:
            return self._store.lease(
                tenant, name, holder, ttl_s=self._ttl_s, now_s=self._clock.now()
            )
        except StoreError as error:
            self._trouble.failed(tenant, "store", error, doing="writing")
            return None

    @contextmanager
    def _beating(self, tenant: str, name: str, holder: str) -> Iterator[None]:
        """Renew the lease until the block ends, however long that takes."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self._ttl_s / BEATS):
                if self._ask(tenant, name, holder) is False:
                    log.info("lease %s went to another process, which plans too", name)
                    return

        heart = threading.Thread(target=beat, name="semcache-lease", daemon=True)
        heart.start()
        try:
            yield
        finally:
            done.set()
            heart.join()
