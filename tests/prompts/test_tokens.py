import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from semcache.errors import InvalidPrompt
from semcache.matching.words.content import content
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask
from semcache.prompts.tokens import (
    IGNORED,
    IGNORED_BY_MEANING,
    Ignored,
    check_prompt,
    folded,
    is_sign,
    is_slot,
    lowered,
    tokens,
)


def reading(text: str) -> tuple[str, list[str]]:
    """Return all that is known of a prompt: its template text and the words of its mentions."""
    mentions = find_mentions(text)
    words = [m.text.strip("\"'\u201c\u201d") if m.kind == "quoted" else m.text for m in mentions]
    return mask(text, mentions).text, words


@pytest.mark.parametrize("ignored", IGNORED, ids=lambda one: one.what)
def test_what_is_listed_as_ignored_makes_no_difference(ignored: Ignored) -> None:
    assert ignored.one != ignored.other
    one, other = (unicodedata.normalize("NFC", text) for text in ignored[1:])
    assert reading(one) == reading(other)


@pytest.mark.parametrize("ignored", IGNORED_BY_MEANING, ids=lambda one: one.what)
def test_what_is_ignored_by_meaning_leaves_the_same_content(ignored: Ignored) -> None:
    one, other = (reading(text)[0] for text in ignored[1:])
    assert one != other
    assert content(one) == content(other)


def test_the_readme_lists_what_is_ignored() -> None:
    readme = (Path(__file__).parents[2] / "docs" / "prompt.md").read_text(encoding="utf-8")
    for table, where in ((IGNORED, "every tier"), (IGNORED_BY_MEANING, "the semantic tier")):
        for what, one, other in table:
            assert f"| {what} | {one!r}, {other!r} | {where} |" in readme


PROMPTS = (
    "list open orders of Ada by price", "total sales in 2024 for O positive donors",
    "set the limit to 5 and turn off the pump", "find one-way flights, then book a seat",
)  # fmt: skip
SIGNS = st.sampled_from(
    "+-*!~#@&|^/\\=<>%$_()[]{}:;\u2013\u2212\u2192\u2190\u2705\u274c\u2a7e\u00ac\u00b0\u20bf\ufe0f"
    "\u200d\u200b\u202e\u0301\u0338\U0001f3fd\U0001f44d\uff0d\uff0b\u0926\u093e\u5e74\u00e9"
)


@given(st.sampled_from(PROMPTS), st.integers(0, 60), SIGNS)
@settings(max_examples=400)
def test_a_sign_put_anywhere_into_a_prompt_changes_what_is_read(
    prompt: str, at: int, sign: str
) -> None:
    assume(at <= len(prompt))
    changed = unicodedata.normalize("NFC", prompt[:at] + sign + prompt[at:])
    (text, said), (other, values) = reading(changed), reading(prompt)
    assert (text, said) != (other, values)
    assert (content(text), said) != (content(other), values)  # "-5" is another value


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=400)
def test_two_texts_are_folded_into_one_only_where_listed_things_differ(
    one: str, other: str
) -> None:
    def bare(text: str) -> str:
        """Return `text` without anything that is listed, and with it at most a little more."""
        text = unicodedata.normalize("NFC", text).lower()
        for quote, plain in zip(
            "\u2018\u2019\u02bc`\u201c\u201d\u00ab\u00bb", "''''\"\"\"\"", strict=True
        ):
            text = text.replace(quote, plain)
        return "".join(text.split()).rstrip(".?")

    if folded(one) == folded(other):
        assert bare(one) == bare(other)


