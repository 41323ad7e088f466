"""Waiting for what another thread, process or server does, without a wait that is tuned."""

import time
from collections.abc import Callable, Iterator

import pytest

from semcache.process import forks


def until(holds: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Ask again and again, at most for `within_s`: far longer than any bound that is promised."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never held"


def count_waiting_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return what counts the threads that wait for a lock of the package just then."""
    waiting: set[object] = set()
    pauses = forks.pauses

    def counted() -> Iterator[float]:
        thread = object()
        waiting.add(thread)
        try:
            yield from pauses()
        finally:
            waiting.discard(thread)

    monkeypatch.setattr(forks, "pauses", counted)
    return lambda: len(waiting)
