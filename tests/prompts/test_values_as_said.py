"""Values are served as they are said, unless the stored plan shows how that value is rewritten."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.canonical import Json
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input


@pytest.fixture
def cache() -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        yield cache


def served(cache: PlanCache, prompt: str) -> Json:
    """Return the value that the plan for `prompt` was served with; None for a miss."""
    found = cache.lookup(prompt)
    given = given_input(found) if isinstance(found, Hit) else None
    return given["value"] if isinstance(given, dict) else None


MISS = None
Case: TypeAlias = tuple[str, str, Json, str, Json]
"""Prompt with {}, words, their value in the stored plan, other words, the value served for them."""
AS_SAID: list[Case] = [
    ("install release {} of the agent", "3.5", "3.5", "3.10", "3.10"),
    ("install release {} of the agent", "3.5", "3.5", "4.0", "4.0"),
    ("install release {} of the agent", "1.20", "1.20", "1.2", "1.2"),
    ("install release {} of the agent", "2.5.1", "2.5.1", "2.5.10", "2.5.10"),
    ("install release {} of the agent", "2", "2", "2.0", "2.0"),
    ("charge {} EUR to the desk", "500", 500, "1.750", MISS),
    ("charge {} EUR to the desk", "500", 500, "1,750", MISS),
    ("charge {} EUR to the desk", "2.300", 2300, "1.750", 1750),
    ("charge {} EUR to the desk", "2.300", 2.3, "1.750", 1.75),
    ("charge {} EUR to the desk", "2.50", 2.5, "1.750", 1.75),
    ("charge {} EUR to the desk", "2.50", 2.5, "17", 17),
    ("charge ${} to the desk", "500", 500, "1,750", 1750),
    ("charge ${} to the desk", "2.75", 2.75, "3.10", 3.1),
    ("trips longer than {} in all", "500", 500, "20m", MISS),
    ("trips longer than {} in all", "15m", 15_000_000, "20m", 20_000_000),
    ("trips longer than {} in all", "15m", "15m", "20m", "20m"),
    ("trips longer than {} in all", "15m", 15_000_000, "20k", MISS),
    ("trips longer than {} in all", "15m", 15_000_000, "20", 20),
    ("trips longer than {} in all", "15", 15, "20M", MISS),
    ("trips longer than {} in all", "1.9", 1.9, "1.10", MISS),
    ("trips longer than {} in all", "1.9", 1.9, "2.0", MISS),
    ("trips longer than {} in all", "200", "200", "1,000", MISS),
    ("trips longer than {} in all", "5", "5", "ten", MISS),
    ("trips longer than {} in all", "five", 5, "twenty-three", 23),
    ("trips longer than {} in all", "five", "5", "seven", "7"),
    ("charge {} to the desk", "$500", "$500", "500 dollars", MISS),
    ("wake me at {} every day", "9:15", "9:15", "8:20", "8:20"),
    ("wake me at {} every day", "9:15", "09:15", "8:20", "08:20"),
    ("wake me at {} every day", "9:15", "09:15", "8:20:40", "08:20:40"),
    ("wake me at {} every day", "9:15", "9:15", "8:20:40", MISS),
    ("wake me at {} every day", "9:15 pm", "21:15", "8 pm", "20:00"),
    ("wake me at {} every day", "9:15", "09:15", "24:10", MISS),
    ("wake me at {} every day", "9:15", "09:15", "25:10", MISS),
    ("wake me at {} every day", "9 pm", "21:00", "14 pm", MISS),
    ("wake me at {} every day", "9 pm", "21:00", "0 am", MISS),
    ("track parcel {} today", "QX-4471", "QX-4471", "qx-4471", "qx-4471"),
    ("track parcel {} today", "QX-4471", "qx-4471", "QX-9920", MISS),
    ("show file {} of the repo", "doc/Notes.md", "doc/Notes.md", "doc/notes.md", "doc/notes.md"),
    ("find {} in the log", '"Out Of Memory"', "Out Of Memory", '"out of memory"', "out of memory"),
    ("log in with {} please", "tiger77z", "tiger77z", "Tiger77z", "Tiger77z"),
    ("call {} back", "0049-171-55", "0049-171-55", "0049-171-56", "0049-171-56"),
    ("open door {} now", "007", "007", "012", "012"),
]  # fmt: skip


@pytest.mark.parametrize("case", AS_SAID, ids=str)
def test_a_value_that_nobody_named_is_served_as_said_or_as_shown(
    cache: PlanCache, case: Case
) -> None:
    prompt, words, value, others, expected = case
    cache.store(prompt.format(words), calling("do", value=value))
    assert served(cache, prompt.format(words)) == value
    assert served(cache, prompt.format(others)) == expected


@pytest.mark.parametrize("case", AS_SAID, ids=str)
def test_a_value_that_was_named_is_served_as_said_or_as_shown(cache: PlanCache, case: Case) -> None:
    prompt, words, value, others, expected = case
    parameter = Parameter("value", value, mention=words)
    cache.store(prompt.format(words), calling("do", value=value), params=[parameter])
    assert served(cache, prompt.format(words)) == value
    assert served(cache, prompt.format(others)) == expected


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("read the letter of Marta", "Read.Me of Marta"),
        ("open Config.yml", "open config.yml"),
        ("use the password Zebra9q", "use the password zebra9q"),
        ("set unit kB", "set unit KB"),
    ],
)
def test_words_that_no_recognizer_knows_keep_their_case(
    cache: PlanCache, stored: str, asked: str
) -> None:
    cache.store(stored, calling("do", value="fixed"))
    assert served(cache, asked) is None


def test_case_is_rewritten_where_the_stored_plan_shows_it(cache: PlanCache) -> None:
    parameter = Parameter("value", "LISBON", mention="lisbon")
    cache.store("cheap direct flights to lisbon", calling("do", value="LISBON"), params=[parameter])
    cache.store(
        "hotels in porto",
        calling("stay", value="PORTO"),
        params=[Parameter("value", "PORTO", mention="porto")],
    )
    assert served(cache, "cheap direct flights to porto") == "PORTO"


def test_a_name_learned_in_one_case_is_served_in_the_case_that_is_said(cache: PlanCache) -> None:
    for name in ("Wren9b", "Lark4c"):
        parameter = Parameter("value", name, mention=name)
        cache.store(f"reset the key {name}", calling("do", value=name), params=[parameter])
    assert served(cache, "reset the key lark4c") in {"lark4c", MISS}
    assert served(cache, "reset the key Lark4c") == "Lark4c"


@pytest.mark.parametrize(
    ("stored", "asked", "hit"),
    [
        ("close account QX-4471 now", "close account qx-4471 now", False),
        ("mail the file Q1_Plan to ops", "mail the file q1_plan to ops", False),
        ('say "Hello There" now', 'say "hello there" now', True),
    ],
)
def test_a_plan_for_one_value_serves_it_in_other_case_only_where_its_words_are_ordinary(
    cache: PlanCache, stored: str, asked: str, hit: bool
) -> None:
    cache.store(stored, calling("do", value=77))
    assert bool(served(cache, asked)) is hit
