"""Codecs: how words carry a value, and how a value becomes the plan's; lossless, or an error.

A *wording* reads a parameter's value from words of a prompt, as the words did for which a plan was
made. A *codec* makes of it the value that the plan has.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from semcache.binding.periods import PERIODS, period_bound
from semcache.binding.texts.parts import WRITERS
from semcache.canonical import Json, dumps, same
from semcache.errors import BindingError
from semcache.process.memo import memoized
from semcache.prompts.mentions import Mention, possible_values
from semcache.prompts.recognizers.dates import in_order_of
from semcache.prompts.recognizers.numbers import number_as_shown, number_readings
from semcache.prompts.redaction import pattern

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


def _written(value: Json, *, form: re.Pattern[str], expected: str) -> Json:
    """Return text of that form as it is; "03/11/2024" means one day or another by country."""
    if isinstance(value, str) and form.fullmatch(value):
        return value
    raise _wrong(value, expected)


def _of_type(value: Json, *, type_: type, expected: str) -> Json:
    """Return a value of that type as it is; nothing else is taken for one."""
    if isinstance(value, type_):
        return value
    raise _wrong(value, expected)


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
        "array": partial(_of_type, type_=list, expected="an array"),
        "boolean": partial(_of_type, type_=bool, expected="true or false"),
        "clock": partial(_written, form=_CLOCK, expected="a time of day written as 09:30"),
        "day": partial(_written, form=_DAY, expected="a day written as 2024-03-11"),
        "inline": inline,
        "integer": integer,
        "lower": lower,
        "month": partial(_written, form=_MONTH, expected="a month written as 2024-03"),
        "number": number,
        "object": partial(_of_type, type_=dict, expected="an object"),
        "text": text,
        "title": title,
        "upper": upper,
        **{name: partial(_period, name=name) for name in PERIODS},
        **WRITERS,
    }
)
"""The codecs by name; a template stores the names."""


UNCHANGED: Mapping[str, type] = MappingProxyType(
    {"array": list, "boolean": bool, "integer": int, "number": int, "object": dict, "text": str}
)
"""Codec → a type of which it gives every value back as it is."""


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


# Wordings: from words to the value.

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


def _recognized(how: Wording, mention: Mention, source: str, value: Json) -> Json:
    if mention.value is None:
        raise BindingError(f"nothing is read from {mention.text!r}; it cannot be bound")
    if possible_values(mention.kind, mention.text, mention.value):
        return _as_shown(mention, source, value)
    return mention.value if how == "recognized" else _as_text(mention.value)


def _as_shown(mention: Mention, source: str, value: Json) -> Json:
    """Return the value of ambiguous words, read as `source` was where it became `value`."""
    found: Json
    if mention.kind == "date":
        found = in_order_of(mention.text, source=source, iso=str(value))
    elif not isinstance(value, str):
        found = number_as_shown(mention.text, source=source, value=value)
    elif value in source:  # the plan took the spelling as it was: release 3.5, then 1.10
        found = mention.value if _is_written_alike(mention.text, source) else None
    else:
        number = next((n for n in number_readings(source).values() if _as_text(n) == value), None)
        shown = number_as_shown(mention.text, source=source, value=number)
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