@given(
    st.text(alphabet=st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc", "Cs"]), min_size=1)
)
@settings(max_examples=400)
def test_every_character_of_a_text_is_in_some_token(text: str) -> None:
    text = unicodedata.normalize("NFC", text).lower()
    left = (
        set(text)
        - set("".join(tokens(text)))
        - set(",.?'-!\u2018\u2019\u02bc`\u201c\u201d\u00ab\u00bb")
    )
    assert not left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("Show me TOTAL sales", ("show", "me", "total", "sales")),
        ("What's Sofia's plan?", ("what", "sofia", "plan")),
        ("what 's new", ("what", "new")),
        ("don't, can't, won't, isn't", ("do", "not", "can", "not", "will", "not", "is", "not")),
        ("I cannot", ("i", "can", "not")),
        ("I don\u2019t", ("i", "do", "not")),
        ("amount < 500", ("amount", "<", "500")),
        ("one-way fare", ("one", "way", "fare")),
        ("in-active and un-paid", ("in-", "active", "and", "un-", "paid")),
        ("check-in", ("check", "-in")),
        ("the X-axis, vitamin-c", ("the", "x", "axis", "vitamin", "c")),
        ("A- or a-typical", ("a-", "or", "a-", "typical")),
        ("x-1, x-y", ("x-", "-1", "x-", "-y")),
        ("pens, etc., by Inc.?", ("pens", "etc", "by", "inc")),
        ("what... why??", ("what...", "why??")),
        ("sorted by -price", ("sorted", "by", "-price")),
        ("C++ and C", ("C++", "and", "c")),
        ("amount>=500", ("amount", ">=", "500")),
        ("either/or", ("either", "/", "or")),
        ("!active", ("!", "active")),
        ("tmp/* *logs", ("tmp", "/", "*", "*logs")),
        ("\u2705 done \u2192 next", ("\u2705", "done", "\u2192", "next")),
        ("\u0926\u093e\u0928", ("\u0926\u093e\u0928",)),
        ("<number>-star hotel", ("<number>", "star", "hotel")),
        ("<number>+ nights", ("<number>", "+", "nights")),
        ("<number>-<number>", ("<number>", "-", "<number>")),
        ("pre-<year> cars", ("pre-", "<year>", "cars")),
        ("Thank you! Bye!", ("thank", "you", "bye", "!")),
    ],
)  # fmt: skip
def test_words_and_signs_are_tokens_or_parts_of_tokens(
    text: str, expected: tuple[str, ...]
) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "token", ["+", "-5x", "C++", "in-", "b2b", "US", "caf\u00e9", "\u2705", "<", "<=", "iPhone"]
)
def test_what_the_embedder_does_not_see_is_a_sign(token: str) -> None:
    assert is_sign(token)
    assert not is_slot(token)


@pytest.mark.parametrize("token", ["sales", "o'neill", "2024", "<year>"])
def test_words_numbers_and_slots_are_no_signs(token: str) -> None:
    assert not is_sign(token)


@pytest.mark.parametrize(
    "text", ["Show Me A List", "SHOW IT TO US", "Sales By State", "Check-In Times"]
)
def test_case_of_ordinary_words_goes(text: str) -> None:
    assert folded(text) == text.lower()


def test_a_short_word_of_grammar_behind_a_value_is_no_unit() -> None:
    assert reading("pay 20 EUR To Ana")[0] == reading("pay 20 EUR to Ana")[0]


def test_the_case_of_a_unit_behind_a_value_stays() -> None:
    assert len({reading(f"files over 5 {unit}")[0] for unit in ("MB", "Mb", "mb", "kB", "KB")}) == 5


@pytest.mark.parametrize(
    "typed", ["<year>", "<\\year>", "<\\\\year>", "\u2039year>", "< year>", "<year .>"]
)
def test_no_prompt_spells_a_slot(typed: str) -> None:
    text, _ = reading(f"sales in {typed} by city")
    assert not any(map(is_slot, tokens(text)))
    assert text != reading("sales in 2024 by city")[0]
    others = {"<year>", "<\\year>", "<\\\\year>", "\u2039year>"} - {typed}
    assert text not in {reading(f"sales in {other} by city")[0] for other in others}


def test_ten_thousand_signs_are_read_in_a_bounded_number_of_tokens() -> None:
    for sign in ("+", "<", "\u2705", "! ", "<a>", "-", "'", "A "):
        text = sign * (10_000 // len(sign))
        assert len(tokens(folded(text))) <= 10_000


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
