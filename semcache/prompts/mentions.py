"""Mentions: the words of a prompt that carry values."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from semcache.canonical import Json, same
from semcache.errors import InvalidParameter
from semcache.prompts.parameter import Parameter, type_key
from semcache.prompts.recognizers.closed_values import ClosedValues
from semcache.prompts.recognizers.dates import (
    DATE_SIGNS,
    DATE_WORDS,
    TIME_WORDS,
    dates,
    days,
    times,
)
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.recognizers.names import CODE_SIGNS, addresses, codes, quotes
from semcache.prompts.recognizers.numbers import (
    CURRENCIES,
    NUMBER_WORDS,
    number_readings,
    numbers,
)
from semcache.prompts.recognizers.recognition import Recognition, Recognizer
from semcache.prompts.tokens import letter_runs, lowered, occurrences
from semcache.prompts.words import is_grammar

Source: TypeAlias = Literal["given", "recognized", "closed", "learned", "aligned", "supposed"]
"""How a mention was found."""


class Mention(NamedTuple):  # every lookup makes some: a third of the time of a frozen dataclass
    """Words of a prompt that carry a value."""

    start: int
    """Offset of their first character in the checked prompt."""
    end: int
    """Offset after their last character."""
    text: str
    """The words as they stand in the prompt."""
    kind: str
    """Slot type: `number`, `date`…, or the name of a closed set or of a parameter's type."""
    value: Json
    """The value, normalized where the words determine it (5 for "five"), else the words."""
    source: Source
    """How it was found."""
    name: str = ""
    """Parameter or field that it belongs to; empty if unknown. Words said twice carry it twice."""
    relative: bool = False
    """Whether it denotes another thing tomorrow: "last year", the 30 of "last 30 days"."""


class _Candidate(NamedTuple):
    start: int
    end: int
    kind: str
    value: Json
    source: Source
    name: str
    relative: bool
    rank: int
    """0 given, 1 quoted, 2 the rest."""


def find_mentions(
    text: str,
    *,
    given: Sequence[Parameter] = (),
    closed: Mapping[str, Sequence[str]] | None = None,
    learned: LearnedValues | None = None,
) -> tuple[Mention, ...]:
    """Return the mentions of `text` in order; they never overlap.

    Given parameters come first, then quoted text, then the longest span; where spans are equal, an
    open class (number, date…) names the slot before a closed set, and that before a learned value.
    So a span has one kind whether or not it was given or learned before. A given parameter that is
    not in the text has no mention, nor has one whose words are grammar ("more"): they stay literal
    words of the template, since no lookup could tell them from others. `closed` (None: no sets) is
    compiled on each call unless it is a `ClosedValues`.
    """
    candidates = _found(text, closed, learned)
    if given:
        candidates = [*_given(text, given, candidates, learned), *candidates]
    return tuple(
        [
            Mention(start, end, text[start:end], kind, value, source, name, relative)
            for start, end, kind, value, source, name, relative, _ in _without_overlaps(candidates)
        ]
    )


def locate_mentions(text: str, given: Sequence[Parameter]) -> tuple[Mention, ...]:
    """Return the mentions of `given` parameters alone, in the order of the text.

    Raises:
        InvalidParameter: the mention of a parameter does not stand in the text.
    """
    lower = lowered(text)
    for parameter in given:
        if parameter.mention is not None and not any(occurrences(lower, parameter.mention)):
            raise InvalidParameter(
                f"the mention {parameter.mention!r} of parameter {parameter.name!r} does not stand "
                f"in the prompt {text[:80]!r}; give its words as they stand there, or None"
            )
    found = find_mentions(text, given=given)
    return tuple(mention for mention in found if mention.source == "given")


def _found(
    text: str,
    closed: Mapping[str, Sequence[str]] | None,
    learned: LearnedValues | None,
) -> list[_Candidate]:
    """Return all that recognizers, closed sets and learned values find, best name first."""
    found: list[_Candidate] = []
    fields: dict[tuple[int, int], str] = {}
    if closed:
        sets = closed if isinstance(closed, ClosedValues) else ClosedValues(closed)
        for start, end, field, member in sets.find(text):
            fields[start, end] = field
            found.append(_Candidate(start, end, field, member, "closed", field, False, 2))
    for start, end, kind, value, relative in recognized(text):
        name = fields.get((start, end), "") if fields else ""
        rank = 1 if kind == "quoted" else 2
        found.append(_Candidate(start, end, kind, value, "recognized", name, relative, rank))
    if learned is not None:
        for start, end, slot_type in learned.find(text):
            words = text[start:end]
            found.append(_Candidate(start, end, slot_type, words, "learned", slot_type, False, 2))
    return found


