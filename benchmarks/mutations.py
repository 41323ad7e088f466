"""Mutations: prompts with one thing changed, and the plans that may be served for them.

Each kind below changes what is asked; the plan of the unchanged prompt must not come back:

    sign at a value     -, !, ≥ … before or after it        its plan with the value as said
    sign at a word      the same at a content word          none
    sign alone          an arrow, an emoji, a symbol        none
    word inserted       not, over, except …                 any other plan
    word dropped        not, over, highest …                any other plan
    word replaced       a content word by a foreign one     none
    value dropped       nobody says it any more             any plan without that value
    values swapped      two of them change places           its plan with both swapped
    case of a value     of codes, files, quoted text        its plan with the value as said
    digit of a value    changed, inserted or dropped        its plan with the value as said
    digit in a word     glued to a content word             none
    unit of a value     thousand, %, km … after a number    its plan with 1,000 times the number
    homoglyph           a Cyrillic letter for a Latin one   its plan with the value as said
    clause              but only if …, except on …          none

*harmless* is the control: courtesy, spaces, a final sign; there the unchanged plan is right, and a
cache that serves nothing loses all of it.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from semcache.canonical import Json
from semcache.explore.streams import Row

SIGNS_BEFORE = ("-", "!", "<", ">", "~", "¬", "≤", "*", "±", "\N{EN DASH}")
SIGNS_AFTER = ("+", "*", "±", "^", "~")
SYMBOLS = ("→", "←", "❌", "✅", "👎", "🚫", "≠", "±", "⚠", "¬", "↓", "∅")
INSERTED = ("not", "never", "without", "except", "over", "under", "before", "until", "other than")
TELLING = frozenset(
    "not no never except without over under more less before after above below most least highest"
    " lowest first last smallest largest oldest newest earliest latest average maximum"
    " minimum".split()
)
"""Words that no prompt loses without asking for something else."""
FOREIGN = ("zeppelin", "marmalade", "glacier", "tambourine", "walrus", "turnip", "lighthouse")
CLAUSES = (
    "except on Sundays",
    "but only if it was approved",
    "unless somebody objects",
    "and then delete everything",
    "excluding the cancelled ones",
    "without the duplicates",
    "temporarily",
    "for children under ten",
    "as it was a year ago",
    "and also for Eve",
    "ignoring my own",
    "per household",
)
UNITS = ("thousand", "k", "million", "%", "km", "kg", "weeks", "dozen")
FACTORS = {"thousand": 1000, "k": 1000, "million": 1_000_000, "dozen": 12}
LOOKALIKES = str.maketrans(
    "aceopxyABCEHKMOPTX",
    "".join(
        map(
            chr,
            (
                0x430,
                0x441,
                0x435,
                0x43E,
                0x440,
                0x445,
                0x443,
                0x410,
                0x412,
                0x421,
                0x415,
                0x41D,
                0x41A,
                0x41C,
                0x41E,
                0x420,
                0x422,
                0x425,
            ),
        )
    ),
)
"""Latin → Cyrillic letters that look the same."""
PLAIN = frozenset(
    "show list give find tell want need please could would should like have with from that this"
    " what which when where there their them they into than then some many much does were been"
    " will your about each every also make take look know help just only both such these those"
    " thank thanks looking searching going hello getting provide display return".split()
)
"""Words that a foreign one may replace without changing what is asked for."""
POLITE = ("please {}", "{} please", "{}.", "{}?", "  {}", "could you {}", "{}, thanks")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A prompt with one thing changed."""

    kind: str
    text: str
    plans: tuple[Json, ...] = ()
    """Plans that may be served; none may where it is empty."""
    gone: Json = None
    """A value that nobody says any more: any plan without it may be served."""
    former: Json = None
    """The plan of the unchanged prompt, where any other may be right."""

    def allows(self, plan: Json) -> bool:
        """Return whether `plan` may be served."""
        if self.gone is not None:
            return all(not same(leaf, self.gone) for leaf in leaves(plan))
        if self.former is not None:
            return not same(plan, self.former)
        return any(same(plan, right) for right in self.plans)


