"""Relative: the days that words such as "last month" or "next Tuesday" mean on a given day.

People do not agree on what such words mean: is next Tuesday the coming one, or that of next week?
So each expression has a reading by every rule in use, and which rule a planner follows is told by
example: a value that it wrote on a known day for known words. What the examples leave open is left
open; then nothing is read.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple, TypeAlias

from semcache.canonical import Json, same
from semcache.prompts.mentions import Mention
from semcache.prompts.recognizers.recognition import DAYS, MONTH_NAMES, MONTHS, nth


class Days(NamedTuple):
    """Days from the first to the last, both included."""

    first: date
    last: date


Readings: TypeAlias = Mapping[str, Days]
"""Rule → the days that it makes of some words."""

_DAY = timedelta(days=1)
_SIDES = {
    "last": -1, "past": -1, "previous": -1, "prior": -1, "this": 0, "current": 0, "next": 1,
    "coming": 1, "upcoming": 1,
}  # fmt: skip
_RUN = re.compile(r"[a-z]+|\d+")
_FIXED = {
    "day before yesterday": -2, "yesterday": -1, "today": 0, "later today": 0, "tonight": 0,
    "this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1,
    "day after tomorrow": 2,
}  # fmt: skip
_TO_DATE = {"ytd": "year", "qtd": "quarter", "mtd": "month", "year to date": "year"}
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ISO_MONTH = re.compile(r"\d{4}-\d\d")


def readings(words: str, today: date) -> Readings:
    """Return what `words` mean on `today` by each rule in use; empty for words not understood."""
    flat = " ".join(_RUN.findall(words.lower()))
    parts = flat.split()
    try:
        return next((found for way in _WAYS if (found := way(flat, parts, today))), {})
    except (ValueError, OverflowError):  # the 30th of February; a year beyond 9999
        return {}


def _fixed(flat: str, parts: list[str], today: date) -> Readings:
    del parts
    if flat in _FIXED:
        day = today + _FIXED[flat] * _DAY
        return {"day": Days(day, day)}
    if flat in _TO_DATE:
        return {"to_date": Days(_period(today, _TO_DATE[flat], 0).first, today)}
    return {}


def _unit(flat: str, parts: list[str], today: date) -> Readings:
    del flat
    if len(parts) == 3 and parts[0] in {"a", "an"} and parts[2] == "ago":
        return _ago(parts[1], today)
    if len(parts) != 2 or parts[0] not in _SIDES or parts[1] not in _UNITS:
        return {}
    side, unit = _SIDES[parts[0]], parts[1]
    if unit == "week":
        found = {f"week_{begins}": _week(today, begins, side) for begins in _WEEKS}
    else:
        found = {"calendar": _period(today, unit, side)}
    if not side:
        return found | {f"to_date_{rule}": Days(d.first, today) for rule, d in found.items()}
    other = _moved(today, unit, side)
    return found | {"rolling": Days(min(today, other), max(today, other))}


def _ago(unit: str, today: date) -> Readings:
    if unit not in {*_UNITS, "day"}:
        return {}
    day = _moved(today, unit, -1)
    return {"ago": Days(day, day)}


def _weekday(flat: str, parts: list[str], today: date) -> Readings:
    del flat
    words = [word for word in parts if word != "of"]
    if words and words[-1] == "week" and len(words) == 3 and words[0] in DAYS:
        side = _SIDES.get(words[1])
        return {} if side is None else _in_weeks(DAYS[words[0]], today, side)
    if not words or words[-1] not in DAYS or len(words) > 2:
        return {}
    name = DAYS[words[-1]]
    number = _NUMBERS[name]
    ahead = (number - today.weekday()) % 7
    coming = {"coming": today + (ahead or 7) * _DAY, "from_today": today + ahead * _DAY}
    behind = (today.weekday() - number) % 7
    past = {"past": today - (behind or 7) * _DAY, "up_to_today": today - behind * _DAY}
    if len(words) == 1:
        return _single(coming | past)
    side = _SIDES.get(words[0])
    if side is None:
        return {}
    near = {-1: past, 0: coming, 1: {"coming": coming["coming"]}}[side]
    return {**_single(near), **_in_weeks(name, today, side)}


def _in_weeks(name: str, today: date, side: int) -> Readings:
    found = {}
    for begins in _WEEKS:
        week = _week(today, begins, side)
        found[f"week_{begins}"] = next(
            day
            for day in (week.first + n * _DAY for n in range(7))
            if day.weekday() == _NUMBERS[name]
        )
    return _single(found)


def _single(days: Mapping[str, date]) -> dict[str, Days]:
    return {rule: Days(day, day) for rule, day in days.items()}


def _in_month(flat: str, parts: list[str], today: date) -> Readings:
    """Read "March 2nd", "the second of March", "March", "last March", "the 5th of this month"."""
    del flat
    words = [word for word in parts if word not in {"of", "the", "st", "nd", "rd", "th"}]
    if len(words) >= 3 and words[-1] == "month" and words[-2] in _SIDES:
        month = _period(today, "month", _SIDES[words[-2]]).first
        day = month.replace(day=_number(words[:-2]))
        return {"calendar": Days(day, day)}
    named = [word for word in words if word in MONTHS]
    if len(named) != 1:
        return {}
    rest = [word for word in words if word != named[0]]
    side = _SIDES.get(rest[0]) if len(rest) == 1 else None
    number = _number(rest) if rest and side is None else None
    return _yearless(today, MONTHS[named[0]], number, side)


def _number(words: list[str]) -> int:
    if len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    try:
        return nth(" ".join(words))
    except KeyError as error:
        raise ValueError(f"{words!r} is no day of a month") from error


def _yearless(today: date, month: int, day: int | None, side: int | None) -> Readings:
    years = [_in_year(today.year + by, month, day) for by in (-1, 0, 1)]
    coming = next(days for days in years if days.last >= today)
    past = next(days for days in reversed(years) if days.first <= today)
    found = {"this_year": years[1], "coming": coming, "past": past}
    kept = [*found] if side is None else [{-1: "past", 0: "this_year", 1: "coming"}[side]]
    return {rule: days for rule, days in found.items() if rule in kept}


def _in_year(year: int, month: int, day: int | None) -> Days:
    first = date(year, month, 1)
    if day is None:
        return Days(first, _moved(first, "month", 1) - _DAY)
    found = first.replace(day=day)
    return Days(found, found)


_WAYS: tuple[Callable[[str, list[str], date], Readings], ...] = (
    _fixed, _unit, _weekday, _in_month,
)  # fmt: skip
_UNITS = {"week": 0, "month": 1, "quarter": 3, "year": 12}
_WEEKS = {"monday": 0, "sunday": 6}
_NUMBERS = {name: i for i, name in enumerate(dict.fromkeys(DAYS.values()))}


def _week(today: date, begins: str, side: int) -> Days:
    first = today - ((today.weekday() - _WEEKS[begins]) % 7) * _DAY + 7 * side * _DAY
    return Days(first, first + 6 * _DAY)


def _period(today: date, unit: str, side: int) -> Days:
    months = _UNITS[unit]
    first = today.replace(day=1, month=(today.month - 1) // months * months + 1)
    first = _moved(first, unit, side)
    return Days(first, _moved(first, unit, 1) - _DAY)


def _moved(day: date, unit: str, by: int) -> date:
    """Return `day` so many units on; the last day of a month that is too short for it."""
    if unit in {"day", "week"}:
        return day + by * (7 if unit == "week" else 1) * _DAY
    months = day.year * 12 + day.month - 1 + by * _UNITS[unit]
    year, month = divmod(months, 12)
    for number in range(day.day, 27, -1):
        try:
            return date(year, month + 1, number)
        except ValueError:
            continue
    return date(year, month + 1, day.day)


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def forms(days: Days) -> dict[str, Json]:
    """Return the values that plans hold for `days`, by what each says of them."""
    first, last = days
    found: dict[str, Json] = {
        "first": first.isoformat(),
        "last": last.isoformat(),
        "after": (last + _DAY).isoformat(),
        "begins": f"{first.isoformat()}T00:00:00",
        "begins_utc": f"{first.isoformat()}T00:00:00Z",
        "ends": f"{last.isoformat()}T23:59:59",
        "ends_utc": f"{last.isoformat()}T23:59:59Z",
    }
    if (first.year, first.month) == (last.year, last.month):
        found["month"] = f"{first:%Y-%m}"
        found["month_number"] = first.month
        found["month_name"] = MONTH_NAMES[first.month - 1].capitalize()
    if first.year == last.year:
        found["year"] = first.year
        found["year_text"] = str(first.year)
        if (first.month - 1) // 3 == (last.month - 1) // 3:
            found["quarter"] = f"{first.year}-Q{(first.month - 1) // 3 + 1}"
    if first == last:
        found["weekday"] = _weekday_name(first)
    return found


def _weekday_name(day: date) -> str:
    return next(name for name, number in _NUMBERS.items() if number == day.weekday())


Way: TypeAlias = tuple[str, str]
"""A rule, and what of its days is taken."""


def ways(words: str, value: Json, today: date) -> frozenset[Way]:
    """Return all ways in which `words` may have become `value` on `today`."""
    return frozenset(
        (rule, form)
        for rule, days in readings(words, today).items()
        for form, known in forms(days).items()
        if same(known, value)
    )


def reread(mention: Mention, known: frozenset[Way], today: date) -> Json:
    """Return the value of `mention` on `today`, made in the one way that `known` leaves; else None.

    `known` are the ways that examples left. Where their rules do not apply to these words, all
    rules that do must agree.
    """
    found = meant(mention, today)
    applying = [(rule, form) for rule, form in known if rule in found]
    tried = applying or [(rule, form) for rule in found for _, form in known]
    values = [forms(found[rule]).get(form) for rule, form in tried]
    agreed = bool(values) and all(same(values[0], value) for value in values)
    return values[0] if agreed else None


def meant(mention: Mention, today: date) -> Readings:
    """Return the readings of words that are relative, or name a day, a month or a year."""
    if mention.relative:
        return readings(mention.text, today)
    value = mention.value
    if mention.kind == "year" and isinstance(value, int):
        return {"named": Days(date(value, 1, 1), date(value, 12, 31))}
    if mention.kind != "date" or not isinstance(value, str):
        return {}
    if _ISO_DAY.fullmatch(value):
        day = date.fromisoformat(value)
        return {"named": Days(day, day)}
    if _ISO_MONTH.fullmatch(value):
        return {"named": _in_year(int(value[:4]), int(value[5:]), None)}
    return {}
