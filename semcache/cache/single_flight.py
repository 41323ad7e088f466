"""Single flight: of all that want the same plan, over threads and processes, one makes it.

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
from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter, ValidationError

from semcache.cache.query import check_found
from semcache.cache.reports import HealthReporter
from semcache.cache.result import Found
from semcache.errors import PlanningError, StoreError
from semcache.ports import Clock, PlanStore
from semcache.process.forks import Forked, Holder, Lock, follow_forks, holder, lives, withdraw


@dataclass(slots=True)
class _Seat:
    lock: Lock = field(default_factory=Lock)
    users: list[Holder] = field(default_factory=list)
    """Who is inside or waits; one that was interrupted may stay until somebody else comes."""
    failures: int = 0
    """Holders that failed; who came before the last of them shares its error."""
    error: Exception | None = None


def never() -> bool:
    """Return False: it is never too late."""
    return False


class KeyLocks(Forked):
    """One lock a key, kept only while somebody uses it. A forked child begins with none taken."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._seats: dict[str, _Seat] = {}
        follow_forks(self)

    @contextmanager
    def enter(self, key: str, *, late: Callable[[], bool] = never) -> Iterator[bool]:
        """Hold `key` alone; give whether somebody else held it when we came.

        A caller that had to wait looks up again before it makes anything: what it waited for may
        be there now. What the holder raises, all raise who wait at that moment, as of a future:
        each trying in its turn would keep the last waiting for the errors of all others. An
        interrupt is the holder's own. As soon as it is `late`, who still waits is let in beside the
        holder.
        """
        mine, held = holder(), False
        with self._guard:
            seats = self._seats
            seat = seats.setdefault(key, _Seat())
            seat.users = [user for user in seat.users if lives(user)]
            waited, failures = bool(seat.users), seat.failures
            seat.users.append(mine)
        try:
            held = seat.lock.take(late)
            if held and seat.error is not None and seat.failures > failures:
                raise seat.error
            try:
                yield waited
            except Exception as error:
                seat.error = error
                seat.failures += 1
                raise
        finally:
            if held:
                seat.lock.free()
            with self._guard:
                withdraw(seat.users, mine)
                if not seat.users:
                    seats.pop(key, None)

    def __len__(self) -> int:
        """Return how many keys are in use."""
        return len(self._seats)

    def forked(self) -> None:
        """Begin anew: whoever held a key is a thread of the parent."""
        self._seats = {}


log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.01
LAST_PAUSE_S = 0.1
"""Seconds between two looks at a lease that another process has: the first, and after many."""
KEPT_FAILURES = 64
"""Failures of a tenant that are told to processes which wait just then."""
MAX_ERROR = 500
"""Characters of one."""
_FAILED = "planning-failed"
_FAILURES = TypeAdapter(dict[str, tuple[str, str]], config=ConfigDict(defer_build=True))
BEATS = 3
"""How often a lease is renewed before it would run out."""


class SingleFlight:
    """Lets one caller at a time plan for a template of a tenant. Safe from several threads."""

    def __init__(
        self,
        store: PlanStore,
        clock: Clock,
        health: HealthReporter,
        *,
        ttl_s: float,
        wait_s: float,
        redacted: Callable[[str], str] = str,
    ) -> None:
        """`redacted`: returns the text of an error as it may be written down."""
        self._store = store
        self._clock = clock
        self._health = health
        self._ttl_s = ttl_s
        self._wait_s = wait_s
        self._redacted = redacted
        self._locks = KeyLocks()
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
            self._health.failed(tenant, "store", error)
            return False

    @contextmanager
    def alone(self, tenant: str, template: str) -> Iterator[bool]:
        """Plan for `template` alone; give whether somebody else did until now.

        Store trouble leaves the threads of this process to wait for each other.
        """
        until = self._clock.monotonic() + self._wait_s

        def late() -> bool:
            return self._clock.monotonic() >= until

        with self._locks.enter(f"{tenant}\0{template}", late=late) as waited:
            name = "plan:" + hashlib.sha256(template.encode()).hexdigest()[:32]
            with self._leased(tenant, name, late) as queued:
                yield waited or queued

    @contextmanager
    def _leased(self, tenant: str, name: str, late: Callable[[], bool]) -> Iterator[bool]:
        # A forked child has the id of its parent, and threads of the same number.
        holder = f"{self._id}:{os.getpid()}:{threading.get_ident()}"
        has, pause, queued = self._ask(tenant, name, holder), FIRST_PAUSE_S, False
        before = self._failures(tenant).get(name) if has is False else None
        while has is False and not late():
            queued = True
            self._clock.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)
            has = self._ask(tenant, name, holder)
        if not has:
            yield queued
            return
        try:
            failed = self._failures(tenant).get(name, before) if queued else before
            if failed is not None and failed != before:
                raise PlanningError(
                    f"another process was planning this too, and failed: {failed[1]}"
                )
            with self._beating(tenant, name, holder), self._telling(tenant, name):
                yield queued
        finally:
            with self._health.guarded(tenant):
                self._store.release(tenant, name, holder)

    def _ask(self, tenant: str, name: str, holder: str) -> bool | None:
        """Return whether `holder` has the lease now; None if the store cannot tell."""
        try:
            return self._store.lease(
                tenant, name, holder, ttl_s=self._ttl_s, now_s=self._clock.now()
            )
        except StoreError as error:
            self._health.failed(tenant, "store", error, doing="writing")
            return None

    @contextmanager
    def _telling(self, tenant: str, name: str) -> Iterator[None]:
        """Let processes that wait for the same plan hear of it if the block fails.

        Each trying in its turn would keep the last waiting for the errors of all others.
        """
        try:
            yield
        except Exception as error:
            # Cleaned before it is cut: half of a secret is not known to be one.
            told = self._redacted(f"{type(error).__name__}: {error}")[:MAX_ERROR]
            told = told.encode("utf-8", "replace").decode()

            def add(note: str | None) -> str:
                known = _failures(note)
                known.pop(name, None)
                known[name] = uuid.uuid4().hex, told
                return _FAILURES.dump_json(dict([*known.items()][-KEPT_FAILURES:])).decode()

            with self._health.guarded(tenant):
                self._store.update_note(tenant, _FAILED, add)
            raise

    def _failures(self, tenant: str) -> dict[str, tuple[str, str]]:
        """Return the latest failures of planning: lease → an id of its own, and the error."""
        with self._health.guarded(tenant):
            return _failures(self._store.get_note(tenant, _FAILED))
        return {}

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


def _failures(note: str | None) -> dict[str, tuple[str, str]]:
    try:
        return {} if note is None else _FAILURES.validate_json(note)
    except ValidationError:
        return {}
