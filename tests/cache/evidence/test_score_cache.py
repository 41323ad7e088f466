"""What is remembered of a lookup by meaning must not show but in its time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Hit, PlanCache
from semcache.testing import FakeClock, HashEmbedder
from tests.cache.learning import plan, plan_it
from tests.calling import hit


def test_a_paraphrase_asked_again_with_other_values_is_not_embedded_again(clock: FakeClock) -> None:
    embedder = HashEmbedder()
    with PlanCache.open(embedder=embedder, clock=clock, threshold=0.1, max_wrong=0.5) as cache:
        cache.store("sales in 2024", plan("sales", year=2024), params={"year": 2024})
        first = cache.lookup("please show me the sales in 2023 report")
        count = len(embedder.texts)
        again = cache.lookup("please show me the sales in 2019 report")
        assert isinstance(first, Hit)
        assert isinstance(again, Hit)
        assert (again.tier, dict(again.params)) == ("semantic", {"year": 2019})
        assert again.risk == first.risk
        assert len(embedder.texts) == count


def test_what_plans_were_made_for_is_looked_for_in_each_prompt_anew(clock: FakeClock) -> None:
    with PlanCache.open(
        embedder=HashEmbedder(), clock=clock, threshold=0.1, max_wrong=0.5
    ) as cache:
        for year in (2023, 2024):
            cache.store(f"sales in {year}", plan(f"view {year % 7}"), params={"year": year})
        for year in (2023, 2024, 2023):
            found = hit(cache.lookup(f"please show me the sales in {year} report"))
            assert found.plan.to_dict() == plan(f"view {year % 7}")
        assert not cache.lookup("please show me the sales in 2025 report")


PROMPTS = st.sampled_from(
    [
        "sales in 2024",
        "please show me sales in 2023",
        "sales by state in 2021",
        "sales without tax in 2021",
        "tax by state",
        "the tax of each state",
        "state by tax and 2021",
    ]
)
STEPS = st.lists(st.tuples(st.sampled_from(["ask", "ask", "plan", "wrong"]), PROMPTS), max_size=25)


def outcome(cache: PlanCache, step: str, prompt: str) -> dict[str, Any]:
    found = cache.lookup(prompt)
    if step == "plan":
        plan_it(cache, prompt, " ".join(prompt.split()[-2:]))
    if step == "wrong" and isinstance(found, Hit):
        cache.feedback(found, right=False)
    told = found.to_dict()
    assert isinstance(told["trace"], dict)
    del told["trace"]["milliseconds"]
    return told


@settings(max_examples=40)
@given(STEPS)
def test_a_cache_that_remembers_answers_as_one_that_does_not(steps: list[tuple[str, str]]) -> None:
    options: dict[str, Any] = {"threshold": 0.1, "max_wrong": 0.3}
    remembering = PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), **options)
    with pytest.MonkeyPatch.context() as patch:
        for kept in ("view.views.SEARCHED", "query.KEPT"):
            patch.setattr(f"semcache.cache.{kept}", 0)
        forgetful = PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), **options)
    with remembering, forgetful:
        for step, prompt in steps:
            assert outcome(remembering, step, prompt) == outcome(forgetful, step, prompt)
