"""Codecs: how a parameter's value becomes the value that a plan has; lossless, or an error."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from semcache.binding.texts.parts import WRITERS
from semcache.canonical import Json, dumps, same
from semcache.errors import BindingError
from semcache.memo import memoized

# Periods: years and months, and the days that begin and end them.

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


Codec: TypeAlias = Callable[[Json], Json]
"""Gives the value as the plan has it. Raises BindingError where something would be lost."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,20})?")  # "01234" is a code, not 1234


_DAY = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")


@memoized(1_000)
def named_codec(name: str) -> Codec:
    """Return the codec of that name; `text|sql|json` is one after another.

    Raises:
        BindingError: there is none.
    """
    if "|" in name:
        return _chain([named_codec(each) for each in name.split("|")])
    try:
        return CODECS[name]
    except KeyError as error:
        raise BindingError(
            f"no codec is named {name!r}; there are {', '.join(sorted(CODECS))}", reason="codec"
        ) from error


def _chain(codecs: Sequence[Codec]) -> Codec:
    def encode(value: Json) -> Json:
        for codec in codecs:
            value = codec(value)
        return value

    return encode


def number(value: Json) -> Json:
    """Return a number as it is, and text that spells one exactly as that number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return _spelled(value)
    raise _wrong(value, "a number, or text that spells one exactly")


def _spelled(value: str) -> int | float:
    if "." not in value:
        return int(value)
    if Decimal(value) != Decimal(repr(float(value))):
        raise _wrong(value, "a number that a float holds exactly as spelled")
    return float(value)


def integer(value: Json) -> Json:
    """Return a whole number; `5.0` and `"5"` are 5."""
    found = number(value)
    if isinstance(found, float):
        if not found.is_integer():
            raise _wrong(value, "a whole number")
        return int(found)
    return found


def text(value: Json) -> Json:
    """Return text as it is, and a number as the digits that spell it; a boolean has no spelling."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, "text or a number")
    spelled = str(int(value)) if value == int(value) and abs(value) < 10**15 else repr(value)
    if "e" in spelled:
        raise _wrong(value, "a number with one plain spelling")
    return spelled


def day(value: Json) -> Json:
    """Return a day written `2024-03-11`; what "03/11/2024" means depends on the country."""
    if isinstance(value, str) and _DAY.fullmatch(value):
        return value
    raise _wrong(value, "a day written as 2024-03-11")


def month(value: Json) -> Json:
    """Return a month written `2024-03`."""
    if isinstance(value, str) and _MONTH.fullmatch(value):
        return value
    raise _wrong(value, "a month written as 2024-03")


def clock(value: Json) -> Json:
    """Return a time of day written `09:30`."""
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        return value
    raise _wrong(value, "a time of day written as 09:30")


def boolean(value: Json) -> Json:
    """Return true or false; nothing else is taken for one."""
    if isinstance(value, bool):
        return value
    raise _wrong(value, "true or false")


def array(value: Json) -> Json:
    """Return an array as it is."""
    if isinstance(value, list):
        return value
    raise _wrong(value, "an array")


def object_(value: Json) -> Json:
    """Return an object as it is."""
    if isinstance(value, dict):
        return value
    raise _wrong(value, "an object")


def any_(value: Json) -> Json:
    """Return the value as it is, whatever its type."""
    return value


def lower(value: Json) -> Json:
    """Return text in lower case."""
    return _only_text(value).lower()


def upper(value: Json) -> Json:
    """Return text in upper case."""
    return _only_text(value).upper()


def title(value: Json) -> Json:
    """Return each word of lower-case text with a capital; text with capitals keeps them."""
    words = _only_text(value)
    if words != words.lower():
        return words
    # str.title() would write "O'Neill'S": only plain words have a title case that is sure.
    if not all(word.isalpha() for word in words.split(" ")):
        raise _wrong(value, "words of letters, whose capitals are known")
    return words.title()


def inline(value: Json) -> Json:
    """Return the text of a value that goes inside longer text; a container has no text form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text(value)


def _period(value: Json, *, name: str) -> Json:
    unit, _ = PERIODS[name]
    found = period_bound(value, *PERIODS[name])
    if found is None:
        raise _wrong(value, f"a {unit} written as {'2024' if unit == 'year' else '2024-03'}")
    return found


def _only_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(value, "text")


def _wrong(value: Json, expected: str) -> BindingError:
    shown = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:77]}..."
    return BindingError(f"the value is {shown}; the plan takes {expected}", reason="type")


CODECS: Mapping[str, Codec] = MappingProxyType(
    {
        "any": any_,
        "array": array,
        "boolean": boolean,
        "clock": clock,
        "day": day,
        "inline": inline,
        "integer": integer,
        "lower": lower,
        "month": month,
        "number": number,
        "object": object_,
        "text": text,
        "title": title,
        "upper": upper,
        **{name: partial(_period, name=name) for name in PERIODS},
        **WRITERS,
    }
)
"""The codecs by name; a template stores the names."""


def codec_between(value: Json, leaf: Json, *, any_case: bool = False) -> str | None:
    """Return the name of the codec that makes `leaf` of `value`, or None.

    `any_case` also tries a change of case, for text.
    """
    name = codec_of(leaf)
    if same(value, leaf):
        return name
    if {type(value), type(leaf)} <= {str, int, float}:
        return _respelled(value, leaf, name, any_case=any_case)
    return None


def _respelled(value: Json, leaf: Json, name: str, *, any_case: bool) -> str | None:
    both_text = isinstance(value, str) and isinstance(leaf, str)
    tried = ("lower", "upper", "title") if both_text and any_case else (name,)
    for codec in tried:
        try:
            if same(CODECS[codec](value), leaf):
                return codec
        except BindingError:
            continue
    return None


def period_codec(value: Json, leaf: Json) -> str | None:
    """Return the codec that makes `leaf`, a day, of the period `value`; None if there is none."""
    found = (n for n, (unit, bound) in PERIODS.items() if period_bound(value, unit, bound) == leaf)
    return next(found, None)


_FORMS = (("day", _DAY), ("month", _MONTH))


def codec_of(leaf: Json) -> str:
    """Return the name of the codec that keeps the JSON type of `leaf`, and the form of its text."""
    match leaf:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return next((name for name, form in _FORMS if form.fullmatch(leaf)), "text")
        case list():
            return "array"
        case dict():
            return "object"
        case None:
            return "any"


def alike(left: Json, right: Json) -> bool:
    """Return whether two values are equal but for text and number: `5` is `"5"`, but not `"05"`."""
    return same(left, right) or codec_between(left, right) is not None


def spelling(value: Json) -> str:
    """Return one text for values that a codec could turn into each other."""
    match value:
        case bool() | None | list() | dict():
            return f"json:{dumps(value)}"
        case str():
            return value.casefold()
        case _:
            return number_text(value)


def number_text(value: float) -> str:
    """Return the digits of a number as a plan or prompt would spell it."""
    try:
        return str(text(value))
    except BindingError:
        return repr(value)
