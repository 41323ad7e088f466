"""What recognizers share: their answer, and the numerals and names of time of English."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from semcache.canonical import Json


class Recognition(NamedTuple):
    """A value that a recognizer found in a text."""

    start: int
    """Offset of its first character."""
    end: int
    """Offset after its last character."""
    kind: str
    """Slot type: `number`, `year`, `date`…"""
    value: Json
    """The value, normalized where its words determine it, else the words."""
    relative: bool = False
    """Whether what it denotes depends on when it is asked."""


Recognizer: TypeAlias = Callable[[str], Iterable[Recognition]]
"""Finds values of an open class in a text. Pure; called with every prompt, so it must be quick."""


def _list(listed: str) -> list[str]:
    return listed.split()


UNITS = _list(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINAL_WORDS = _list(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
SMALL = {"zero": 0} | {word: i for i, word in enumerate(UNITS, start=1)}
SMALL |= {word: 10 * i for i, word in enumerate(TENS, start=2)}
"""Number word below a hundred → its number."""
ORDINALS = {word: i for i, word in enumerate(ORDINAL_WORDS, start=1)}
ORDINALS |= {word[:-1] + "ieth": 10 * i for i, word in enumerate(TENS, start=2)}
"""Ordinal of one word → its number."""
DURATIONS = (
    "second|sec|minute|min|hour|hr|day|night|week|weekend|fortnight|month|quarter|semester|season"
    "|year|yr|decade|century"
)
"""Units of time, as alternatives of a pattern; a plural s may follow."""

MONTH_NAMES = _list(
    "january february march april may june july august september october november december"
)
MONTHS = {name: i for i, name in enumerate(MONTH_NAMES, start=1)}
MONTHS |= {name[:3]: i for name, i in MONTHS.items()} | {"sept": 9}
"""Name of a month, in full or short → its number from 1."""
DAY_NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DAYS = {name: name.capitalize() for name in DAY_NAMES}
DAYS |= {
    "mon": "Monday", "tue": "Tuesday", "tues": "Tuesday", "wed": "Wednesday", "thu": "Thursday",
    "thur": "Thursday", "thurs": "Thursday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday",
}  # fmt: skip
"""Name of a weekday, in full or short → its full name with a capital."""


def nth(words: str) -> int:
    """Return the number of an ordinal in words: 21 for "twenty-first"."""
    return sum(ORDINALS.get(w, 0) or SMALL[w] for w in words.replace("-", " ").split())
