"""Numbers at the ends of sentences, and the numbers of lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache import PlanCache
from semcache.prompts.mentions import find_mentions
from semcache.testing import HashEmbedder

WORDS = ("list orders", "mail them to ann", "set the heater", "report", "archive the rest")
ENDS = st.sampled_from([".", ". ", ".\n", "?", "!", ";", ",", " .", ". Then report", "; report"])
NUMBERS = st.integers(0, 10**6).map(str) | st.floats(0.01, 99, allow_nan=False).map("{:.2f}".format)
MARKS = st.sampled_from(["{}. ", "{}) ", "({}) ", "{}: ", "step {}: "])
BETWEEN = st.sampled_from(["\n", ". ", "; ", ", "])
ITEMS = st.lists(st.tuples(st.sampled_from(WORDS), st.none() | NUMBERS), min_size=2, max_size=12)


def values(text: str) -> list[tuple[str, object]]:
    return [(mention.text, mention.value) for mention in find_mentions(text)]


@given(NUMBERS, ENDS)
def test_a_number_at_the_end_of_a_sentence_is_the_number(number: str, end: str) -> None:
    assert values(f"set the heater to {number}{end}") == values(f"set the heater to {number}")


@given(ITEMS, MARKS, BETWEEN)
def test_the_numbers_of_a_list_are_no_values_and_those_in_it_are(
    items: list[tuple[str, str | None]], mark: str, between: str
) -> None:
    said = [words if number is None else f"{words} to {number}" for words, number in items]
    text = between.join(mark.format(i) + one for i, one in enumerate(said, start=1))
    assert values(text) == [found for one in said for found in values(one)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. list orders 2. limit to 5", ["5"]),
        ("do this: 1. list orders 2. mail them", []),
        ("show 1. and 2. order", ["1", "2"]),
        ("set the heater to 1. report", ["1"]),
        ("1. set the heater to 2. 2. report", ["2"]),
        ("1. set the heater to 2. report 2. mail it", ["1", "2", "2"]),
        ("2. list orders 3. mail them", ["2", "3"]),
        ("1.5 litres to 2. floor", ["1.5", "2"]),
    ],
)
def test_only_what_counts_from_one_and_can_be_told_from_values_is_a_list(
    text: str, found: list[str]
) -> None:
    assert [mention.text for mention in find_mentions(text)] == found


def test_a_plan_for_a_list_takes_other_values_and_its_constants_never_the_list_s_numbers() -> None:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        cache.store("1. list orders 2. limit to 5", {"operation": "list", "page": 1, "limit": 5})
        served = cache.lookup("1. list orders 2. limit to 7")
        assert served
        assert served.plan.to_dict() == {"operation": "list", "page": 1, "limit": 7}
        for text in ("3. list orders 4. limit to 5", "1. list orders 3. limit to 5"):
            assert not cache.lookup(text)
