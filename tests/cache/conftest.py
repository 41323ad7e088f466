"""A cache in memory with a clock that stands still and an embedder that needs no model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from semcache import PlanCache
from semcache.ports import Vectors
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, unit


class ScriptedEmbedder:
    """Gives the vectors that a test wants, in turn; then the last one again and again."""

    fingerprint = "scripted:2"

    def __init__(self, *vectors: Sequence[float] | Exception) -> None:
        self._vectors = [*vectors]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the next vector for every text, or raise what stands there."""
        vector = self._vectors[0] if len(self._vectors) == 1 else self._vectors.pop(0)
        if isinstance(vector, Exception):
            raise vector
        return np.stack([unit(*vector) for _ in texts])


@pytest.fixture
def scripted_embedder() -> type[ScriptedEmbedder]:
    """An embedder whose vectors are written down by the test."""
    return ScriptedEmbedder


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def cache(
    clock: FakeClock, observer: RecordingObserver, embedder: HashEmbedder
) -> Iterator[PlanCache]:
    with PlanCache.open(embedder=embedder, clock=clock, observer=observer) as cache:
        yield cache


@pytest.fixture
def bounded(tmp_path: Path, embedder: HashEmbedder) -> Iterator[PlanCache]:
    with PlanCache.open(tmp_path / "cache", embedder=embedder, max_wrong=0.05) as cache:
        yield cache
