"""A store that did not answer when a cache was opened on it: it is opened as soon as it can be."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from semcache.errors import SemCacheError, StoreError, StoreUnavailable
from semcache.forks import ErrorCapture, Forked, Lock, follow_forks
from semcache.ports import PlanStore

RETRY_S = 1.0
"""Seconds after which opening is tried again; twice as long each time, up to `LONGEST_S`."""
LONGEST_S = 10.0

_log = logging.getLogger(__name__)


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

    if not TYPE_CHECKING:  # to a type checker this is no store; `wiring` says that it is one

        def __getattr__(self, name: str) -> object:
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
