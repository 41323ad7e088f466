"""Checks that the contracts share."""
# ruff: noqa: S101 - contract methods are tests: they assert, and their names are sentences

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    """Fail unless the block raises `error`. Not `pytest.raises`, so that fakes need no pytest."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"nothing was raised; expected {error.__name__}")


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """Return what `work` gives for 0 to `count` - 1, in as many threads that begin together."""
    start = threading.Barrier(count)
    results: dict[int, T] = {}

    def run(number: int) -> None:
        start.wait(timeout=30)
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(results) == count, "a thread failed or hangs"
    return [results[number] for number in range(count)]
