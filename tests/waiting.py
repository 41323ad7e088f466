"""Waiting for what another thread, process or server does, without a wait that is tuned."""

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Ask again and again, at most for `within_s`: far longer than any bound that is promised."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never held"
