"""Words with capitals are names; what says nothing by its capital is none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.planners.arguments.proper_names import proper_names


def names(text: str, *taken: str) -> list[str | None]:
    return [one.mention for one in proper_names(text, [Parameter("x", t, t) for t in taken])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("flights from San Diego to Denver", ["San Diego", "Denver"]),
        ("Boston is nice", []),
        ("hotels in NYC", []),
        ("mail for O'Neill and I", ["O'Neill"]),
        ("Show Me The Hotels In Paris", []),
        ("hotels in Paris.", ["Paris"]),
        ("no capitals here", []),
    ],
)
def test_a_run_of_words_with_capitals_is_a_name(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_what_is_a_value_already_is_no_name_again() -> None:
    assert names("hotels in Paris and Rome", "Paris") == ["Rome"]
    assert [one.name for one in proper_names("from Paris to Rome today please")] == [
        "proper",
        "proper2",
    ]


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_every_name_stands_in_the_text(text: str) -> None:
    assert all(name and name in text for name in names(text))