_WEAK = frozenset(["code", "identifier"])
_BY_START = itemgetter(0)
_TIES = {"given": 0, "recognized": 1, "closed": 2, "learned": 4}


def _preference(candidate: _Candidate) -> tuple[int, int, int, int]:
    start, end, kind, _, source, _, _, rank = candidate
    # A closed set says more about `in_progress` than that it looks like an identifier.
    tie = 3 if kind in _WEAK and source == "recognized" else _TIES[source]
    return rank, start - end, tie, start


def _without_overlaps(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the best candidates that share no character, in the order of the text."""
    ordered, end = sorted(candidates, key=_BY_START), 0
    for candidate in ordered:
        if candidate.start < end:
            break
        end = candidate.end
    else:
        return ordered  # as in most prompts
    chosen: list[_Candidate] = []
    taken = _Taken()
    for candidate in sorted(candidates, key=_preference):
        if taken.is_free(candidate.start, candidate.end):
            taken.add(candidate.start, candidate.end)
            chosen.append(candidate)
    return sorted(chosen, key=_BY_START)


# ── given parameters ─────────────────────────────────────────────────────────────────────────────


def _given(
    text: str,
    given: Sequence[Parameter],
    candidates: list[_Candidate],
    learned: LearnedValues | None,
) -> Iterator[_Candidate]:
    """Yield a candidate for each given parameter that stands in `text`, and for its repetitions."""
    plain = _Plain(text, candidates, learned, given)
    taken = _Taken()
    placed = []
    # Longer mentions first: "5" must not take the 5 of "5 stars". Sorting keeps the given order.
    for parameter in sorted(given, key=_placing_order):
        if (candidate := plain.place(parameter, taken)) is not None:
            taken.add(candidate.start, candidate.end)
            placed.append(candidate)
    for candidate in placed:
        yield candidate
        yield from plain.repetitions(candidate, taken)


def _placing_order(parameter: Parameter) -> tuple[bool, int]:
    return parameter.mention is None, -len(parameter.words)


class _Taken:
    """Spans that never overlap, quick to ask whether another would."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        at = bisect_left(self._starts, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)

    def is_free(self, start: int, end: int) -> bool:
        at = bisect_left(self._starts, end)
        return at == 0 or self._ends[at - 1] <= start


class _Plain:
    """A text as a lookup without given parameters would see it.

    A given parameter takes over the span and the kind that such a lookup would find, so that an
    entry stored with parameters is found again by a prompt that comes without.
    """

    def __init__(
        self,
        text: str,
        candidates: list[_Candidate],
        learned: LearnedValues | None,
        given: Sequence[Parameter],
    ) -> None:
        self._text = text
        self._given = [p.value for p in given]
        self._learned = learned
        self._lower = lowered(text)
        self._seen = _without_overlaps(candidates)
        self._starts = [candidate.start for candidate in self._seen]
        self._by_span = {}
        for candidate in sorted(candidates, key=_preference, reverse=True):
            self._by_span[candidate.start, candidate.end] = candidate

    def place(self, parameter: Parameter, taken: _Taken) -> _Candidate | None:
        """Return the candidate at the best free place of `parameter`; None if there is none."""
        words = parameter.words
        spans = [
            self._snapped(span, parameter)
            for span in occurrences(self._lower, words)
            if taken.is_free(*span) and not is_grammar(self._text, *span)
        ]
        if not spans and parameter.mention is None:
            spans = self._of_equal_value(parameter, taken)
        free = [span for span in spans if taken.is_free(*span)]
        if not free:
            return None
        return self._candidate(min(free, key=self._awkwardness), parameter)

    def repetitions(self, placed: _Candidate, taken: _Taken) -> Iterator[_Candidate]:
        """Yield the same words again where no other parameter stands, unless they are ordinary."""
        plain = self._by_span.get((placed.start, placed.end))
        if plain is not None and plain.source == "recognized":
            return
        for start, end in occurrences(self._lower, self._lower[placed.start : placed.end]):
            if taken.is_free(start, end) and not is_grammar(self._text, start, end):
                yield placed._replace(start=start, end=end, rank=2)

    def _candidate(self, span: tuple[int, int], parameter: Parameter) -> _Candidate:
        plain = self._by_span.get(span)
        kind = plain.kind if plain is not None else self._kind(parameter)
        relative = plain is not None and plain.relative
        return _Candidate(*span, kind, parameter.value, "given", parameter.name, relative, 0)

    def _kind(self, parameter: Parameter) -> str:
        slot_type = type_key(parameter.name)
        return slot_type if self._learned is None else self._learned.kind(slot_type)

    def _of_equal_value(self, parameter: Parameter, taken: _Taken) -> list[tuple[int, int]]:
        """Return the span of the one free value that is the parameter's: 5 for "five"."""
        equal = [
            (seen.start, seen.end)
            for seen in self._seen
            if self._says(seen, parameter.value) and taken.is_free(seen.start, seen.end)
        ]
        return equal if len(equal) == 1 else []

    def _says(self, seen: _Candidate, value: Json) -> bool:
        if _equal(seen.value, value):
            return True
        may_be = self._readings(seen)
        if not any(same(each, value) for each in may_be):
            return False
        # Two given values that the words may say either of: which of them, nobody can tell.
        return sum(same(each, other) for each in may_be for other in self._given) == 1

    def _readings(self, seen: _Candidate) -> tuple[Json, ...]:
        return possible_values(seen.kind, self._text[seen.start : seen.end], seen.value)

    def _snapped(self, span: tuple[int, int], parameter: Parameter) -> tuple[int, int]:
        """Return the span that a lookup sees here if it means the same: "$500" for "500"."""
        for seen in self._around(span):
            wider = _within(span, seen)
            # A longer given name beats a shorter learned one on every later lookup too.
            narrower = seen.source == "recognized" and _within((seen.start, seen.end), span)
            may_be = (seen.value, *self._readings(seen))
            if (wider or narrower) and any(_equal(each, parameter.value) for each in may_be):
                return seen.start, seen.end
        return span

    def _around(self, span: tuple[int, int]) -> list[_Candidate]:
        first = max(0, bisect_left(self._starts, span[0]) - 1)
        last = bisect_left(self._starts, span[1])
        return [seen for seen in self._seen[first:last] if seen.end > span[0]]

    def _awkwardness(self, span: tuple[int, int]) -> tuple[int, int]:
        """Rank places: a value of its own first, then bare words, then a part of something else."""
        around = self._around(span)
        if span in {(seen.start, seen.end) for seen in around}:
            return 0, span[0]
        inside = any(_within(span, seen) for seen in around)
        return (2 if inside else 1), span[0]


def _within(span: tuple[int, int], other: "_Candidate | tuple[int, int]") -> bool:
    return other[0] <= span[0] and span[1] <= other[1]


def _equal(left: Json, right: Json) -> bool:
    """Return whether two values are the same, be it as number or as text."""
    if isinstance(left, dict | list | bool) or isinstance(right, dict | list | bool):
        return same(left, right)
    return same(left, right) or str(left).casefold() == str(right).casefold()


# The recognizers of this package: what each finds, and the values that its words may have.
#
# A recognizer is a function from text to what it found. Recognizers may overlap: `find_mentions`
# keeps the longest. All are regular expressions, and one is asked only if the text has a sign or a
# word of its own, because every lookup runs them.
#
# Some words say a value in several ways: "03/07/2024" is a day in March or in July, "1.250" a point
# or a group, "10m" millions or minutes, "1.10" a price or a version. Nothing but a plan that was
# made for words written so tells which.


class _Listed(NamedTuple):
    """A recognizer and the texts that it is asked about."""

    find: Recognizer
    signs: "re.Pattern[str]"
    """Found in a text that it has to be asked about."""
    words: frozenset[str] = frozenset()
    """Runs of lower-case letters that do the same."""
    plain: bool = False
    """Whether it may find something by its signs where only letters, digits and spaces stand."""


RECOGNIZERS = (
    _Listed(quotes, re.compile("[\"'`\u2018\u201c\u00ab]")),
    _Listed(addresses, re.compile(r"[@:wW](?:(?<=@)|(?<=:)//|(?<=[wW])[wW]{2}\.)")),
    _Listed(times, re.compile(":"), TIME_WORDS),
    _Listed(dates, DATE_SIGNS, DATE_WORDS),
    _Listed(numbers, re.compile("[0-9]"), NUMBER_WORDS, plain=True),
    _Listed(codes, CODE_SIGNS, plain=True),
)
"""All of them. Where two find the same span, the earlier one names it."""
_NOT_PLAIN = re.compile("[^0-9A-Za-z ]")

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
    signed = _NOT_PLAIN.search(text) is not None
    return [
        found
        for find, signs, own, plain in RECOGNIZERS
        if ((signed or plain) and signs.search(text) is not None) or not own.isdisjoint(words)
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
