import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, plain
from semcache.prompts.mentions import OPEN_KINDS, find_mentions, recognized


def read(text: str) -> list[tuple[str, str, Json]]:
    return [(m.text, m.kind, m.value) for m in find_mentions(text)]


@pytest.mark.parametrize(
    ("text", "words", "kind", "value"),
    [
        ("top 5 customers", "5", "number", 5),
        ("top five customers", "five", "number", 5),
        ("twenty-three orders", "twenty-three", "number", 23),
        ("a hundred and fifty orders", "a hundred and fifty", "number", 150),
        ("two million users", "two million", "number", 2_000_000),
        ("half a dozen eggs", "half a dozen", "number", 6),
        ("two dozen eggs", "two dozen", "number", 24),
        ("three thousand two hundred units", "three thousand two hundred", "number", 3200),
        ("zero stock", "zero", "number", 0),
        ("1,234.50 units", "1,234.50", "number", 1234.5),
        ("about .5 of it", ".5", "number", 0.5),
        ("-5 degrees", "-5", "number", -5),
        ("+5 degrees", "5", "number", 5),
        ("5 m of rope", "5", "number", 5),
        ("10k users", "10k", "number", "10k"),
        ("$10k", "$10k", "money", 10_000),
        ("10m", "10m", "number", "10m"),
        ("release 1.10", "1.10", "number", "1.10"),
        ("1.250 EUR", "1.250 EUR", "money_eur", "1.250"),
        ("1,250 EUR", "1,250 EUR", "money_eur", "1,250"),
        ("$1,250", "$1,250", "money", 1250),
        ("at 7:30:45", "7:30:45", "time", "07:30:45"),
        ("3.5 million", "3.5 million", "number", 3_500_000),
        ("zip 01234", "01234", "number", "01234"),
        ("500ml bottles", "500", "number", 500),
        ("a 30-minute call", "30", "number", 30),
        ("top-10 list", "10", "number", 10),
        ("the 3rd order", "3rd", "ordinal", 3),
        ("third highest", "third", "ordinal", 3),
        ("the twenty-first order", "twenty-first", "ordinal", 21),
        ("the second order", "second", "ordinal", 2),
        ("the first quarter of growth", "first", "ordinal", 1),
        ("20% off", "20%", "percent", 20),
        ("fifteen percent off", "fifteen percent", "percent", 15),
        ("over $500", "$500", "money", 500),
        ("over 500 dollars", "500 dollars", "money", 500),
        ("five hundred dollars", "five hundred dollars", "money", 500),
        ("-$5 fee", "-$5", "money", -5),
        ("over \u20ac1.5k", "\u20ac1.5k", "money_eur", 1500),
        ("over 20 pounds", "20 pounds", "money_gbp", 20),
        ("USD 500 or so", "USD 500", "money", 500),
        ("at 11:30", "11:30", "time", "11:30"),
        ("at 5pm", "5pm", "time", "17:00"),
        ("at 12 a.m. sharp", "12 a.m.", "time", "00:00"),
        ("at half past 11", "half past 11", "time", "11:30"),
        ("at quarter past ten", "quarter past ten", "time", "10:15"),
        ("at quarter to one", "quarter to one", "time", "00:45"),
        ("by noon", "noon", "time", "12:00"),
        ("by midnight", "midnight", "time", "00:00"),
        ("at 5 o'clock", "5 o'clock", "time", "05:00"),
        ("on 2024-03-11", "2024-03-11", "date", "2024-03-11"),
        ("on March 11, 2024", "March 11, 2024", "date", "2024-03-11"),
        ("the 15th of March 2024", "15th of March 2024", "date", "2024-03-15"),
        ("on the twelfth of may 2024", "twelfth of may 2024", "date", "2024-05-12"),
        ("on 25/12/2024", "25/12/2024", "date", "2024-12-25"),
        ("on 12/25/2024", "12/25/2024", "date", "2024-12-25"),
        ("on 11/03/2024", "11/03/2024", "date", "11/03/2024"),
        ("on 31/02/2024", "31/02/2024", "date", "31/02/2024"),
        ("on February 31, 2024", "February 31, 2024", "date", "February 31, 2024"),
        ("in 3/2024", "3/2024", "date", "2024-03"),
        ("at 2024-03-11T10:00:00Z", "2024-03-11T10:00:00Z", "datetime", "2024-03-11T10:00:00Z"),
        ("in Q3", "Q3", "quarter", 3),
        ("email bob@acme.co.uk.", "bob@acme.co.uk", "email", "bob@acme.co.uk"),
        ("see https://x.y/z?q=1.", "https://x.y/z?q=1", "url", "https://x.y/z?q=1"),
        ("cancel ORD456", "ORD456", "code", "ORD456"),
        ("cancel ord456", "ord456", "code", "ord456"),
        ("cancel #1234", "#1234", "code", "#1234"),
        ("cancel SKU-123", "SKU-123", "code", "SKU-123"),
        ("cancel A12-B", "A12-B", "code", "A12-B"),
        ("seat 14C please", "14C", "code", "14C"),
        ("call 555-123-4567", "555-123-4567", "code", "555-123-4567"),
        ("group by job_id", "job_id", "identifier", "job_id"),
        ("group by JOB_ID", "JOB_ID", "identifier", "JOB_ID"),
        ("cancel ORD_456", "ORD_456", "code", "ORD_456"),
        ("open src/main.py", "src/main.py", "identifier", "src/main.py"),
        ("issues of mandubian/ccos", "mandubian/ccos", "identifier", "mandubian/ccos"),
        ('find "red shoes"', '"red shoes"', "quoted", "red shoes"),
        ("find \u201cred shoes\u201d", "\u201cred shoes\u201d", "quoted", "red shoes"),
        ("say 'You haven't replied' now", "'You haven't replied'", "quoted", "You haven't replied"),
        ("say 'see 'A' and B'", "'see 'A' and B'", "quoted", "see 'A' and B"),
    ],
)
def test_one_value_is_found_with_its_kind_and_value(
    text: str, words: str, kind: str, value: Json
) -> None:
    assert read(text) == [(words, kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "you may march home", "one way flights", "one of them", "their first name",
        "a third of customers", "and/or his/her", "b2b sales", "mp3 files", "customers' orders",
        "Sofia's plan", "wait a second", "rock 'n' roll", "mon ami and the sun",
        "men and women", '""', "' '", "next Year-End sale",
    ],
)  # fmt: skip
def test_words_that_only_resemble_values_are_left_alone(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("sales in 2024", ["year"]),
        ("sales between 2022 and 2023", ["year", "year"]),
        ("sales from 2019 to 2021", ["year", "year"]),
        ("sales since 2019, 2020 or 2021", ["year", "year", "year"]),
        ("sales in the summer of 2024", ["year"]),
        ("in the 2024 season", ["year"]),
        ("March 2024 sales", ["month", "year"]),
        ("salaries between 2000 and 9000", ["number", "number"]),
        ("more than 2000 orders", ["number"]),
        ("trains before 1630", ["number"]),
        ("in 2,024 shops", ["number"]),
    ],
)
def test_four_digits_are_a_year_only_after_a_word_of_time(text: str, kinds: list[str]) -> None:
    assert [kind for _, kind, _ in read(text)] == kinds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what sold yesterday", "yesterday"),
        ("sales last year", "last year"),
        ("meet next Tuesday", "next Tuesday"),
        ("sales this month", "this month"),
        ("done in 3 days", "3"),
        ("the last 30 days", "30"),
        ("2 weeks ago", "2"),
        ("a week ago", "a week ago"),
        ("on March 11th", "March 11th"),
        ("on the 11th of this month", "11th of this month"),
        ("on Friday", "Friday"),
        ("in March", "March"),
    ],
)
def test_what_depends_on_the_day_of_asking_is_relative(text: str, words: str) -> None:
    assert [(m.text, m.relative) for m in find_mentions(text)] == [(words, True)]


