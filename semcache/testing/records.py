"""What the contracts share: how stores and records are made and compared, and two checks."""
# ruff: noqa: S101 - the checks are of tests: they assert

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from semcache.ports import PlanStore, Record, Vector

T = TypeVar("T")


def unit(*components: float) -> Vector:
    """Return the direction of `components` as an L2-normalized float32 vector."""
    vector = np.array(components, np.float32)
    return vector / np.float32(np.linalg.norm(vector))


# A test names fields as they are, or wrongly on purpose.
def make_record(id: str, **fields: Any) -> Record:  # noqa: A002, ANN401
    """Return a record of tenant `acme` in which `fields` say what is not as usual."""
    usual = Record(
        tenant="acme",
        id=id,
        keys=(f"template:{id}",),
        labels=("tag:sales",),
        body='{"plan":{}}',
        vector=unit(1, 2, 2),
        embedder="hash:3",
        created_s=1_700_000_000.0,
        expires_s=None,
    )
    return replace(usual, **fields)


def same_records(left: Record | None, right: Record | None) -> bool:
    """Return whether two records are equal but for their change numbers; vectors bit for bit."""
    if left is None or right is None:
        return left is right
    bare = [replace(record, vector=None, change=0) for record in (left, right)]
    vectors = [None if r.vector is None else r.vector.tobytes() for r in (left, right)]
    return bare[0] == bare[1] and vectors[0] == vectors[1]


class StoreFactory:
    """Says how a store is made; the contracts inherit it."""

    def make(self, tmp_path: Path) -> PlanStore:
        """Return a new store; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how a store is made")


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
