"""Numbers: counts, years, ordinals, percentages and amounts of money in a prompt.

Choices worth knowing:

- "one", "a" and "first" are words, not numbers, unless a unit of time or a quarter follows.
  "second" is an ordinal only after "the" or before a superlative.
- 1800 to 2199 after a temporal word ("in", "since", "between"…) are a year, else a number.
- The number in "last 30 days" or "2 weeks ago" is `relative`.
- Words that may be read in several ways keep their spelling as value: "10m" (millions, minutes),
  "1.250" (a point or groups), "1.10" (a version). A stored plan tells which it is (`registry`).
- `$` and dollars are `money`; another currency has a kind of its own (`money_eur`), since plans
  name currencies.
- The numbers of a list ("1. list the orders 2. mail them") say which step it is: words, not values.
"""

import re
from collections.abc import Iterator, Mapping

from semcache.canonical import Json, same
from semcache.prompts.recognizers.recognition import (
    DURATIONS,
    MONTHS,
    ORDINAL_WORDS,
    ORDINALS,
    SMALL,
    TENS,
    UNITS,
    Recognition,
    nth,
)
from semcache.prompts.tokens import letter_runs, lowered

_MOST_DIGITS = 30  # a longer row of digits is a name, and floats and `int` have their limits
_SCALES = {
    "hundred": 100, "dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9,
    "trillion": 10**12, "k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9,
}  # fmt: skip
_DIGITS = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
_BELOW_TEN = "|".join(UNITS[:9])
_BELOW_100 = f"(?:(?:{'|'.join(TENS)})(?:[ -](?:{_BELOW_TEN}))?|{'|'.join(reversed(UNITS))})"
_BELOW_1000 = f"(?:(?:a|{_BELOW_100}) hundred(?: (?:and )?{_BELOW_100})?|{_BELOW_100})"
_SPELLED = (
    rf"(?:(?:half )?a dozen|{_BELOW_100} dozen"
    rf"|(?:a|{_BELOW_1000}) (?:thousand|million|billion|trillion)"
    rf"(?: (?:and )?{_BELOW_1000}(?: thousand)?(?: (?:and )?{_BELOW_1000})?)?|{_BELOW_1000}|zero)"
)
NUMBER_WORDS = frozenset(SMALL) | frozenset(ORDINALS) | {"hundred", "dozen", "thousand"}
NUMBER_WORDS |= {"million", "billion", "trillion"}
"""Words of which a text with a number in words has one."""

# Where a number may start: found in a fifth of the time that `_NUMBER` needs to search by itself.
_START = re.compile(r"[-+\u2212$€£¥₹.0-9]")
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>(?<![\w)\]])[-\u2212](?=[0-9$€£¥₹]))?(?P<symbol>[$€£¥₹]\s?)?"
    rf"(?P<digits>{_DIGITS})"
    r"(?:(?P<nth>st|nd|rd|th)\b|(?P<scale>k|m|mn|bn|\s?(?:hundred|thousand|million|billion"
    r"|trillion|dozen))\b)?"
)
_SPELLED_NUMBER = re.compile(rf"\b{_SPELLED}(?!\w)")
GLUED_UNIT = re.compile(
    r"(?:ms|sec|s|min|mins|h|hr|hrs|d|w|wk|y|yr|yrs|kg|g|mg|lb|lbs|oz|km|cm|mm|mi|ft|in|l|ml|kb|mb"
    r"|gb|tb|kw|kwh|px|x|c|f)(?!\w)"
)
"""Short names of units that stand directly after a number: "500ml"."""
CURRENCIES = {
    "$": "money", "dollar": "money", "buck": "money", "usd": "money",
    "€": "money_eur", "euro": "money_eur", "eur": "money_eur",
    "£": "money_gbp", "pound": "money_gbp", "gbp": "money_gbp", "quid": "money_gbp",
    "¥": "money_jpy", "yen": "money_jpy", "jpy": "money_jpy",
    "₹": "money_inr", "rupee": "money_inr", "inr": "money_inr",
    "chf": "money_chf", "cad": "money_cad", "aud": "money_aud", "cny": "money_cny",
}  # fmt: skip
"""Sign, code or singular name of a currency → slot type of its amounts."""
_AFTER_NUMBER = re.compile(
    r"\s?(?:(?P<percent>%|percent\b|per cent\b|pct\b)"
    r"|(?P<currency>[€£¥₹$](?!\s?[0-9])|(?:dollar|buck|euro|pound|rupee)s?\b"
    r"|(?:usd|eur|gbp|jpy|inr|chf|cad|aud|cny|yen|quid)\b))"
)
_CODE_BEFORE = re.compile(r"\b(usd|eur|gbp|jpy|inr|chf|cad|aud|cny)\s?$")