@pytest.mark.parametrize(
    "text", ["in March 2024", "on Fridays", "on 2024-03-11", "30 days", "2024"]
)
def test_what_is_the_same_on_any_day_is_not_relative(text: str) -> None:
    assert not any(m.relative for m in find_mentions(text))


def test_a_range_is_two_values() -> None:
    assert read("ages 10-20") == [("10", "number", 10), ("20", "number", 20)]


def test_digits_too_many_for_a_number_stay_text() -> None:
    assert read("9" * 5000) == [("9" * 5000, "number", "9" * 5000)]


_PIECES = st.sampled_from(
    [
        "in", "2024", "March", "11", ",", "$500", "5pm", "3rd", "five", "%", "'x'", '"', "-", "/",
        "#", "ORD456", "a_b", "Q3", "1,000", ".5", "and", "to", "the", "last", "days", "yesterday",
        "11/03/2024", "2024-03-11", "half", "past", "@", "bob@x.io", "https://x", "twenty", "one",
    ]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(_PIECES).map(" ".join), st.lists(_PIECES).map("".join)))
@settings(max_examples=100)
def test_whatever_is_found_is_json_of_a_known_kind_and_a_true_part_of_the_text(text: str) -> None:
    for found in recognized(text):
        assert 0 <= found.start < found.end <= len(text)
        assert found.kind in OPEN_KINDS
        assert plain(found.value) == found.value
