import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.words.classes import is_mistyped, is_other_thing, stem


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("trained", "training"),
        ("builder", "building"),
        ("expired", "expire"),
        ("print", "printer"),
        ("depart", "department"),
    ],
)
def test_a_form_that_may_name_another_thing_is_told(left: str, right: str) -> None:
    assert is_other_thing(left, right)
    assert is_other_thing(right, left)


@pytest.mark.parametrize(("left", "right"), [("arrive", "arriving"), ("parcel", "parcels")])
def test_number_and_the_running_form_of_a_verb_name_the_same(left: str, right: str) -> None:
    assert not is_other_thing(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("electricity", "electrcity"),
        ("temperature", "temperatuer"),
        ("inspection", "inspecion"),
        ("customer", "cutsomer"),
        ("warehouse", "warehpuse"),
    ],
)
def test_one_slip_in_a_long_word_is_a_typing_error(left: str, right: str) -> None:
    assert is_mistyped(left, right)
    assert is_mistyped(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("county", "country"),
        ("trial", "trail"),
        ("stationary", "stationery"),
        ("interviewer", "interviewee"),
        ("employer", "employee"),
        ("collision", "collusion"),
        ("affecting", "effecting"),
        ("principal", "principle"),
    ],
)
def test_neighbors_that_are_words_of_their_own_are_no_typing_errors(left: str, right: str) -> None:
    assert not is_mistyped(left, right)
    assert not is_mistyped(right, left)


@settings(max_examples=100)
@given(st.text(alphabet="abcdefgilnorstuy", min_size=1, max_size=12))
def test_a_stem_is_never_empty(word: str) -> None:
    assert stem(word)