def numbers(text: str) -> Iterator[Recognition]:
    """Yield numbers in digits and words, with years, percentages and amounts of money."""
    lower = lowered(text)
    last_year_end = -1
    counting = _list_numbers(lower)
    for match in _in_digits(lower):
        if match.start() in counting:
            continue
        found = _number(lower, match, last_year_end)
        if found is not None:
            plain = match["digits"].isdecimal() and not match["scale"]
            if not plain and not _is_sure(found, match["digits"], match["scale"]):
                start = match.start("sign") if match["sign"] else match.start("digits")
                found = found._replace(value=text[start : match.end()])
            if found.kind == "year":
                last_year_end = found.end
            yield found
    if not NUMBER_WORDS.isdisjoint(letter_runs(lower)):
        yield from _spelled_numbers(lower)


def _in_digits(lower: str) -> "Iterator[re.Match[str]]":
    """Yield what `_NUMBER.finditer` would."""
    at = 0
    while (start := _START.search(lower, at)) is not None:
        match = _NUMBER.match(lower, start.start())
        at = start.end()
        if match is not None:
            yield match
            at = match.end()


_LIST_NUMBER = re.compile(r"(?<![^\s(])(?P<number>[0-9]{1,2})[.):](?=\s+[^\W\d_])")
_ITEM = re.compile(r"(?:^|[\n.:;,!?])\s*(?:step\s+)?\(?$")


def _list_numbers(lower: str) -> frozenset[int]:
    """Return where the numbers of a list start that begins with 1 and has a second item.

    None where more than one number may be the next of the list: then nobody knows which is a value.
    """
    if "1." not in lower and "1)" not in lower and "1:" not in lower:
        return frozenset()
    marks = [*_LIST_NUMBER.finditer(lower)]
    starts: list[int] = []
    while True:
        number, after = str(len(starts) + 1), starts[-1] if starts else -1
        found = [m.start() for m in marks if m["number"] == number and m.start() > after]
        of_items = [at for at in found if _ITEM.search(lower, max(0, at - 16), at)]
        found = of_items or (found if starts else [])
        if not found:
            return frozenset(starts if len(starts) > 1 else ())
        if len(found) > 1:
            return frozenset()
        starts += found


def _number(lower: str, match: "re.Match[str]", last_year_end: int) -> Recognition | None:
    start, end = match.span()
    sign, symbol, digits, nth_, scale = match.group("sign", "symbol", "digits", "nth", "scale")
    if nth_:
        return Recognition(start, end, "ordinal", _scaled(digits, None))
    if not scale and end < len(lower) and _continues(lower, end):
        return None
    value = _scaled(digits, scale)
    if sign and not isinstance(value, str):
        value = -value
    if symbol:
        return Recognition(start, end, CURRENCIES[symbol.strip()], value)
    if (amount := _with_unit(lower, start, end, value)) is not None:
        return amount
    unsigned = not scale and not sign and len(digits) == 4
    if unsigned and _is_year(lower, start, digits, last_year_end):
        return Recognition(start, end, "year", value)
    return Recognition(start, end, "number", value, _counts_from_now(lower, start, end))