def same(one: Json, other: Json) -> bool:
    """Return whether two plans are equal: numbers by value, text to the letter."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def leaves(plan: Json) -> Iterator[Json]:
    """Yield each value in `plan` that is neither object nor list."""
    if isinstance(plan, dict | list):
        for inner in plan.values() if isinstance(plan, dict) else plan:
            yield from leaves(inner)
    else:
        yield plan


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that stands once in the prompt, word for word, and in the plan."""

    name: str
    said: str
    start: int
    value: Json

    @property
    def end(self) -> int:
        return self.start + len(self.said)


def mutations(row: Row, seed: int) -> Iterator[Mutation]:
    """Yield for each kind one mutation of `row` where there is one; the same for the same seed."""
    for kind, make in KINDS.items():
        made = make(row, random.Random(f"{seed} {row.id} {kind}"))  # noqa: S311 - not a secret
        if made is not None and made.text != row.text:
            yield made


# Values --------------------------------------------------------------------------------------


def _values(row: Row) -> list[_Value]:
    found = []
    for parameter in row.params:
        said = str(parameter.mention or "")
        places = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(said)}(?!\w)", row.text)]
        twins = [other for other in row.params if same(other.value, parameter.value)]
        told = said and (said == parameter.value or _number(said) == parameter.value)
        if told and len(places) == 1 and len(twins) == 1 and _in_plan(row, parameter.value):
            found.append(_Value(parameter.name, said, places[0], parameter.value))
    apart = [v for v in found if not any(_overlap(v, w) for w in found if w is not v)]
    return [v for v in apart if not isinstance(v.value, bool)]


def _overlap(one: _Value, other: _Value) -> bool:
    return one.start < other.end and other.start < one.end


def _in_plan(row: Row, value: Json) -> bool:
    return any(same(leaf, value) for leaf in leaves(row.plan))


def _number(said: str) -> int | float | None:
    text = re.sub("^[\N{EN DASH}\N{FULLWIDTH HYPHEN-MINUS}]", "-", said)
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]+\.[0-9]+", text) else None


def _replaced(plan: Json, values: dict[str, Json], old: list[_Value]) -> Json:
    """Return `plan` with each old value replaced by the new one of the same words."""
    if isinstance(plan, dict):
        return {key: _replaced(inner, values, old) for key, inner in plan.items()}
    if isinstance(plan, list):
        return [_replaced(inner, values, old) for inner in plan]
    return next((values[v.said] for v in old if same(plan, v.value)), plan)


def _as_said(row: Row, value: _Value, kind: str, said: str) -> Mutation:
    """Return the prompt that says `said` for a value; the plan may only be served with that."""
    text = row.text[: value.start] + said + row.text[value.end :]
    fit: Json = said if isinstance(value.value, str) else _number(said)
    plans = () if fit is None else (_replaced(row.plan, {value.said: fit}, [value]),)
    return Mutation(kind, text, plans)


def _sign_at_value(row: Row, rng: random.Random) -> Mutation | None:
    value = _pick(_values(row), rng)
    if value is None:
        return None
    if rng.random() < 0.6:
        return _as_said(row, value, "sign at a value", rng.choice(SIGNS_BEFORE) + value.said)
    return _as_said(row, value, "sign at a value", value.said + rng.choice(SIGNS_AFTER))


def _value_dropped(row: Row, rng: random.Random) -> Mutation | None:
    value = _pick(_values(row), rng)
    if value is None:
        return None
    text = f"{row.text[: value.start].rstrip()} {row.text[value.end :].lstrip()}".strip()
    return Mutation("value dropped", text, gone=value.value) if text else None


def _swapped(row: Row, rng: random.Random) -> Mutation | None:
    values = sorted(_values(row), key=lambda v: v.start)
    pairs = [
        (one, two)
        for one, two in itertools.pairwise(values)
        if _of_one_kind(one, two) and _apart(row.text[one.end : two.start])
    ]
    pair = _pick(pairs, rng)
    if pair is None:
        return None
    one, two = pair
    between = row.text[one.end : two.start]
    text = row.text[: one.start] + two.said + between + one.said + row.text[two.end :]
    swap = {one.said: two.value, two.said: one.value}
    alike = isinstance(one.value, str) == isinstance(two.value, str)
    plans = (_replaced(row.plan, swap, [one, two]),) if alike else ()
    return Mutation("values swapped", text, plans)


