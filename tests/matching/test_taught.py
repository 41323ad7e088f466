"""What a tenant that has planned before lets pass, and what it tells apart all the same."""

from collections.abc import Iterator

import pytest

from semcache import Miss, PlanCache
from semcache.models.minilm import MiniLMEmbedder
from tests.calling import calling

THINGS = ("invoices", "shipments", "refunds", "drivers", "parcels", "tickets")


@pytest.fixture(scope="module")
def cache(minilm: MiniLMEmbedder) -> Iterator[PlanCache]:
    """A tenant that was taught, by planning, that phrases may stand first, and one that was not."""
    with PlanCache.open(embedder=minilm, max_wrong=0.015) as cache:
        for tenant in ("taught", "new"):
            for thing in THINGS:
                for what in (f"overdue {thing} by region", f"{thing} of every depot"):
                    cache.store(what, calling("shop.query", what=what), tenant=tenant)
        for thing in THINGS[:4]:
            prompt = f"by region overdue {thing}"
            if not cache.lookup(prompt, tenant="taught"):
                cache.store(
                    prompt,
                    calling("shop.query", what=f"overdue {thing} by region"),
                    tenant="taught",
                )
        yield cache


def refused_for_words(cache: PlanCache, prompt: str, tenant: str) -> bool:
    found = cache.lookup(prompt, tenant=tenant)
    return isinstance(found, Miss) and found.reason == "words"


def test_phrases_that_turned_out_to_stand_anywhere_speak_for_prepositions(
    cache: PlanCache,
) -> None:
    assert refused_for_words(cache, "overdue tickets in region", "new")
    assert not refused_for_words(cache, "overdue tickets in region", "taught")


@pytest.mark.parametrize(
    "prompt",
    [
        "not overdue tickets by region",
        "overdue tickets before region",
        "first overdue tickets by region",
        "when are tickets overdue by region",
        "are tickets overdue by region",
        "depots of every ticket",
        "regions by overdue tickets",
        "overdue tickets by region and depot",
    ],
)
@pytest.mark.parametrize("tenant", ["new", "taught"])
def test_what_asks_for_another_thing_is_told_apart_however_much_was_learned_of_order(
    cache: PlanCache, prompt: str, tenant: str
) -> None:
    assert not cache.lookup(prompt, tenant=tenant)
