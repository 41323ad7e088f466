import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.prompts.words import (
    CLOSED_CLASS,
    CONJUNCTIONS,
    FUNCTION_WORDS,
    MEANING,
    NEGATION,
    is_grammar,
    singular,
)


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("sales", "sale"), ("purchases", "purchase"), ("statuses", "status"), ("houses", "house"),
        ("categories", "category"), ("movies", "movie"), ("classes", "class"), ("boxes", "box"),
        ("branches", "branch"), ("cities", "city"), ("addresses", "address"), ("ids", "id"),
        ("people", "person"), ("criteria", "criterion"), ("orders", "order"), ("days", "day"),
        ("excuses", "excus"),
    ],
)  # fmt: skip
def test_a_plural_becomes_its_singular(plural: str, one: str) -> None:
    assert singular(plural) == one


@pytest.mark.parametrize("word", ["status", "bus", "class", "analysis", "news", "series", "this"])
def test_a_word_that_only_looks_plural_stays(word: str) -> None:
    assert singular(word) == word


@given(st.text(alphabet="abcdeinosuxyz", min_size=1, max_size=9))
@settings(max_examples=100)
def test_a_singular_is_never_longer_than_one_letter_more(word: str) -> None:
    assert len(singular(word)) <= len(word) + 1


def test_function_words_carry_no_condition() -> None:
    assert not FUNCTION_WORDS & NEGATION
    assert not FUNCTION_WORDS & CONJUNCTIONS


def test_every_word_that_changes_a_plan_is_known_as_a_closed_class_word() -> None:
    assert MEANING <= CLOSED_CLASS
    assert {"without", "over", "before", "top", "all", "from", "or", "<"} <= MEANING


@pytest.mark.parametrize(
    ("text", "word", "grammar"),
    [
        ("sales in Ohio", "in", True),
        ("tickets for IT", "IT", False),
        ("Other classes", "Other", True),
        ("the Other classes", "Other", False),
        ("SALES IN OHIO", "IN", True),
        ("sales in Ohio", "Ohio", False),
    ],
)
def test_capitals_inside_a_text_make_a_name_of_a_grammar_word(
    text: str, word: str, grammar: bool
) -> None:
    start = text.index(word)
    assert is_grammar(text, start, start + len(word)) is grammar
