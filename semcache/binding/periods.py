"""Periods: years and months, and the days that begin and end them."""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from types import MappingProxyType
from typing import NamedTuple

from semcache.canonical import Json

_DATE = re.compile(r"(?P<year>[12]\d{3})(?:-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-3]\d))?)?")


class PartialDate(NamedTuple):
    """A year, a month of one, or a day; what is not said is None."""

    year: int
    month: int | None
    day: int | None

    @classmethod
    def of(cls, year: str, month: str | None, day: str | None) -> "PartialDate":
        """Return the date of these digits."""
        return cls(int(year), int(month) if month else None, int(day) if day else None)


def partial_date(text: str) -> PartialDate | None:
    """Return the date that `text` is, written `2024`, `2024-03`, `2024-03-11` or as a timestamp."""
    match = _DATE.fullmatch(text[:10])
    if match is None or (len(text) > 10 and text[10] not in "T "):
        return None
    return PartialDate.of(*match.groups())


def _first(year: int, month: int) -> date:
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _after(year: int, month: int | None) -> date:
    return _first(year + 1, 1) if month is None else _first(year, month + 1)


_BOUNDS: Mapping[str, Callable[[int, int | None], date]] = MappingProxyType(
    {
        "begin": lambda year, month: _first(year, month or 1),
        "end": lambda year, month: _after(year, month) - timedelta(days=1),
        "after": _after,
    }
)


def period_bound(value: Json, unit: str, bound: str) -> str | None:
    """Return the first or last day of a year or month, or the day after, as `2024-01-01`.

    `unit`: `year` or `month`; `bound`: `begin`, `end` or `after`. None for a value that is no such
    period, written `2024` or `2024-03`.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool)
    time = partial_date(str(value)) if is_number or isinstance(value, str) else None
    if time is None or len(str(value)) != {"year": 4, "month": 7}[unit]:
        return None
    return _BOUNDS[bound](time.year, time.month).isoformat()


PERIODS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {f"{unit}-{bound}": (unit, bound) for unit in ("year", "month") for bound in _BOUNDS}
)
"""Codec → the period that it takes, and which of its days it gives."""