def _of_one_kind(one: _Value, two: _Value) -> bool:
    """Return whether each could stand for the other: names such as from_city, to_city; one form."""
    names = [re.split(r"[_ ]", value.name.rstrip("0123456789_"))[-1] for value in (one, two)]
    forms = [re.sub(r"[^\W\d]+", "a", re.sub("[0-9]", "9", value.said)) for value in (one, two)]
    return names[0] == names[1] and forms[0] == forms[1]


def _apart(between: str) -> bool:
    """Return whether the words between two values give each a role of its own."""
    return not re.fullmatch(r"\W*(and|or)?\W*", between)


def _case(row: Row, rng: random.Random) -> Mutation | None:
    value = _pick([v for v in _values(row) if _has_case(row.text, v)], rng)
    if value is None:
        return None
    return _as_said(row, value, "case of a value", value.said.swapcase())


def _has_case(text: str, value: _Value) -> bool:
    """Return whether the case of a value tells: it is a code, a file or quoted."""
    said = value.said
    code = re.fullmatch(r"\S*([0-9]\S*[A-Za-z]|[A-Za-z]\S*[0-9]|[a-z][A-Z])\S*", said)
    quoted = text[: value.start].endswith(('"', "'")) and re.search(r"[A-Za-z]", said)
    return bool(code or quoted)


def _digit(row: Row, rng: random.Random) -> Mutation | None:
    value = _pick([v for v in _values(row) if re.search(r"[0-9]", v.said)], rng)
    if value is None:
        return None
    at = rng.choice([m.start() for m in re.finditer(r"[0-9]", value.said)])
    other = rng.choice([d for d in "123456789" if d != value.said[at]])
    ways = [
        value.said[:at] + other + value.said[at + 1 :],
        value.said[:at] + other + value.said[at:],
    ]
    if len(re.findall(r"[0-9]", value.said)) > 1:
        ways.append(value.said[:at] + value.said[at + 1 :])
    return _as_said(row, value, "digit of a value", rng.choice(ways))


def _unit(row: Row, rng: random.Random) -> Mutation | None:
    value = _pick([v for v in _values(row) if _number(v.said) is not None], rng)
    if value is None:
        return None
    unit = rng.choice(UNITS)
    glued = unit in {"k", "%"}
    text = row.text[: value.end] + ("" if glued else " ") + unit + row.text[value.end :]
    times = FACTORS.get(unit)
    number = _number(value.said)
    if times is None or number is None:
        return Mutation("unit of a value", text)
    fits: list[Json] = (
        [number * times] if not isinstance(value.value, str) else [str(number * times)]
    )
    if isinstance(value.value, str):
        fits.append(f"{value.said}{unit}")
        fits.append(f"{value.said} {unit}")
    plans = tuple(_replaced(row.plan, {value.said: fit}, [value]) for fit in fits)
    return Mutation("unit of a value", text, plans)


# Words ---------------------------------------------------------------------------------------


def _words(row: Row) -> list[tuple[int, int]]:
    """Return where content words stand that are part of no value, even of one said twice."""
    said = [p.mention for p in row.params if p.mention]
    taken = [m.span() for words in said for m in re.finditer(re.escape(words), row.text)]
    quoted = [m.span() for m in re.finditer(r"\"[^\"]*\"|'[^']*'", row.text)]
    spans = [m.span() for m in re.finditer(r"(?<![\w'-])[a-z]{4,}(?![\w'-])", row.text)]
    return [
        (start, end)
        for start, end in spans
        if row.text[start:end] not in PLAIN
        and not any(start < stop and begin < end for begin, stop in (*taken, *quoted))
    ]


def _gaps(row: Row) -> list[int]:
    """Return where a word may be inserted: at blanks outside of values and quotes."""
    said = [p.mention for p in row.params if p.mention]
    taken = [m.span() for words in said for m in re.finditer(re.escape(words), row.text)]
    taken += [m.span() for m in re.finditer(r"\"[^\"]*\"|'[^']*'", row.text)]
    blanks = [m.start() for m in re.finditer(r"(?<=\S) (?=\S)", row.text)]
    return [at for at in blanks if not any(start < at < end for start, end in taken)]


