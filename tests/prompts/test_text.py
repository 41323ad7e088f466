import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import InvalidPrompt
from semcache.prompts.tokens import check_prompt, lowered


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        (None, "NoneType"),
        (b"sales", "bytes"),
        (7, "int"),
        ("", "blank"),
        (" \n\t ", "blank"),
        ("\u200b\ufeff", "blank"),
        ("sales\0in 2024", "NUL character at 5"),
        ("sales \ud800", "lone surrogate at 6"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_and_the_error_says_why(
    prompt: object, says: str
) -> None:
    with pytest.raises(InvalidPrompt, match=says):
        check_prompt(prompt)


def test_a_megabyte_is_refused_by_an_error_that_names_the_limit() -> None:
    with pytest.raises(InvalidPrompt, match="1,000,000 characters; at most 20,000"):
        check_prompt("x" * 1_000_000)


def test_the_limit_is_the_callers_to_set() -> None:
    assert check_prompt("x" * 30, max_chars=30) == "x" * 30
    with pytest.raises(InvalidPrompt, match="at most 29"):
        check_prompt("x" * 30, max_chars=29)


def test_outer_white_space_goes_and_characters_are_composed() -> None:
    assert check_prompt("  cafe\u0301 sales \n") == "caf\u00e9 sales"


@given(st.text())
@settings(max_examples=100)
def test_lower_case_keeps_every_offset(text: str) -> None:
    assert len(lowered(text)) == len(text)


def test_a_character_whose_lower_case_is_longer_stays() -> None:
    assert lowered("\u0130S IN") == "\u0130s in"


@given(st.text(max_size=50))
@settings(max_examples=100)
def test_a_checked_prompt_checks_to_itself_or_the_text_is_refused(text: str) -> None:
    try:
        once = check_prompt(text)
    except InvalidPrompt:
        return
    assert check_prompt(once) == once
