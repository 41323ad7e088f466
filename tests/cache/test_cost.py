"""What a prompt costs grows as its length does: no prompt is dear out of proportion."""

import sys
from collections.abc import Callable

import pytest

from semcache import PlanCache, SemCache, SemCacheError, catalog_from
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, given_input, missed

PLAN = {
    "start_node": {"route": "query"},
    "query": {"operation": "sales", "input": {"top": 7, "until": "2024-06-30"}, "route": "done"},
    "done": {"completed": True, "vars": {"answer": "$.query.data"}},
}
PARTS = {
    "words": "sales of shoes ",
    "tags": "<a>",
    "numbers": "1017 2093 31 ",
    "dates": "2024-01-02 2023-05-17 ",
    "quotes": '"a" "b" ',
    "open quotes": "'a ",
    "names": "Ab Cd ",
    "signs": "!",
    "parentheses": "(",
    "dashes": "1-",
    "money": "$1,0",
    "emoji": "\U0001f600",
    "marks": "e\u0301",
}


def sales(what: str) -> str:
    """Return the sales of a thing."""
    return what


def steps(work: Callable[[], object]) -> int:
    """Return how many functions `work` calls."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def cost(part: str, length: int) -> int:
    """Return the steps of storing prompts of about `length` characters and looking one up."""
    prompt = part * (length // len(part))
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        cache.store(f"{prompt} first", PLAN)
        cache.lookup(f"{prompt} warm")  # what is imported or made once

        def work() -> None:
            cache.store(f"{prompt} second", PLAN)
            cache.lookup(f"{prompt} third")
            cache.lookup(f"else {prompt} third")

        return steps(work)


class SlowClock(FakeClock):
    """Passes when it is looked at."""

    step_s = 0.0

    def monotonic(self) -> float:
        """Return seconds that grow with each look."""
        self.advance(self.step_s)
        return super().monotonic()


def test_matching_that_takes_too_long_is_given_up_told_and_counted() -> None:
    clock = SlowClock()
    with PlanCache.open(embedder=HashEmbedder(), clock=clock) as cache:
        cache.store("sales of shoes in 2024", PLAN)
        clock.step_s = 3.0
        found = missed(cache.lookup("please show the sales of shoes in 2024 again"))
        assert found.reason == "too_slow"
        assert "given up after 3.0 s of matching" in found.explain()
        assert cache.lookup("sales of shoes in 2024")
        assert cache.stats().misses["too_slow"] == 1


@pytest.mark.parametrize("name", PARTS)
def test_a_prompt_of_twice_the_length_costs_about_twice_as_much(name: str) -> None:
    short, long = cost(PARTS[name], 1500), cost(PARTS[name], 3000)
    assert long <= 2.5 * short + 2000


# By what is read from each of its characters anew, each of these would take minutes.
@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "https://h.example/p?" + "a" * 200_000, " " * 200_000, "1" * 200_000],
    ids=["letters", "address", "spaces", "digits"],
)
def test_a_plan_with_a_text_of_any_length_is_stored_and_served(text: str) -> None:
    plan = calling("sales", top=7, note=text)
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        assert cache.store("sales of the top 7", plan, params={"top": 7})
        assert given_input(cache.lookup("sales of the top 8")) == {"top": 8, "note": text}


# The same.
def test_a_prompt_of_as_many_signs_and_spaces_as_it_may_have_is_refused_in_words() -> None:
    with SemCache.open(catalog=catalog_from(sales), embedder=HashEmbedder()) as semcache:
        for filler in (" ", ".", ", "):
            with pytest.raises(SemCacheError, match="sales"):
                semcache.run(f"sales of shoes{filler * (19_000 // len(filler))}and of boots")
