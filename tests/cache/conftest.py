"""A cache in memory with a clock that stands still and an embedder that needs no model."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from semcache.cache.plan_cache import PlanCache
from semcache.canonical import Json, JsonObject
from semcache.ports import Vectors
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, unit

Routes = Callable[..., JsonObject]


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
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


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
def routes() -> Routes:
    """Make a plan that calls one operation with some input."""

    def make(operation: str = "sales", given: Mapping[str, Json] | None = None) -> JsonObject:
        return {
            "start_node": {"route": "call"},
            "call": {"operation": operation, "input": dict(given or {}), "route": "end"},
            "end": {"completed": True, "vars": {"answer": "$.call"}},
        }

    return make
