"""Prompts that are known to have a plan join it, and are found by their words from then on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from semcache import Hit, Miss, Parameter, PlanCache
from semcache.testing import FakeClock, HashEmbedder
from tests.cache.learning import SameWord

STORED, ASKED, AGAIN = (
    "list the late trucks of Boston",
    "please can you list me the late trucks of Boston",
    "Please can you list me the late trucks of Reno?",
)
CITIES = ("Reno", "Boston", "Akron")


def plan(city: str) -> dict[str, object]:
    call = {"operation": "trucks", "input": {"city": city, "state": "late"}, "route": "end"}
    end = {"completed": True, "vars": {"answer": "$.call"}}
    return {"start_node": {"route": "call"}, "call": call, "end": end}


def store(cache: PlanCache, prompt: str, city: str, **more: object) -> str:
    params = [Parameter("city", city, mention=city)]
    return cache.store(prompt, plan(city), params=params, **more).id  # type: ignore[arg-type]  # as `store` takes


def hit(cache: PlanCache, prompt: str, params: Mapping[str, object] | None = None) -> Hit:
    found = cache.lookup(prompt, params=params)
    assert isinstance(found, Hit), found.explain()
    return found


@pytest.fixture
def cache(clock: FakeClock) -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder(), max_wrong=0.3, clock=clock, ttl_s=100) as cache:
        for city in CITIES:
            store(cache, f"trucks that go to {city}", city)
        store(cache, STORED, "Boston", tags=["trucks"])
        yield cache


def test_the_prompt_of_a_hit_that_was_right_is_found_by_its_words(cache: PlanCache) -> None:
    before = hit(cache, ASKED)
    assert before.tier == "semantic"
    cache.feedback(before, right=True)
    found = hit(cache, AGAIN)
    assert (found.tier, found.params) == ("template", {"city": "Reno"})
    assert found.plan.to_dict() == plan("Reno")
    assert found.entry != before.entry


def test_a_hit_that_nobody_looked_at_joins_nothing(cache: PlanCache) -> None:
    known = len(cache.entries())
    assert hit(cache, ASKED).tier == hit(cache, AGAIN).tier == "semantic"
    cache.judged(hit(cache, ASKED), right=True)
    assert len(cache.entries()) == known


def test_a_wrong_hit_joins_nothing(cache: PlanCache) -> None:
    known = len(cache.entries())
    cache.feedback(hit(cache, ASKED), right=False)
    assert len(cache.entries()) == known


def test_what_joins_goes_with_the_plan_that_it_joined(cache: PlanCache, clock: FakeClock) -> None:
    clock.advance(60)
    cache.feedback(hit(cache, ASKED), right=True)
    joined = next(entry for entry in cache.entries() if entry.planner == "confirmed")
    assert joined.tags == ("trucks",)
    clock.advance(41)  # the plan itself is a hundred seconds old by now
    assert isinstance(cache.lookup(AGAIN), Miss)


def test_what_joined_is_invalidated_by_the_tag_of_the_plan(cache: PlanCache) -> None:
    cache.feedback(hit(cache, ASKED), right=True)
    assert cache.invalidate(tag="trucks") == 2
    assert isinstance(cache.lookup(AGAIN), Miss)


def test_a_prompt_whose_values_were_given_joins_if_it_says_them(cache: PlanCache) -> None:
    known = len(cache.entries())
    found = hit(cache, ASKED, {"city": "Boston"})
    assert found.tier == "semantic"
    another = found.trace._replace(prompt=STORED[:20])
    unsaid = replace(found, params={"city": "Reno"}, trace=another)
    cache.feedback(unsaid, right=True)
    assert len(cache.entries()) == known
    cache.feedback(found, right=True)
    assert (hit(cache, AGAIN).tier, hit(cache, AGAIN).params) == ("template", {"city": "Reno"})


def test_a_plan_that_was_made_for_the_prompt_meanwhile_stays(cache: PlanCache) -> None:
    found = hit(cache, ASKED)
    own = plan("Boston") | {"end": {"completed": True, "vars": {"all": "$.call"}}}
    params = [Parameter("city", "Boston", mention="Boston")]
    cache.store(ASKED, own, params=params, planner="own")
    cache.feedback(found, right=True)
    assert [e.planner for e in cache.entries() if e.prompt == ASKED] == ["own"]


def test_nothing_joins_a_plan_that_is_gone(cache: PlanCache) -> None:
    found = hit(cache, ASKED)
    cache.clear()
    cache.feedback(found, right=True)
    assert cache.entries() == ()


def test_where_prompts_are_redacted_nothing_of_a_hit_joins() -> None:
    def redact(text: str) -> str:
        return text.replace("Boston", "[city]")

    with PlanCache.open(embedder=HashEmbedder(), max_wrong=0.3, redact=redact) as cache:
        for city in CITIES:
            store(cache, f"trucks that go to {city}", city)
        store(cache, STORED, "Boston")
        cache.feedback(hit(cache, ASKED), right=True)
        assert {entry.planner for entry in cache.entries()} == {""}


def test_what_a_verifier_confirmed_inline_is_not_asked_again() -> None:
    stored = "total sales of the year {} by state and by city of all our shops"
    query = stored.replace("sales", "revenue")
    verifier = SameWord("revenue", "sales")
    with PlanCache.open(embedder=HashEmbedder(), verifier=verifier, verify="inline") as cache:
        cache.store(stored.format(2024), plan("2024"), params={"city": "2024"}, tags=["sales"])
        assert hit(cache, query.format(2023)).plan.to_dict() == plan("2023")
        assert hit(cache, query.format(2022)).tier == "template"
        assert len(verifier.query) == 1
        assert not cache.lookup(query.format(2022).replace("revenue", "losses"))
        assert len(verifier.query) == 2
        assert {entry.tags for entry in cache.entries()} == {("sales",)}
