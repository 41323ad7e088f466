"""The recognizers of this package: what each finds, and the values that its words may have.

A recognizer is a function from text to what it found. Recognizers may overlap: `find_mentions`
keeps the longest. All are regular expressions, and one is asked only if the text has a sign or a
word of its own, because every lookup runs them.

Some words say a value in several ways: "03/07/2024" is a day in March or in July, "1.250" a point
or a group, "10m" millions or minutes, "1.10" a price or a version. Nothing but a plan that was made
for words written so tells which.
"""

import re
from typing import NamedTuple

from semcache.canonical import Json, same
from semcache.prompts.recognizers.dates import (
    DATE_SIGNS,
    DATE_WORDS,
    TIME_WORDS,
    dates,
    days,
    in_order_of,
    times,
)
from semcache.prompts.recognizers.names import CODE_SIGNS, addresses, codes, quotes
from semcache.prompts.recognizers.numbers import (
    CURRENCIES,
    NUMBER_WORDS,
    number_readings,
    numbers,
)
from semcache.prompts.recognizers.recognition import Recognition, Recognizer
from semcache.prompts.tokens import letter_runs, lowered


class _Listed(NamedTuple):
    """A recognizer and the texts that it is asked about."""

    find: Recognizer
    signs: "re.Pattern[str]"
    """Found in a text that it has to be asked about."""
    words: frozenset[str] = frozenset()
    """Runs of lower-case letters that do the same."""


RECOGNIZERS = (
    _Listed(quotes, re.compile("[\"'`\u2018\u201c\u00ab]")),
    _Listed(addresses, re.compile(r"@|://|(?i:www\.)")),
    _Listed(times, re.compile(":"), TIME_WORDS),
    _Listed(dates, DATE_SIGNS, DATE_WORDS),
    _Listed(numbers, re.compile("[0-9]"), NUMBER_WORDS),
    _Listed(codes, CODE_SIGNS),
)
"""All of them. Where two find the same span, the earlier one names it."""

OPEN_KINDS = frozenset(
    [
        "number", "year", "ordinal", "percent", "date", "datetime", "month", "weekday",
        "quarter", "time", "quoted", "email", "url", "code", "identifier", *CURRENCIES.values(),
    ]
)  # fmt: skip
"""The slot types that the recognizers give."""


def recognized(text: str) -> list[Recognition]:
    """Return all that the recognizers find, in the order of the recognizers; spans may overlap."""
    words = letter_runs(lowered(text))
    return [
        found
        for find, signs, own in RECOGNIZERS
        if signs.search(text) is not None or not own.isdisjoint(words)
        for found in find(text)
    ]


_COUNTED = frozenset({"number", "percent", *CURRENCIES.values()})


def possible_values(kind: str, words: str, value: Json) -> tuple[Json, ...]:
    """Return the values that the `words` of a slot type may have, where they keep their spelling.

    Empty where `value`, what a recognizer says of them, is not their spelling: it is sure then.
    """
    if not isinstance(value, str) or value not in words:
        return ()
    if kind == "date":
        return days(words)
    return tuple(dict.fromkeys(number_readings(words).values())) if kind in _COUNTED else ()


def as_shown(kind: str, words: str, *, source: str, value: Json) -> Json:
    """Return the value of ambiguous `words`, read as `source` was where it became `value`.

    None where that shows nothing of words written so: "500" for 500 does not tell what "10m" is.
    """
    if kind == "date":
        return in_order_of(words, source=source, iso=value) if isinstance(value, str) else None
    shown = {
        rule
        for rules, known in number_readings(source).items()
        if same(known, value)
        for rule in rules
    }
    found = {known for rules, known in number_readings(words).items() if rules <= shown}
    return found.pop() if len(found) == 1 else None
