"""Ambiguity: words that say a value in several ways, and which of them a stored plan shows.

"03/07/2024" is a day in March or in July, "1.250" a point or a group, "10m" millions or minutes,
"1.10" a price or a version. Nothing but a plan that was made for words written so tells.
"""

from semcache.canonical import Json, same
from semcache.prompts.recognizers.dates import days, in_order_of
from semcache.prompts.recognizers.numbers import CURRENCIES, number_readings

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