def _at_word(kind: str, change: Callable[[str, random.Random], str]) -> "_Make":
    def make(row: Row, rng: random.Random) -> Mutation | None:
        span = _pick(_words(row), rng)
        if span is None:
            return None
        start, end = span
        new = change(row.text[start:end], rng)
        return Mutation(kind, row.text[:start] + new + row.text[end:])

    return make


def _at_gap(kind: str, words: tuple[str, ...]) -> "_Make":
    def make(row: Row, rng: random.Random) -> Mutation | None:
        at = _pick(_gaps(row), rng)
        if at is None:
            return None
        former = row.plan if kind == "word inserted" else None
        return Mutation(kind, f"{row.text[:at]} {rng.choice(words)}{row.text[at:]}", former=former)

    return make


def _word_dropped(row: Row, rng: random.Random) -> Mutation | None:
    blanks = set(_gaps(row))
    found = [
        m.span()
        for m in re.finditer(r"(?<![\w'-])[a-z]+(?= )", row.text)
        if m.group() in TELLING and m.end() in blanks
    ]
    span = _pick(found, rng)
    if span is None:
        return None
    text = row.text[: span[0]] + row.text[span[1] + 1 :]
    return Mutation("word dropped", text, former=row.plan)


def _homoglyph(row: Row, rng: random.Random) -> Mutation | None:
    values = [v for v in _values(row) if v.said.translate(LOOKALIKES) != v.said]
    value = _pick(values, rng)
    if value is not None and rng.random() < 0.5:
        return _as_said(row, value, "homoglyph", _lookalike(value.said, rng))
    spans = [s for s in _words(row) if (w := row.text[slice(*s)]).translate(LOOKALIKES) != w]
    span = _pick(spans, rng)
    if span is None:
        return None
    word = _lookalike(row.text[slice(*span)], rng)
    return Mutation("homoglyph", row.text[: span[0]] + word + row.text[span[1] :])


def _lookalike(word: str, rng: random.Random) -> str:
    other = word.translate(LOOKALIKES)
    at = rng.choice([i for i, letter in enumerate(word) if other[i] != letter])
    return word[:at] + other[at] + word[at + 1 :]


def _clause(row: Row, rng: random.Random) -> Mutation:
    body = row.text.rstrip()
    text, end = (body[:-1].rstrip(), body[-1]) if body[-1:] in {".", "?", "!"} else (body, "")
    return Mutation("clause", f"{text} {rng.choice(CLAUSES)}{end}")


def _harmless(row: Row, rng: random.Random) -> Mutation:
    body = row.text.strip().rstrip(".?! ")
    return Mutation("harmless", rng.choice(POLITE).format(body), (row.plan,))


def _pick(items: list[Any], rng: random.Random) -> Any:  # noqa: ANN401 - one of `items`
    return rng.choice(items) if items else None


def _signed(word: str, rng: random.Random) -> str:
    return rng.choice(SIGNS_BEFORE) + word


def _numbered(word: str, rng: random.Random) -> str:
    return f"{word}{rng.randint(2, 9)}"


def _foreign(_: str, rng: random.Random) -> str:
    return rng.choice(FOREIGN)


_Make = Callable[[Row, random.Random], Mutation | None]

KINDS: dict[str, _Make] = {
    "sign at a value": _sign_at_value,
    "sign at a word": _at_word("sign at a word", _signed),
    "sign alone": _at_gap("sign alone", SYMBOLS),
    "word inserted": _at_gap("word inserted", INSERTED),
    "word dropped": _word_dropped,
    "word replaced": _at_word("word replaced", _foreign),
    "value dropped": _value_dropped,
    "values swapped": _swapped,
    "case of a value": _case,
    "digit of a value": _digit,
    "digit in a word": _at_word("digit in a word", _numbered),
    "unit of a value": _unit,
    "homoglyph": _homoglyph,
    "clause": _clause,
    "harmless": _harmless,
}
"""Kind → what makes one of it, or None where a prompt has nothing of the sort."""
