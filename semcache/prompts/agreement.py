"""Agreement: whether words of a prompt may be how a given value was said."""

import re
from collections.abc import Callable
from datetime import date
from typing import TypeAlias

from semcache.canonical import Json, same
from semcache.prompts.mentions import Mention
from semcache.prompts.recognizers.ambiguity import possible_values
from semcache.prompts.recognizers.numerals import DAYS, MONTHS

Agreement: TypeAlias = Callable[[Json, Mention], bool]
"""Whether a mention may say a value."""

_COUNTED = frozenset({"number", "year", "ordinal", "money", "percent"})
_DATED = frozenset({"date", "datetime", "month", "weekday", "ordinal"})
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9])")
_RUN = re.compile(r"[0-9]+|[^\W\d_]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?%?")


def agrees(value: Json, mention: Mention) -> bool:
    """Return whether `mention` says `value`: "3.8" says "3.80", "the 2nd of March" 2019-03-02.

    The words need not say all of it: a day without its year agrees with every year.
    """
    may_be = possible_values(mention.kind, mention.text, mention.value)
    if any(same(value, each) for each in (mention.value, *may_be) if each is not None):
        return True
    if mention.kind in _COUNTED and _as_number(mention.value) is not None:
        if _as_number(value) == _as_number(mention.value):
            return True
    elif isinstance(value, str) and value.casefold() == mention.text.casefold():
        return True
    day = _as_day(value)
    return day is not None and mention.kind in _DATED and _says_day(mention, day)


def may_agree(value: Json, mention: Mention) -> bool:
    """Return whether `mention` may say `value`: a date, and words for one such as "tomorrow"."""
    return _as_day(value) is not None and mention.relative and mention.kind in _DATED


def _as_number(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    spelled = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
    return float(str(value).strip().rstrip("%")) if spelled else None


def _as_day(value: Json) -> date | None:
    match = _DAY.match(value) if isinstance(value, str) else None
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _says_day(mention: Mention, day: date) -> bool:
    """Return whether numbers, month and weekday that the words name are those of `day`."""
    if mention.kind == "ordinal":
        return mention.value == day.day
    words = _RUN.findall(mention.text.casefold())
    numbers = [int(word) for word in words if word.isdecimal()]
    months = {MONTHS[word] for word in words if word in MONTHS}
    weekdays = {DAYS[word] for word in words if word in DAYS}
    left = [day.year, day.month, day.day, day.year % 100]
    for number in numbers:
        if number not in left:
            return False
        left.remove(number)
    named = bool(weekdays) or (bool(numbers) and day.day not in left)
    return named and months <= {day.month} and weekdays <= {day.strftime("%A")}
