import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.prompts.unseen.word_shapes import look, token_list


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Lisbon", "capital"),
        ("Portland, OR", "capital sign upper"),
        ("The Nights of Cabiria", "capital closed title"),
        ("b12 forte", "digit lower"),
        ("", ""),
    ],
)
def test_a_look_is_the_shapes_of_the_words_each_once(words: str, expected: str) -> None:
    assert look(words) == expected


@given(st.text())
def test_tokens_stand_in_the_text_in_order(text: str) -> None:
    at = 0
    for token in token_list(text):
        assert at <= token.start < token.end <= len(text)
        at = token.end
