import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.binding.codecs import (
    CODECS,
    alike,
    codec_between,
    deterministic,
    read,
    wording,
)
from semcache.canonical import Json, same
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention, find_mentions


@pytest.mark.parametrize(
    ("codec", "value", "encoded"),
    [
        ("integer", "2024", 2024),
        ("integer", 5.0, 5),
        ("number", "2.50", 2.5),
        ("number", "-7", -7),
        ("text", 2024, "2024"),
        ("text", 5.0, "5"),
        ("text", "01234", "01234"),
        ("title", "new york", "New York"),
        ("title", "McDonald", "McDonald"),
        ("inline", True, "true"),
    ],
)
def test_a_codec_gives_the_value_as_the_plan_has_it(codec: str, value: Json, encoded: Json) -> None:
    got = CODECS[codec](value)
    assert got == encoded
    assert type(got) is type(encoded)


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        ("integer", "01234"),
        ("integer", "2.5"),
        ("integer", True),
        ("number", "1e3"),
        ("number", "+5"),
        ("number", "٣"),
        ("number", "0.12345678901234567890"),
        ("text", True),
        ("text", None),
        ("text", 1e300),
        ("boolean", "true"),
        ("array", {"a": 1}),
        ("object", [1]),
        ("title", "o'neill's"),
        ("lower", 5),
    ],
)
def test_a_codec_refuses_what_would_lose_something(codec: str, value: Json) -> None:
    with pytest.raises(BindingError) as caught:
        CODECS[codec](value)
    assert caught.value.reason == "type"


@given(
    st.integers()
    | st.text(max_size=12)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
)
@settings(max_examples=100)
def test_every_value_has_a_codec_to_itself(value: Json) -> None:
    codec = codec_between(value, value)
    assert codec is not None
    assert alike(value, value)


@given(st.integers(-(10**30), 10**30))
@settings(max_examples=100)
def test_numbers_and_their_digits_convert_both_ways(number: int) -> None:
    assert codec_between(str(number), number) == "number"
    if abs(number) < 10**15:
        assert codec_between(number, str(number)) == "text"


@pytest.mark.parametrize(
    ("codec", "value"),
    [("day", "2024-03-11"), ("month", "2024-03"), ("boolean", True), ("array", [1])],
)
def test_a_value_in_the_form_of_the_plan_stays_as_it_is(codec: str, value: Json) -> None:
    assert CODECS[codec](value) == value


def test_a_month_is_not_a_day() -> None:
    with pytest.raises(BindingError):
        CODECS["month"]("2024-03-11")


def test_a_number_without_a_plain_spelling_is_equal_to_itself_only() -> None:
    assert codec_between(1e300, 1e300) == "number"
    assert not alike(1e300, "1e300")


# Wordings ────────────────────────────────────────────────────────────────────────────────────────


def mention(text: str) -> Mention:
    """Return the mention that `text` is in a prompt of nothing else."""
    found = [m for m in find_mentions(text) if m.text == text]
    return found[0] if found else Mention(0, len(text), text, "value", None, "aligned")


def test_no_words_carry_a_value_that_is_not_said() -> None:
    assert wording("anything", None) == "absent"


def test_words_that_no_recognizer_reads_are_no_number() -> None:
    with pytest.raises(BindingError, match="nothing is read"):
        read("recognized", mention("Shelbyville"), source="five")


@settings(max_examples=100)
@given(st.from_regex(r"[A-Za-z]{1,8}|[0-9]{1,6}|[0-9]{1,3}\.[0-9]", fullmatch=True))
def test_words_read_as_they_were_stored_give_the_value_that_was_stored(words: str) -> None:
    said = mention(words)
    spelled = words if said.value is None else str(said.value)
    for value in (words, words.upper(), words.title(), said.value, spelled, f"{words}?"):
        how = wording(value, said)
        if deterministic(how):
            assert same(read(how, said, source=words), value)
        else:
            with pytest.raises(BindingError):
                read(how, said, source=words)
