"""Wording: how words of a prompt carry a parameter's value, and how to read it from others."""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from semcache.canonical import Json, same
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention, as_shown, possible_values
from semcache.prompts.recognizers.numbers import number_readings
from semcache.prompts.redaction import pattern

Wording: TypeAlias = Literal[
    "verbatim",
    "lower",
    "upper",
    "title",
    "recognized",
    "recognized_text",
    "dated",
    "known",
    "absent",
]
"""`verbatim`: the words are the value. `lower`, `upper`, `title`: but for case. `recognized`: what
a recognizer or a closed set reads from them. `recognized_text`: the same, as text. `dated`: what
they come to on the day of asking. `known`: only a translation seen before tells. `absent`: no words
carry it.

What a relative mention reads is never worked out against a clock ("last 30 days" reads 30), so a
plan that holds it holds the words, and other words may take their place."""

_CASES: dict[Wording, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
}


def wording(value: Json, mention: Mention | None) -> Wording:
    """Return how `mention` carries `value`; what no rule explains is `known`."""
    if mention is None:
        return "absent"
    if value == mention.text:
        return "verbatim"
    may_be = (mention.value, *possible_values(mention.kind, mention.text, mention.value))
    if any(same(value, each) for each in may_be if each is not None):
        return "recognized"
    if isinstance(value, str) and any(value == _as_text(each) for each in may_be):
        return "recognized_text"
    return _but_for_case(value, mention.text)


def _but_for_case(value: Json, text: str) -> Wording:
    ways = (how for how, change in _CASES.items() if text.islower() and change(text) == value)
    return next(ways, "known")


def read(how: Wording, mention: Mention, *, source: str, value: Json = None) -> Json:
    """Return the value that `mention` carries in the wording `how`.

    `source` are the words that were stored with it, and `value` is what they became in the plan.

    Raises:
        BindingError: only a translation could tell (`known`), there are no words (`absent`), the
            recognizer read nothing from these words, they may be read in several ways and the
            plan does not show which, or are written otherwise than what it took as it was.
    """
    match how:
        case "verbatim":
            return _verbatim(mention, source)
        case "lower" | "upper" | "title":
            return _CASES[how](mention.text) if mention.text.islower() else mention.text
        case "recognized" | "recognized_text":
            return _recognized(how, mention, source, value)
        case _:
            raise BindingError(
                f"no known translation of {mention.text!r} for a {mention.kind} "
                "whose stored values were not the prompt's own words"
            )


WRITTEN = frozenset({"date", "time", "money", "percent", "number", "year", "ordinal"})
"""Kinds that can be written in several ways; a plan that took one way as it was knows no other."""


_NUMERAL = re.compile(r"[-+]?\d+(?:\.\d+)*")


def _verbatim(mention: Mention, source: str) -> str:
    if mention.kind in WRITTEN and not _is_written_alike(mention.text, source):
        raise BindingError(
            f"{mention.text!r} is written otherwise than {source!r}, which the plan took as it was"
        )
    return mention.text


def _is_written_alike(words: str, source: str) -> bool:
    numerals = _NUMERAL.fullmatch(words) and _NUMERAL.fullmatch(source)
    return bool(numerals) or pattern(words) == pattern(source)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _recognized(how: Wording, mention: Mention, source: str, value: Json) -> Json:
    if mention.value is None:
        raise BindingError(f"nothing is read from {mention.text!r}; it cannot be bound")
    if possible_values(mention.kind, mention.text, mention.value):
        return _as_shown(mention, source, value)
    return mention.value if how == "recognized" else _as_text(mention.value)


def _as_shown(mention: Mention, source: str, value: Json) -> Json:
    """Return the value of ambiguous words, read as `source` was where it became `value`."""
    if not isinstance(value, str) or mention.kind == "date":
        found = as_shown(mention.kind, mention.text, source=source, value=value)
    elif value in source:  # the plan took the spelling as it was: release 3.5, then 1.10
        found = mention.value if _is_written_alike(mention.text, source) else None
    else:
        number = next((n for n in number_readings(source).values() if _as_text(n) == value), None)
        shown = as_shown(mention.kind, mention.text, source=source, value=number)
        found = None if shown is None else _as_text(shown)
    if found is None:
        raise BindingError(
            f"{mention.text!r} may be read in several ways; {source!r}, for which the plan was "
            "made, does not show which"
        )
    return found


def _as_text(value: Json) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def deterministic(how: Wording) -> bool:
    """Return whether the words alone tell the value, with no translation seen before."""
    return how not in {"known", "absent"}
