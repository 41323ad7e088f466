"""Stores in front of another one: frozen, so that nothing reaches it, and opened late."""
# ruff: noqa: ARG002 - what is refused takes the arguments of the port

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from semcache.errors import SemCacheError, StoreError, StoreUnavailable
from semcache.ports import UNBOUNDED, Bounds, PlanStore, Put, Record
from semcache.process.forks import ErrorCapture, Forked, Lock, follow_forks
from semcache.stores.memory import MemoryStore

RETRY_S = 1.0
"""Seconds after which opening is tried again; twice as long each time, up to `LONGEST_S`."""
LONGEST_S = 10.0

_log = logging.getLogger(__name__)

FROZEN = "the cache is frozen: it serves and keeps nothing; open it without `frozen` to change it"


class FrozenStore:
    """Another store for reading alone, as `ports.PlanStore` promises but for its writes.

    Records cannot be written or removed. Notes and leases are kept in memory, over those of the
    store, so that counts, vetoes and failures go on for as long as the process lives.
    """

    def __init__(self, beneath: PlanStore) -> None:
        self.beneath = beneath
        """The store that is served."""
        self._notes: dict[tuple[str, str], str | None] = {}
        self._memory = MemoryStore()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method that only reads
        return getattr(self.beneath, name)

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Raise StoreUnavailable: nothing is written."""
        raise StoreUnavailable(FROZEN)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Raise StoreUnavailable: nothing is removed."""
        raise StoreUnavailable(FROZEN)

    def clear(self, tenant: str | None = None) -> int:
        """Raise StoreUnavailable: nothing is removed."""
        raise StoreUnavailable(FROZEN)

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Do nothing: uses matter for eviction, and nothing is evicted."""

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give the lease among the threads of this process; see `ports.PlanStore`."""
        return self._memory.lease(tenant, name, holder, ttl_s=ttl_s, now_s=now_s)

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back."""
        self._memory.release(tenant, name, holder)

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note as this process has it, else as the store has it."""
        if (tenant, name) in self._notes:
            return self._notes[tenant, name]
        return self.beneath.get_note(tenant, name)

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep the note in memory."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace the note in memory by `change(note)`."""

        def replaced(_: str | None) -> None:
            self._notes[tenant, name] = change(self.get_note(tenant, name))

        self._memory.update_note("", "", replaced)  # one thread at a time

    def close(self) -> None:
        """Release files and connections."""
        self._memory.close()
        self.beneath.close()


class LateStore(Forked):
    """Another store, opened on a thread; until it is, every call fails at once and says why.

    Nobody waits for it: who asks has a planner, and goes on without. Safe from several threads.
    """

    def __init__(
        self, opened: Callable[[], PlanStore], why: StoreError, *, retry_s: float = RETRY_S
    ) -> None:
        """Begin to try. `opened`: returns the store, or raises; `why`: what it raised at first."""
        self._open = opened
        self._why: SemCacheError = why
        self._retry_s = retry_s
        self._beneath: PlanStore | None = None
        self._lock = Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        follow_forks(self)
        self._go_on_trying()

    @property
    def beneath(self) -> PlanStore:
        """The store.

        Raises:
            StoreError: it is not opened yet, or it turned out that it cannot be.
        """
        if self._beneath is not None:
            return self._beneath
        if self._thread is None:
            self._go_on_trying()  # in a forked child
        raise type(self._why)(str(self._why))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method of a store
        return getattr(self.beneath, name)

    def _go_on_trying(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                thread = threading.Thread(
                    target=self._try, args=(self._closed,), name="semcache-opening", daemon=True
                )
                thread.start()
                self._thread = thread

    def _try(self, closed: threading.Event) -> None:
        wait_s = self._retry_s
        while not closed.wait(wait_s):
            wait_s = min(2 * wait_s, LONGEST_S)
            caught = ErrorCapture()
            with caught:
                self._beneath = self._open()
            if caught.error is None:
                _log.info("the store answers, and was opened")
                break
            if isinstance(caught.error, SemCacheError):
                self._why = caught.error
            if not isinstance(caught.error, StoreUnavailable):
                _log.error("the store answers, and cannot be used: %s", caught.error)
                break
        if closed.is_set() and self._beneath is not None:
            self._beneath.close()

    def forked(self) -> None:
        """Let a forked child try by itself: the thread that does is the parent's."""
        closed, self._closed, self._thread = self._closed.is_set(), threading.Event(), None
        if closed:
            self._closed.set()

    def close(self) -> None:
        """Close the store, or stop trying to open it; calling it twice is fine."""
        self._closed.set()
        if self._beneath is not None:
            self._beneath.close()
