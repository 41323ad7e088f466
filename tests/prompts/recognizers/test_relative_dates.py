"""Relative words mean other days on other days, by each rule that people follow."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.prompts.mentions import find_mentions
from semcache.prompts.recognizers.relative_dates import forms, readings, reread, ways

FRIDAY = date(2026, 11, 20)
WORDS = [
    "yesterday", "tomorrow", "last week", "this month", "next quarter", "last year", "past year",
    "a month ago", "next Tuesday", "Tuesday", "last Friday", "Friday of next week", "March 2nd",
    "the 5th of this month", "last March", "YTD", "this Sunday", "February 29th",
]  # fmt: skip
days = st.dates(date(1990, 1, 1), date(2090, 12, 31))


def spans(words: str, today: date = FRIDAY) -> set[tuple[str, str]]:
    return {(d.first.isoformat(), d.last.isoformat()) for d in readings(words, today).values()}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("yesterday", {("2026-11-19", "2026-11-19")}),
        ("day after tomorrow", {("2026-11-22", "2026-11-22")}),
        ("last month", {("2026-10-01", "2026-10-31"), ("2026-10-20", "2026-11-20")}),
        ("this quarter", {("2026-10-01", "2026-12-31"), ("2026-10-01", "2026-11-20")}),
        ("last year", {("2025-01-01", "2025-12-31"), ("2025-11-20", "2026-11-20")}),
        ("ytd", {("2026-01-01", "2026-11-20")}),
        ("Tuesday", {("2026-11-24", "2026-11-24"), ("2026-11-17", "2026-11-17")}),
        ("March 2nd", {("2026-03-02", "2026-03-02"), ("2027-03-02", "2027-03-02")}),
        ("last March", {("2026-03-01", "2026-03-31")}),
        ("30th of February", set()),
        ("the other day", set()),
    ],
)
def test_words_have_a_reading_by_each_rule(words: str, wanted: set[tuple[str, str]]) -> None:
    assert spans(words) == wanted


@settings(max_examples=100)
@given(st.sampled_from(WORDS), days)
def test_a_reading_is_a_span_of_days_and_has_the_forms_that_plans_write(
    words: str, today: date
) -> None:
    for span in readings(words, today).values():
        assert span.first <= span.last
        assert abs(span.first - today) < timedelta(days=800)
        known = forms(span)
        assert known["first"] == span.first.isoformat()
        assert str(known["ends"]).startswith(span.last.isoformat())


@settings(max_examples=100)
@given(st.sampled_from(WORDS), days, days)
def test_what_an_example_shows_is_done_again_or_refused_on_another_day(
    words: str, stored: date, today: date
) -> None:
    (mention,) = find_mentions(f"sales on {words}")
    for rule, span in readings(words, stored).items():
        value = span.first.isoformat()
        again = reread(mention, ways(words, value, stored), today)
        there = readings(words, today).get(rule)
        assert again is None or there is None or again == there.first.isoformat()
        assert reread(mention, ways(words, value, stored), stored) == value


def test_two_rules_that_agreed_by_chance_are_not_followed_where_they_differ() -> None:
    (mention,) = find_mentions("meetings next Tuesday")
    known = ways("next Tuesday", "2026-11-24", FRIDAY)
    assert reread(mention, known, date(2026, 11, 27)) == "2026-12-01"
    assert reread(mention, known, date(2026, 11, 23)) is None  # tomorrow, or in eight days?


def test_other_words_are_read_as_the_example_shows() -> None:
    known = ways("last month", "2026-10-31", FRIDAY)
    (this_year,) = find_mentions("sales of this year")
    assert reread(this_year, known, FRIDAY) == "2026-12-31"
    (march,) = find_mentions("sales of 2024-02-28")
    assert reread(march, known, FRIDAY) == "2024-02-28"
