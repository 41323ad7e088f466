"""A verifier looks at what likeness alone kept back; without its yes it is a miss."""

import threading
from typing import Literal

import pytest

from semcache import Miss, Parameter, PlanCache, Settings
from semcache.canonical import JsonObject
from semcache.errors import ModelUnavailable
from semcache.ports import Verification, Verifier
from semcache.stores.memory import MemoryStore
from semcache.testing import HashEmbedder
from tests.caching import cache_over
from tests.calling import calling, hit

STORED, ASKED, AGAIN = (
    "sales in 2024 by state",
    "revenue in 2023 by state",
    "revenue in 2022 by state",
)


def plan(year: str) -> JsonObject:
    return calling("sales", year=year)


class Scripted:
    """A verifier that says what a test wants."""

    def __init__(self, said: bool | Exception | None) -> None:
        self.said = said
        self.query: list[Verification] = []
        self.done = threading.Event()

    def verify(self, question: Verification) -> bool | None:
        self.query.append(question)
        self.done.set()
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def opened(verifier: Verifier, verify: Literal["background", "inline"] = "background") -> PlanCache:
    # The test's embedder knows no synonyms: what means the same is not near.
    settings = Settings(threshold=0.99, verify_from=0.3, verify=verify)
    cache = cache_over(MemoryStore(), settings, verifier=verifier)
    cache.store(STORED, plan("2024"), params=[Parameter("year", "2024", mention="2024")])
    return cache


def test_what_is_confirmed_in_the_background_hits_the_next_time_with_its_own_values() -> None:
    verifier = Scripted(said=True)
    with opened(verifier) as cache:
        assert isinstance(cache.lookup(ASKED), Miss)
        cache.verified()
        found = hit(cache.lookup(AGAIN))
        assert found.plan.to_dict() == plan("2022")
        assert cache.stats().verified == {"confirmed": 1}
    assert verifier.query == [Verification(ASKED, STORED, plan("2023"), {"year": "2023"})]


@pytest.mark.parametrize(
    ("said", "counted"),
    [(False, "rejected"), (None, "abstained"), (ModelUnavailable("down"), "failed")],
)
@pytest.mark.parametrize("verify", ["background", "inline"])
def test_what_is_not_confirmed_stays_a_miss(
    said: bool | Exception | None, counted: str, verify: Literal["background", "inline"]
) -> None:
    with opened(Scripted(said), verify) as cache:
        assert isinstance(cache.lookup(ASKED), Miss)
        cache.verified()
        assert cache.stats().verified == {counted: 1}
        assert isinstance(cache.lookup(AGAIN), Miss)


def test_inline_a_confirmed_candidate_is_served_at_once() -> None:
    with opened(Scripted(said=True), "inline") as cache:
        found = hit(cache.lookup(ASKED))
        assert found.plan.to_dict() == plan("2023")
        assert "in doubt" in found.explain()


def test_what_would_not_be_valid_is_never_shown() -> None:
    verifier = Scripted(said=True)
    with opened(verifier) as cache:
        assert isinstance(cache.lookup("sales in 2023 and 2024 by state"), Miss)  # other slots
        assert isinstance(cache.lookup("who wrote this"), Miss)  # nothing near
        cache.verified()
    assert verifier.query == []


def test_a_prompt_is_shown_once_and_no_more_than_may_wait() -> None:
    verifier = Scripted(said=False)
    with opened(verifier) as cache:
        for _ in range(3):
            cache.lookup(ASKED)
        cache.verified()
        assert len(verifier.query) == 1


def test_a_cache_closes_while_candidates_wait() -> None:
    verifier = Scripted(said=True)
    cache = opened(verifier)
    cache.lookup(ASKED)
    cache.close()
    cache.close()
    assert not [t for t in threading.enumerate() if t.name == "semcache-verifier" and t.is_alive()]


def test_a_confirmed_prompt_teaches_no_evidence() -> None:
    with PlanCache.open(embedder=HashEmbedder(), max_wrong=0.01, verifier=Scripted(True)) as cache:
        cache.store(STORED, plan("2024"), params=[Parameter("year", "2024", mention="2024")])
        cache.lookup(ASKED)
        cache.verified()
        assert cache.evidence().labels == 0
