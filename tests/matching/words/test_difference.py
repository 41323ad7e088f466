from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.words import difference as alike
from semcache.matching.words.classes import stem, word_class
from semcache.matching.words.difference import compare, is_alike

WORDS = st.lists(
    st.sampled_from("order orders paid unpaid over under state city <year> not".split()), max_size=8
).map(tuple)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("arrive", "arriving"),
        ("category", "categories"),
        ("electricity", "electrcity"),
        ("customer", "cutsomer"),
        ("shipped", "shipping"),
        ("teach", "teacher"),
    ],
)
def test_forms_and_typing_errors_of_a_word_are_alike(left: str, right: str) -> None:
    assert is_alike(left, right)
    assert is_alike(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("over", "under"),
        ("more", "most"),
        ("cost", "most"),
        ("paid", "said"),
        ("state", "city"),
        ("2024", "2025"),
        ("<year>", "<years>"),
        ("first", "fist"),
    ],
)
def test_other_words_are_not_alike(left: str, right: str) -> None:
    assert not is_alike(left, right)


@settings(max_examples=100)
@given(st.text(alphabet="abcdefgilnorstuy", min_size=1, max_size=12))
def test_a_stem_is_never_empty(word: str) -> None:
    assert stem(word)


def test_every_word_has_one_class() -> None:
    said = {word: word_class(word) for word in "<city> not by the 2024 sales".split()}
    assert said == {
        "<city>": "slot", "not": "meaning", "by": "role", "the": "light", "2024": "digit",
        "sales": "open",
    }  # fmt: skip


def test_a_difference_tells_words_of_either_side_forms_and_order_apart() -> None:
    found = compare(("arriving", "flight", "<city>", "cheap"), ("flight", "arrives", "<city>"))
    assert (found.extra, found.missing, found.alike, found.moved) == (("cheap",), (), 1, 0)
    assert compare(("state", "capital"), ("capital", "state")).moved == 1


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ("parcel at <day> to <city>", "parcel to <city> until <day>"),
        ("fare for <city> to <city>", "fare to <city> with <city>"),
        ("case after <year> by <judge>", "case before <year> by <judge>"),
    ],
)
def test_a_preposition_exchanged_beside_values_moves_nothing(mine: str, its: str) -> None:
    found = compare(tuple(mine.split()), tuple(its.split()))
    assert (len(found.extra), len(found.missing), found.moved) == (1, 1, 0)


def test_values_that_change_places_have_moved() -> None:
    assert compare(("<city>", "to", "<year>", "in"), ("<year>", "to", "<city>", "at")).moved


@settings(max_examples=100)
@given(WORDS, WORDS)
def test_a_comparison_reads_the_same_from_both_sides(
    mine: tuple[str, ...], its: tuple[str, ...]
) -> None:
    there, back = compare(mine, its), compare(its, mine)
    assert sorted(there.extra) == sorted(back.missing)
    assert (there.alike, there.moved) == (back.alike, back.moved)
    assert len(mine) - len(there.extra) == len(its) - len(there.missing)


@settings(max_examples=100)
@given(WORDS)
def test_words_do_not_differ_from_themselves(words: tuple[str, ...]) -> None:
    found = compare(words, words)
    assert not found.words
    assert not found.moved


def longest_common(mine: tuple[str, ...], its: tuple[str, ...]) -> int:
    """Return the length of the longest common subsequence as its definition has it."""
    if not mine or not its:
        return 0
    if mine[0] == its[0]:
        return 1 + longest_common(mine[1:], its[1:])
    return max(longest_common(mine[1:], its), longest_common(mine, its[1:]))


PLAIN = st.lists(st.sampled_from("to from by <year> <city>".split()), max_size=7).map(tuple)


@settings(max_examples=200)
@given(PLAIN, PLAIN)
def test_what_differs_is_what_one_side_has_too_often_and_what_left_its_place(
    mine: tuple[str, ...], its: tuple[str, ...]
) -> None:
    found = compare(mine, its)
    assert Counter(found.extra) == Counter(mine) - Counter(its)
    assert Counter(found.missing) == Counter(its) - Counter(mine)
    shared = len(mine) - len(found.extra)
    if not found.words:
        assert found.moved == shared - longest_common(mine, its)
    assert 0 <= found.moved <= max(0, shared - 1)


@given(st.text("abeilnrsty", min_size=1, max_size=10), st.text("abeilnrsty", max_size=3))
def test_words_that_are_alike_begin_with_one_letter(word: str, ending: str) -> None:
    for other in (word + ending, word[1:] + ending, "s" + word):
        if other and is_alike(word, other):
            assert word[0] == other[0]


@pytest.mark.parametrize(
    ("mine", "its", "turned"),
    [
        ("depot each truck", "truck each depot", True),
        ("customer invoice", "invoice customer", True),
        ("state that border country", "country that border state", True),
        ("by region sale", "sale by region", False),
        ("order late by month", "by month order late", False),
        ("sale by region", "sale by region", False),
    ],
)
def test_an_order_that_joins_other_words_is_told_from_a_phrase_that_stands_elsewhere(
    mine: str, its: str, turned: bool
) -> None:
    assert compare(tuple(mine.split()), tuple(its.split())).turned is turned
    assert compare(tuple(its.split()), tuple(mine.split())).turned is turned


def test_long_prompts_that_differ_throughout_are_compared_in_no_time_of_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alike, "is_alike", None)  # no pair of words is looked at
    mine = tuple(f"word{number}ing" for number in range(3_000))
    its = tuple(f"word{number}ed" for number in range(3_000))
    difference = compare(mine, its)
    assert (len(difference.extra), len(difference.missing)) == (3_000, 3_000)


def test_words_that_are_said_again_are_taken_out_as_often_as_they_are_there() -> None:
    difference = compare(("a", "b", "a", "c", "a"), ("a", "c", "d"))
    assert (difference.extra, difference.missing) == (("b", "a", "a"), ("d",))
