"""A what-if shows what would be found, and nothing remembers that somebody looked."""

from pathlib import Path
from typing import Any

import pytest

from semcache import Hit, Miss, PlanCache
from semcache.errors import InvalidInput
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver
from tests.cache.learning import SameWord
from tests.calling import calling

STORED, ASKED = "sales in 2024 by state", "sales in 2023 by state"


def opened(**more: Any) -> PlanCache:
    cache = PlanCache.open(embedder=HashEmbedder(), **more)
    assert cache.store(STORED, calling("sales", year="2024"), params={"year": "2024"})
    return cache


def test_a_what_if_finds_what_a_lookup_would() -> None:
    with opened() as cache:
        for prompt in (ASKED, "refunds in 2023 by state", "please show the sales in 2023 by state"):
            imagined, found = cache.lookup(prompt, what_if=True), cache.lookup(prompt)
            assert (type(imagined), imagined.trace.candidates) == (
                type(found),
                found.trace.candidates,
            )


def test_a_what_if_is_neither_counted_nor_told() -> None:
    observer = RecordingObserver()
    with opened(observer=observer) as cache:
        before, told = cache.stats(), len(observer.events)
        assert isinstance(cache.lookup(ASKED, what_if=True), Hit)
        assert isinstance(cache.lookup("refunds by city", what_if=True), Miss)
        assert cache.stats() == before
        assert len(observer.events) == told
        cache.lookup(ASKED)
        assert cache.stats().lookups == before.lookups + 1


def test_a_what_if_lets_no_entry_live_longer(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(
        directory=tmp_path / "cache", clock=clock, ttl_s=100.0, ttl_slides="always"
    ) as cache:
        clock.advance(60)
        assert cache.lookup(ASKED, what_if=True)
        clock.advance(60)
        assert isinstance(cache.lookup(ASKED), Miss)


def test_a_what_if_asks_no_verifier() -> None:
    verifier = SameWord("revenue", "sales")
    with opened(verifier=verifier, verify="inline") as cache:
        assert not cache.lookup("sales revenue in 2023 by state", what_if=True)
        assert verifier.query == []
        assert not cache.lookup("sales returned in 2023 by state")
        assert cache.lookup("sales revenue in 2023 by state")
        assert len(verifier.query) == 2


@pytest.mark.parametrize("what_if", ["no", 1, None])
def test_what_if_is_true_or_false(what_if: Any) -> None:
    with opened() as cache, pytest.raises(InvalidInput, match=r"what_if is .*; expected True or"):
        cache.lookup(ASKED, what_if=what_if)
