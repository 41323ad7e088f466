"""Conditions: "over $500", "in Texas or Ohio", "excluding toys", and the fields that they bound."""

from dataclasses import dataclass, replace

from semcache.canonical import Json
from semcache.planners.rules.cursor import Cursor, Term
from semcache.planners.rules.draft import Filter
from semcache.planners.rules.frame import role

MAX_LISTED = 50
"""Values in one list of a prompt, so that reading takes time in proportion to its length."""

_SIZES = frozenset({"number", "money", "percent"})
TIMES = frozenset({"year", "date", "month", "quarter", "time"})
"""Kinds of values and last words of fields that say when something is."""
_LISTED = frozenset({"closed", "year", "month", "quarter", "code", "identifier", "email"})
_ADDRESSES = frozenset({"email", "url"})
# Prepositions that say no more than that a value belongs to the noun.
PLAIN = frozenset({
    "in", "during", "within", "for", "of", "from", "at", "on", "with", "by", "via", "through",
    "using",
})  # fmt: skip
_LIST_OPERATORS = frozenset({"in", "not_in"})
_NEGATIONS = frozenset({"!=", "not_in"})
_ISO_DATE = 10  # characters of 2024-03-11; "2024-03" is a month, which no day equals


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison as it stands in the prompt."""

    operator: str
    terms: tuple[Term, ...]
    next: int
    """Where the prompt goes on."""
    hint: str = ""
    """The field that it names; empty if it names none."""
    preposition: str = ""
    either: bool = False
    """Whether its terms are parted by "or"."""


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def condition(c: Cursor, at: int, hint: str = "") -> Condition | None:
    """Return the condition that begins at `at`, on the field `hint` if one was named, or None."""
    for kind in (_between, _range, _negated, _compared, _equal):
        found = kind(c, at, hint)
        if found is not None:
            return found
    return None


def span(c: Cursor, at: int) -> Condition | None:
    """Return "2021 to 2023" or "2021-2023", or None."""
    low, high = c.term(at), c.term(at + 2)
    if low is None or high is None or not c.sense(at + 1, "to") or not _two_ends(low, high):
        return None
    return Condition("between", (low, high), at + 3)


def _between(c: Cursor, at: int, hint: str) -> Condition | None:
    low, high = c.term(at + 1), c.term(at + 3)
    if not c.sense(at, "between") or not c.sense(at + 2, "and") or low is None or high is None:
        return None
    if not _two_ends(low, high):
        return None
    return Condition("between", (low, high), at + 4, hint)


def _range(c: Cursor, at: int, hint: str) -> Condition | None:
    start = at + 1 if c.sense(at, "from") else at
    found = span(c, start) if start > at or hint else None
    return replace(found, hint=hint) if found is not None else None


def _two_ends(low: Term, high: Term) -> bool:
    # "$100 to 500" leaves the second sign out.
    pair = (low.kind, high.kind)
    alike = low.kind == high.kind or pair in {("money", "number"), ("number", "money")}
    return alike and low.kind in _SIZES | TIMES


def _negated(c: Cursor, at: int, hint: str) -> Condition | None:
    if not c.sense(at, "not"):
        return None
    start = _after_preposition(c, at + 1)
    named = c.field(start)
    if named and c.term(c.skip(start + 1)) is not None:
        start, hint = c.skip(start + 1), named
    terms, to, either = _terms(c, start)
    if not terms or any(term.kind in _SIZES for term in terms):
        return None
    return Condition("!=" if len(terms) == 1 else "not_in", terms, to, hint, either=either)


def _compared(c: Cursor, at: int, hint: str) -> Condition | None:
    timely = c.sense(at, "when")
    operator = timely or c.sense(at, "cmp") or c.sense(at, "worth")
    start = c.skip(at + 1)
    term = c.term(start) if operator else None
    if term is None or not _goes_with(operator, term, timely=bool(timely), hint=hint):
        return None
    onward = 1 if timely == ">=" and c.sense(start + 1, "onward") else 0
    return Condition(operator, (term,), start + 1 + onward, hint)


def _goes_with(operator: str, term: Term, *, timely: bool, hint: str) -> bool:
    """Return whether a comparison goes with this term: neither "over 2022" nor "over toys" does."""
    if timely:
        return term.kind in TIMES
    if term.kind in TIMES:
        return bool(hint)
    held = [value for value in term.closed.values() if isinstance(value, int | float)]
    return term.kind in _SIZES or bool(held) or (operator in {"=", "!="} and not term.closed)


def _equal(c: Cursor, at: int, hint: str) -> Condition | None:
    terms, to, either = _terms(c, at)
    if not terms:
        return None
    after = c.sense(to, "postcmp")
    if after and len(terms) == 1 and terms[0].kind in _SIZES | TIMES:
        return Condition(after, terms, to + 1, hint)
    return Condition("=" if len(terms) == 1 else "in", terms, to, hint, either=either)


def _terms(c: Cursor, at: int) -> tuple[tuple[Term, ...], int, bool]:
    """Return a list of like values, where it ends, and whether "or" parts them."""
    first = c.term(at)
    if first is None:
        return (), at, False
    terms, at, either = [first], at + 1, False
    while first.kind in _LISTED and len(terms) < MAX_LISTED:
        to, joint = _joint(c, at)
        to = _after_preposition(c, to) if joint else to
        term = c.term(to) if joint else None
        if term is None or not _alike(first, term):
            break
        terms.append(term)
        at, either = to + 1, either or joint == "or"
    return tuple(terms), at, either


def _joint(c: Cursor, at: int) -> tuple[int, str]:
    """Return where a list goes on after a comma, "and" or "or", and which of them it was."""
    joint = ""
    if c.sense(at, "comma"):
        at, joint = at + 1, "comma"
    for word in ("and", "or"):
        if c.sense(at, word):
            return at + 1, word
    return at, joint


def _after_preposition(c: Cursor, at: int) -> int:
    at = c.skip(at)
    return c.skip(at + 1) if c.sense(at, "prep") in PLAIN else at


def _alike(first: Term, other: Term) -> bool:
    if first.kind != other.kind:
        return False
    return first.kind != "closed" or bool(first.closed.keys() & other.closed.keys())


# ── from a condition to a filter ─────────────────────────────────────────────────────────────────


def take(c: Cursor, found: Condition | None) -> bool:
    """Take a condition, if its field is certain and nothing else is said of that field."""
    if found is None or _may_be_excluded(c, found):
        return False
    if _take_pair(c, found):
        return c.take(found.next, "filter")
    name, to = _field(c, found)
    if not name or not _fits(c, found, name) or _may_bound_figures(c, name):
        return False
    values = tuple(term.value(c.frame, name) for term in found.terms)
    words = tuple(term.unit.text for term in found.terms)
    if not c.draft.add(Filter(name, found.operator, values, words)):
        return False
    c.negated = c.negated or found.operator in _NEGATIONS
    if c.field(to) == name and not found.hint:  # "California state"
        to += 1
    return c.take(to, "filter")


def _may_be_excluded(c: Cursor, found: Condition) -> bool:
    """Return whether the condition may belong to what was excluded: "excluding toys in Texas"."""
    timely = all(term.kind in TIMES for term in found.terms)
    return c.negated and not timely and found.operator not in _NEGATIONS


def _may_bound_figures(c: Cursor, name: str) -> bool:
    """Return whether the condition may be on a figure: "by state, over 9", "total is over 9"."""
    ranked = c.draft.rank is not None and bool(c.draft.rank.subject)
    figures = set(c.draft.aggregates.values()) - {"count"}
    stated = bool(figures) and c.sense(c.at - 1, "fill") == "copula"
    return c.frame.summable(name) and (bool(c.draft.groups) or ranked or stated)


def _field(c: Cursor, found: Condition) -> tuple[str, int]:
    """Return the field of a condition and where the prompt goes on; empty if not certain."""
    if found.hint:
        return (found.hint if _may_hold(c, found, found.hint) else ""), found.next
    term = found.terms[0]
    if term.closed:
        return _by_role(c, found), found.next
    if term.kind in _SIZES and found.operator != "=":
        return _of_size(c, found)
    names = _of_kind(c, found, term)
    fitting = [name for name in names if c.frame.takes(name, found.operator)]
    return (fitting[0] if len(fitting) == 1 else ""), found.next


def _of_kind(c: Cursor, found: Condition, term: Term) -> list[str]:
    """Return the fields whose name says that they hold values of this kind."""
    if term.unit.mention is None or term.kind.startswith("money"):
        return []
    names = list(c.frame.fields_of(term.unit.mention, _noun_before(c, found)))
    return names + list(c.frame.since(found.operator) if term.kind in {"year", "date"} else ())


def _noun_before(c: Cursor, found: Condition) -> str:
    """Return the noun that an id follows directly: "order 17"."""
    direct = found.operator == "=" and c.last == "entity" and found.next == c.at + 1
    return c.text(c.at - 1).lower() if direct else ""


def _by_role(c: Cursor, found: Condition) -> str:
    """Return the one field that all terms may have, told apart by "from" and "to"."""
    common = set(found.terms[0].closed)
    for term in found.terms[1:]:
        common &= set(term.closed)
    names = sorted(name for name in common if name in c.frame.fields)
    direction = found.preposition if found.preposition in {"from", "to"} else ""
    if direction and (played := [name for name in names if role(name) == direction]):
        names = played
    elif direction == "to" or (direction and any(map(role, names))):
        return ""
    return names[0] if len(names) == 1 else ""


def _of_size(c: Cursor, found: Condition) -> tuple[str, int]:
    """Return the field of "over $500" or "at least 3 units", and where the prompt goes on."""
    named = c.field(found.next)
    if named and found.terms[-1].kind == "number" and not c.sense(found.next, "entity"):
        return (named if _may_hold(c, found, named) else ""), found.next + 1
    if c.last not in {"entity", "filter"}:
        return "", found.next
    if c.frame.shape.query is not None:
        return c.frame.measure, found.next
    sized = {one.field for one in c.frame.shape.inputs if one.types & {"number", "integer"}}
    names = [name for name in sized if c.frame.takes(name, found.operator)]
    money = found.terms[0].kind == "money" and len(names) == 1
    return (names[0] if money else ""), found.next


def _may_hold(c: Cursor, found: Condition, name: str) -> bool:
    """Return whether a field that was named can be compared with these terms."""
    kinds = {term.kind for term in found.terms}
    if name in c.frame.closed:
        return all(name in term.closed for term in found.terms)
    if kinds <= _ADDRESSES and name not in (own := _of_kind(c, found, found.terms[0])) and own:
        return False  # "customer ada@example.com" has a field for the address
    tail = name.rsplit("_", 1)[-1]
    if tail in {"year", "month", "quarter"}:
        return kinds <= {tail, "number", "given"}
    if tail in {"date", "day"}:
        return kinds <= {"date", "given"}
    if found.operator not in {"=", "!=", "in", "not_in"}:
        return kinds <= _SIZES | {"given"} or tail in {"since", "until"}
    return not kinds & TIMES or tail in {"since", "until", "time"}


def _fits(c: Cursor, found: Condition, name: str) -> bool:
    """Return whether the operation can compare the field so, and the values make sense there."""
    if not c.frame.takes(name, found.operator):
        return False
    # What a plain operation does with a list is its own affair: any of them, or all.
    if found.either and c.frame.shape.query is None:
        return False
    tail = name.rsplit("_", 1)[-1]
    if tail in {"date", "day"} and not all(map(_full_date, found.terms)):
        return False
    # Before or after a month is before or after that month of some year.
    if tail in {"month", "quarter"} and found.operator not in {"=", "in", "between"}:
        return False
    return found.operator != "between" or _in_order(*(t.value(c.frame, name) for t in found.terms))


def _full_date(term: Term) -> bool:
    mention = term.unit.mention
    if term.kind == "given" or mention is None:
        return True
    value = mention.value
    return isinstance(value, str) and len(value) == _ISO_DATE and value[4] == "-" == value[7]


def _in_order(low: Json, high: Json) -> bool:
    match low, high:
        case (int() | float(), int() | float()):
            return low <= high
        case (str(), str()):
            return low <= high
        case _:
            return False


def _take_pair(c: Cursor, found: Condition) -> bool:
    """Take the first and second value of an operation that compares two, in their order."""
    names = c.frame.pair(found.terms[0].kind)
    if names is None or found.hint or found.either or found.operator not in {"=", "in", "between"}:
        return False
    taken = {one.field for one in c.draft.filters}
    if len(found.terms) != len(names) or not taken.isdisjoint(names):
        return False
    for name, term in zip(names, found.terms, strict=True):
        given = next((field for field in term.closed if field in names), name)
        c.draft.add(Filter(given, "=", (term.value(c.frame, given),), (term.unit.text,)))
    return True