_GROUPED = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_DECIMAL_COMMA = frozenset({"money_eur", "money_chf"})
"""Currencies of countries most of which write 1.250,00; there "1,250" may be one and a quarter."""
_SHORT_SCALES = frozenset({"k", "m"})


def _is_sure(found: Recognition, digits: str, scale: str | None) -> bool:
    """Return whether digits with a scale or with signs among them can be read in one way only."""
    if found.kind == "ordinal" or isinstance(found.value, str):
        return True
    if _GROUPED.fullmatch(digits):
        return "," in digits and found.kind not in _DECIMAL_COMMA
    if found.kind != "number":
        return True
    version = "." in digits and digits.endswith("0") and "," not in digits
    return not version and scale not in _SHORT_SCALES


def number_readings(words: str) -> "Mapping[frozenset[str], int | float]":
    """Return the values that words for a number may have, each by the rules that make it so.

    Of "1.250": 1.25 by {point, zero} and 1250 by {group}. Of "10m": ten million by {m}.
    """
    match = next(_in_digits(lowered(words)), None)
    if match is None:
        return {}
    digits, sign = match["digits"], -1 if match["sign"] else 1
    value = _scaled(digits, match["scale"])
    if isinstance(value, str):
        return {}
    rules = {name for name, sign in (("point", "."), ("comma", ",")) if sign in digits}
    if "." in digits and digits.endswith("0"):
        rules.add("zero")
    if match["scale"]:
        rules.add(match["scale"].strip())
    found: dict[frozenset[str], int | float] = {frozenset(rules): sign * value}
    if _GROUPED.fullmatch(digits) and not match["scale"]:
        if "." in digits:
            found[frozenset({"group"})] = sign * int(digits.replace(".", ""))
        else:
            found[frozenset({"decimal comma"})] = sign * float(digits.replace(",", "."))
    return found


def number_as_shown(words: str, *, source: str, value: Json) -> int | float | None:
    """Return the value of ambiguous `words`, read as `source` was where it became `value`.

    None where that shows nothing of words written so: "500" for 500 does not tell what "10m" is.
    """
    shown = {
        rule
        for rules, known in number_readings(source).items()
        if same(known, value)
        for rule in rules
    }
    found = {known for rules, known in number_readings(words).items() if rules <= shown}
    return found.pop() if len(found) == 1 else None


def _continues(lower: str, end: int) -> bool:
    """Return whether the digits that end here belong to a longer word, unit names aside."""
    after = lower[end]
    return (after.isalnum() or after == "_") and GLUED_UNIT.match(lower, end) is None


def _scaled(digits: str, scale: str | None) -> int | float | str:
    if scale is None and digits.isdecimal() and digits[0] != "0" and len(digits) <= _MOST_DIGITS:
        return int(digits)
    plain = digits.replace(",", "")
    if (len(plain) > 1 and plain[0] == "0" and plain[1] != ".") or len(plain) > _MOST_DIGITS:
        return digits  # "01234" is a name made of digits: a number would lose its zero
    value = float(plain) if "." in plain else int(plain)
    if scale is None:
        return value
    scaled = value * _SCALES[scale.strip()]
    return int(scaled) if scaled == int(scaled) else scaled


def _with_unit(lower: str, start: int, end: int, value: Json) -> Recognition | None:
    """Return the number with the percent sign or currency that follows or leads it, if one does."""
    if (unit := _AFTER_NUMBER.match(lower, end)) is not None:
        if unit["percent"]:
            return Recognition(start, unit.end(), "percent", value)
        name = unit["currency"]
        return Recognition(start, unit.end(), CURRENCIES[name.removesuffix("s")], value)
    if lower[max(0, start - 4) : start].strip()[-3:] not in CURRENCIES:
        return None
    code = _CODE_BEFORE.search(lower, max(0, start - 5), start)
    return None if code is None else Recognition(code.start(), end, CURRENCIES[code[1]], value)


