"""Derivation: values that follow from a value by a listed rule, so that they change with it.

A plan for 2024 that has `until="2025-01-01"` holds the next year's first day: with another year the
constant would be stale. The period of a year or a month has codecs, which bind it. What else may
follow, by the rules below, pins the value that it may follow from.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from semcache.binding.periods import PartialDate, partial_date
from semcache.canonical import Json

FACTORS = (2, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1000, 3600, 86400)
"""What a number may be multiplied with or divided by: units of time, of money, of measures."""
DAYS = (1, 6, 7, 13, 14, 27, 28, 29, 30, 31, 89, 90, 364, 365, 366)
"""Days between the ends of usual periods, with or without the last day."""

_OF_YEARS = (5, 9, 10, 99, 100)  # to the end of a decade or century, with or without the last
_YEARS = (1000, 2999)

_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,20})?")
_DATES = re.compile(r"(?<!\d)([12]\d{3})(?:([-/.]?)(0[1-9]|1[0-2])(?:\2([0-3]\d))?)?(?!\d)")
_NUMBERS = re.compile(r"(?<![\d.,])(?:(?<!\w)-)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)")
_SHORT_YEARS = re.compile(r"(?<![\d:.,])\d\d(?![\d:.,])")
_DAYS = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d")
_WORDS = re.compile(r"[^\W_]+")
_NAME_WORDS = 4  # what has more is prose, and its first word stands in many texts
_RUNS = re.compile(r"\d+|[^\W\d_]+")


def derives(value: Json, constant: Json, *, words: bool = True) -> bool:
    """Return whether `constant`, a value or text of a plan, may follow from `value`.

    Not told: that it is the same value, nor 0 or 1, which are there by chance. `words`: whether
    the words of a text may come from those of the value.
    """
    if isinstance(value, bool) or isinstance(constant, bool):
        return False
    return (
        _steps(_number(value), constant)
        or _in_time(str(value), str(constant))
        or (words and isinstance(value, str) and _is_piece(value, str(constant)))
    )


def derived_pairs(values: Sequence[Json], constants: Iterable[Json]) -> set[int]:
    """Return the places of values from two of which a number of a plan may follow.

    From two numbers follow their sum, their product and what is between; from two days how many
    are between, with or without the last one. Not told: 0 and 1. Cost: values times constants.
    """
    told = [None if isinstance(each, bool) else _number(each) for each in constants]
    numbers = {number for number in told if number is not None and number not in {0, 1}}
    apart = {abs(number) + step for number in numbers for step in (-1, 0, 1)}
    terms = [None if isinstance(each, bool) else _number(each) for each in values]

    def other_terms(one: Decimal) -> Iterator[Decimal]:
        for number in numbers:
            yield from (number - one, one + number)
            if one and number / one * one == number:
                yield number / one

    return _pairs(
        [_days(each) for each in values], lambda day: (day + by for by in apart)
    ) | _pairs([None if term in {0, 1} else term for term in terms], other_terms)


def _pairs(
    values: Sequence[Decimal | None], others: Callable[[Decimal], Iterable[Decimal]]
) -> set[int]:
    """Return the places of values that have one of `others` of theirs beside them."""
    places: defaultdict[Decimal, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        if value is not None:
            places[value].append(place)
    found: set[int] = set()
    for value, at in places.items():
        for other in others(value):
            if other in places and (other != value or len(at) > 1):
                found.update(at, places[other])
    return found


def _days(value: Json) -> Decimal | None:
    time = partial_date(value) if isinstance(value, str) else None
    if time is None or time.day is None:
        return None
    try:
        return Decimal(date(time.year, time.month or 1, time.day).toordinal())
    except ValueError:
        return None


# Numbers -------------------------------------------------------------------------------------


def _number(value: Json) -> Decimal | None:
    if isinstance(value, int | float):
        return Decimal(str(value))
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        return Decimal(value.strip())
    except InvalidOperation:
        return None


def _steps(number: Decimal | None, constant: Json) -> bool:
    """Return whether a number, or a longer number in a text, is `number` a step further."""
    if number is None:
        return False
    whole = _number(constant)
    if whole is not None:
        return _is_step(number, whole, exact=not isinstance(constant, str))
    if not isinstance(constant, str):
        return False
    return any(_is_step_in_text(number, raw) for raw in _NUMBERS.findall(constant))


def _is_step_in_text(number: Decimal, raw: str) -> bool:
    other = Decimal(raw.replace(",", ""))
    if len(raw.strip("-0.")) > 2:
        return _is_step(number, other, exact=False)
    # A short number in a text is there for many reasons, unless it is this one in other digits.
    return number == other and raw != str(number)


def _is_step(number: Decimal, other: Decimal, *, exact: bool) -> bool:
    if other in {0, 1} or abs(number) == 0:
        return False
    if number == other:
        return not exact  # the same number spelled in another way: "03", "2,024"
    if abs(number - other) == 1 or number == -other:
        return True
    if abs(number - other) in _OF_YEARS and _YEARS[0] <= min(number, other):
        return max(number, other) <= _YEARS[1]
    if abs(number) == 1:
        return False
    ratio = max(abs(number), abs(other)) / min(abs(number), abs(other))
    return ratio in FACTORS


# Time ----------------------------------------------------------------------------------------


def _in_time(value: str, constant: str) -> bool:
    """Return whether a constant is a part of the time that `value` is, or near it."""
    time = partial_date(value)
    if time is None:
        return False
    if time.month is not None and _is_part(time, constant):
        return True
    if any(_near(time, PartialDate.of(*found)) for found in _found(constant)):
        return True
    return _is_short_year(time.year, constant)


def _is_short_year(year: int, constant: str) -> bool:
    """Return whether a name such as `FY24` or `2023/24` has a year, or one beside it, in short."""
    if not (1900 <= year < 2100 and any(c.isalpha() or c in "'/" for c in constant)):
        return False
    near = {(year + step) % 100 for step in (-1, 0, 1)}
    return any(int(digits) in near for digits in _SHORT_YEARS.findall(_DAYS.sub(" ", constant)))


def _is_part(time: PartialDate, constant: str) -> bool:
    parts = {time.month, time.day, ((time.month or 1) + 2) // 3, f"Q{((time.month or 1) + 2) // 3}"}
    spelled = {str(part) for part in parts} | {f"{part:0>2}" for part in parts if part}
    return constant != "1" and constant in spelled


def _found(constant: str) -> Iterator[tuple[str, str, str]]:
    for year, _, month, day in _DATES.findall(constant):
        yield year, month, day


def _near(time: PartialDate, other: PartialDate) -> bool:
    if time.year == other.year:
        return True
    if abs(time.year - other.year) == 1 and (time.day is None or other.day is None):
        return True
    if time.day is None or other.day is None:
        return False
    if (time.month, time.day) == (other.month, other.day) and abs(time.year - other.year) == 1:
        return True
    return _apart(time, other) in DAYS or (other.month, other.day) in {(1, 1), (12, 31)}


def _apart(time: PartialDate, other: PartialDate) -> int:
    try:
        left, right = (date(t.year, t.month or 1, t.day or 1) for t in (time, other))
    except ValueError:
        return 0
    return abs((left - right).days)


# Words ---------------------------------------------------------------------------------------


def _is_piece(value: str, constant: str) -> bool:
    """Return whether a constant is the beginning or end of a code or name, or says such a word."""
    pieces = list(_pieces(_flat(value)))
    if _flat(constant).casefold() in {piece.casefold() for piece in pieces}:
        return True
    # In a longer text plain words stand for other reasons; names and codes hardly do.
    names = {piece for piece in pieces if not piece.islower() and not piece.isdigit()}
    words = set(_flat(constant).split())
    if "@" in constant:
        names, words = {name.casefold() for name in names}, {word.casefold() for word in words}
    return any(len(name) > 2 and name in words for name in names)


def _flat(text: str) -> str:
    return " ".join(_WORDS.findall(text))


def _pieces(text: str) -> Iterator[str]:
    """Yield what `text` begins and ends with, cut between words, letters and digits."""
    if len(text.split()) > _NAME_WORDS:
        return
    for left, right in pairwise(_RUNS.finditer(text)):
        for piece in (text[: left.end()], text[right.start() :]):
            if len(piece) > 1:
                yield piece