# Other numbers of four digits after "before" or "in" are more often clock times and amounts.
_YEAR = re.compile(r"(?:1[89]|2[01])[0-9][0-9]")
_SEASONS = frozenset(["spring", "summer", "autumn", "fall", "winter"])
_BEFORE_YEAR = (
    frozenset(
        [
            "in", "since", "during", "from", "to", "until", "till", "before", "after", "between",
            "through", "for", "year", "years", "fy", "fiscal", "calendar", "around", "circa",
            "early", "late", "mid", "mid-", "q1", "q2", "q3", "q4",
        ]
    )
    | _SEASONS
    | frozenset(MONTHS)
)  # fmt: skip
_BEFORE_OF_YEAR = (
    frozenset(
        [
            "month", "months", "quarter", "half", "end", "start", "beginning", "middle", "rest",
            "all", "year", "q1", "q2", "q3", "q4",
        ]
    )
    | _SEASONS
    | frozenset(MONTHS)
)  # fmt: skip
_YEAR_LINK = re.compile(r"\s*(?:,|-|\u2013|/|and|or|to|vs\.?|versus|with|through|till|until)\s*")
_AND_NUMBER = re.compile(rf"\s+and\s+({_DIGITS})(?!\w)")


def _is_year(lower: str, start: int, digits: str, last_year_end: int) -> bool:
    if _YEAR.fullmatch(digits) is None:
        return False
    if 0 <= last_year_end < start and _YEAR_LINK.fullmatch(lower, last_year_end, start):
        return True
    before = lower[max(0, start - 32) : start].replace(",", " ").split()
    if before and before[-1] == "the":
        before.pop()
    word = before[-1] if before else ""
    if word == "of":
        return len(before) > 1 and before[-2] in _BEFORE_OF_YEAR
    if word == "between" and (other := _AND_NUMBER.match(lower, start + 4)):
        return _YEAR.fullmatch(other[1]) is not None
    return word.lstrip("(").rstrip(".") in _BEFORE_YEAR


_NOW_BEFORE = re.compile(
    r"\b(?:(?:last|past|next|previous|prior|coming|upcoming|following|recent)|(in))\s+$"
)
_DURATION_AFTER = re.compile(rf"[\s-]?(?:{DURATIONS})s?\b(?P<ago>\s+(?:ago|from now|hence)\b)?")


def _counts_from_now(lower: str, start: int, end: int) -> bool:
    """Return whether the number counts days or the like from now: "last 30 days", "2 weeks ago"."""
    unit = _DURATION_AFTER.match(lower, end)
    if unit is None:
        return False
    return bool(unit["ago"]) or _NOW_BEFORE.search(lower[max(0, start - 12) : start]) is not None


_ORDINAL = re.compile(
    rf"\b(?:(?:{'|'.join(TENS)})[ -](?:{'|'.join(ORDINAL_WORDS[:9])})"
    rf"|(?<=the )second|(?:first|second)(?= (?:quarter|half|most|least|\w+est)\b)"
    rf"|{'|'.join(word for word in ORDINALS if word not in {'first', 'second'})})\b"
)


def _spelled_numbers(lower: str) -> Iterator[Recognition]:
    for match in _SPELLED_NUMBER.finditer(lower):
        start, end = match.span()
        if match[0] == "one" and not _DURATION_AFTER.match(lower, end):
            continue
        value = _spelled_value(match[0])
        found = _with_unit(lower, start, end, value)
        yield found or Recognition(start, end, "number", value, _counts_from_now(lower, start, end))
    for match in _ORDINAL.finditer(lower):
        if lower.endswith(("a ", "one "), 0, match.start()):
            continue  # "a third of them" is a share
        yield Recognition(*match.span(), "ordinal", nth(match[0]))


def _spelled_value(words: str) -> int:
    total = group = 0
    for word in words.replace("-", " ").split():
        if word in SMALL:
            group += SMALL[word]
        elif word == "hundred":
            group = max(group, 1) * 100
        elif word in _SCALES:
            total += max(group, 1) * _SCALES[word]
            group = 0
    return (total + group) // (2 if words.startswith("half ") else 1)
