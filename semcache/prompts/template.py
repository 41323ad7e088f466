"""Template text: a prompt with its mentions replaced by their slot types."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from semcache.canonical import Json, same
from semcache.process.memo import memoized
from semcache.prompts.mentions import Mention, possible_values
from semcache.prompts.parameter import Parameter, name_key, type_key
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.recognizers.recognition import DAYS, MONTHS
from semcache.prompts.tokens import HOLE, filled, folded
from semcache.prompts.words import CLOSED_CLASS, MEANING, singular


class Slot(NamedTuple):  # as `Mention`
    """A place in a template text that a mention left."""

    kind: str
    """Slot type."""
    name: str
    """Parameter or field of the mention; empty if unknown."""
    before: str
    """The literal word to its left; empty at the start and directly after another slot."""
    mention_text: str
    """The words that stood there."""
    value: Json
    """The value that they carried."""
    relative: bool = False
    """Whether the value depends on when the prompt was asked."""


@memoized(2_000)
def _sorted(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(kinds))


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A prompt without its values: `total sales in <year> by category`."""

    text: str
    """The normalized text; a `<…>` in it is always a slot."""
    slots: tuple[Slot, ...]
    """The slots in the order of the text."""
    signature: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The slot types, sorted, each as often as it occurs."""

    def __post_init__(self) -> None:
        kinds = _sorted(tuple([slot.kind for slot in self.slots]))
        object.__setattr__(self, "signature", kinds)

    @property
    def digest(self) -> str:
        """SHA-256 hex of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_NOT_A_NAME = re.compile(r"[^\w.]+")
_WORD = re.compile(r"[\w']+")
_LONGEST_WORD = 40  # characters looked back for the word before a slot


def mask(text: str, mentions: Sequence[Mention]) -> TemplateText:
    """Return `text` with each mention replaced by `<kind>`, folded (`tokens.IGNORED`).

    A `<word>` that stood in the prompt itself is no slot. `mentions` are in order and do not
    overlap, as `find_mentions` returns them.
    """
    # A checked prompt has no NUL; what was not checked must not spell a slot with it.
    text = text.replace(HOLE, "\ufffd")
    pieces: list[str] = []
    slots: list[Slot] = []
    at = 0
    for mention in mentions:
        literal = text[at : mention.start]
        kind, before = mention.kind, _last_word(literal)
        kind = kind if kind.isidentifier() else slot_name(kind)
        slots.append(
            Slot(kind, mention.name, before, mention.text, mention.value, mention.relative)
        )
        pieces += (literal, HOLE)
        at = mention.end
    pieces.append(text[at:])
    masked = filled(folded("".join(pieces)), [slot.kind for slot in slots])
    return TemplateText(masked, tuple(slots))


def _last_word(literal: str) -> str:
    tail = literal[-_LONGEST_WORD:]
    words = tail.rsplit(maxsplit=1)
    if not (words and words[-1].isalnum()):  # signs between or behind words
        words = _WORD.findall(tail)
    return words[-1].casefold() if words else ""


def slot_name(kind: str) -> str:
    """Return `kind` as it stands between the brackets of a slot."""
    return kind if kind.isidentifier() else _NOT_A_NAME.sub("_", kind)


# Given template: a prompt as it reads once the values that its caller gave are taken out of it.
#
# A caller that hands over every value by name says what the plan depends on. So what a value looks
# like in the prompt no longer matters: `<city>` stands where the words of `city` stood, whether
# they are "SFO", "1.5 hours" for "1.5 hour", or "March 2nd" for "2019-03-02"; words that no
# parameter carries stay words, though they look like values seen before. Only what the recognizers
# or a closed set find beside them stays a slot of its own: a number that nobody gave must be told
# apart.


class _Span(NamedTuple):
    start: int
    end: int


def given_template(
    text: str,
    given: Sequence[Parameter],
    mentions: Sequence[Mention],
    learned: LearnedValues | None = None,
) -> TemplateText:
    """Return `text` with the words of each given value replaced by its name.

    `mentions` are what `find_mentions` found with the same `given`. A slot of a given value has its
    name, any other has none. Where the words of a value are not found, nothing is replaced.
    """
    places = _Places(text, mentions)
    for parameter in sorted(given, key=lambda p: -len(p.words)):
        if name_key(parameter.name) not in places.names:
            places.place(parameter, _spans(text, parameter, learned))
    for agreement in (agrees, may_agree):
        waiting = [p for p in given if name_key(p.name) not in places.names]
        places.match(waiting, agreement)
    places.repeat()
    return places.template()


class _Places:
    """Where given values stand in a text, and what else was found there."""

    def __init__(self, text: str, mentions: Sequence[Mention]) -> None:
        self._text = text
        self._given = [m for m in mentions if m.source == "given"]
        self._own = [m for m in mentions if m.source in {"recognized", "closed"}]
        self.names = {name_key(m.name) for m in self._given}

    def place(self, parameter: Parameter, spans: Iterator[_Span]) -> None:
        """Put `parameter` at the first of `spans` where nothing given or quoted stands."""
        for span in spans:
            if not any(_overlap(span, m) for m in self._given) and not self._cuts_own(span):
                self._put(parameter, span, "")
                return

    def _cuts_own(self, span: _Span) -> bool:
        """Return whether `span` takes only a part of something found."""
        return any(
            _overlap(span, m) and not (span.start <= m.start and m.end <= span.end)
            for m in self._own
        )

    def _put(self, parameter: Parameter, span: _Span, kind: str) -> None:
        words = self._text[span.start : span.end]
        kind = kind or type_key(parameter.name)
        mention = Mention(*span, words, kind, parameter.value, "given", parameter.name)
        self._given.append(mention)
        self._own = [m for m in self._own if not _overlap(span, m)]
        self.names.add(name_key(parameter.name))

    def match(self, waiting: Sequence[Parameter], agreement: "Agreement") -> None:
        """Give each of `waiting` the one mention that agrees with it and with no other."""
        fits = [(p, m) for p in waiting for m in self._own if agreement(p.value, m)]
        for parameter, mention in fits:
            alone = [pair for pair in fits if pair[0] is parameter or pair[1] is mention]
            if len(alone) == 1:
                self._put(parameter, _Span(mention.start, mention.end), mention.kind)

    def repeat(self) -> None:
        """Let what says a given value again carry its name too."""
        for own in list(self._own):
            twins = [m for m in self._given if m.kind == own.kind and agrees(m.value, own)]
            if len({name_key(m.name) for m in twins}) == 1:
                self._own.remove(own)
                self._given.append(own._replace(source="given", name=twins[0].name))

    def template(self) -> TemplateText:
        found = sorted([*self._given, *(m._replace(name="") for m in self._own)])
        masked = mask(self._text, [m._replace(kind=name_key(m.name) or m.kind) for m in found])
        kinds = [slot._replace(kind=m.kind) for slot, m in zip(masked.slots, found, strict=True)]
        return TemplateText(masked.text, tuple(kinds))


def _overlap(left: "_Span | Mention", right: "_Span | Mention") -> bool:
    return left.start < right.end and right.start < left.end


# ── words ────────────────────────────────────────────────────────────────────────────────────────

_RUN = re.compile(r"[^\W_]+")
_JOINT = 3
"""Signs that may stand between two words of a value: 10/20, 10 - 20."""
_LIGHT = CLOSED_CLASS - MEANING


def _spans(text: str, parameter: Parameter, learned: LearnedValues | None) -> Iterator[_Span]:
    """Yield where words for `parameter` may stand, the surest first."""
    runs = [_Span(*match.span()) for match in _RUN.finditer(text)]
    folded = [_folded(text[run.start : run.end]) for run in runs]
    for words in dict.fromkeys(filter(None, (parameter.words, _text(parameter.value)))):
        yield from _respelled(text, runs, folded, words)
    if learned is not None:
        slot_type = type_key(parameter.name)
        for start, end, _ in learned.find(text):
            known = learned.translation(slot_type, text[start:end])
            if known is not None and same(known, parameter.value):
                yield _Span(start, end)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _folded(word: str) -> str:
    return str(int(word)) if word.isdecimal() else singular(word.casefold())


def _respelled(
    text: str, runs: Sequence[_Span], folded: Sequence[str], words: str
) -> Iterator[_Span]:
    """Yield where `words` stand in other case, number, or with other signs between them."""
    wanted = [_folded(run) for run in _RUN.findall(words)]
    if not wanted or (len(wanted) == 1 and not _is_telling(wanted[0])):
        return
    size = len(wanted)
    for at in range(len(folded) - size + 1):
        if [*folded[at : at + size]] == wanted and _is_close(text, runs[at : at + size]):
            yield _Span(runs[at].start, runs[at + size - 1].end)


def _is_telling(word: str) -> bool:
    """Return whether one word alone can be found: a number or an article stands anywhere."""
    return not word.isdecimal() and len(word) > 2 and word not in _LIGHT


def _is_close(text: str, runs: Sequence[_Span]) -> bool:
    return all(len(text[a.end : b.start].strip()) <= _JOINT for a, b in pairwise(runs))


# ── agreement ────────────────────────────────────────────────────────────────────────────────────

Agreement: TypeAlias = Callable[[Json, Mention], bool]
"""Whether a mention may say a value."""

_COUNTED = frozenset({"number", "year", "ordinal", "money", "percent"})
_DATED = frozenset({"date", "datetime", "month", "weekday", "ordinal"})
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9])")
_DIGITS_OR_LETTERS = re.compile(r"[0-9]+|[^\W\d_]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?%?")


def agrees(value: Json, mention: Mention) -> bool:
    """Return whether `mention` says `value`: "3.8" says "3.80", "the 2nd of March" 2019-03-02.

    The words need not say all of it: a day without its year agrees with every year.
    """
    may_be = possible_values(mention.kind, mention.text, mention.value)
    if any(same(value, each) for each in (mention.value, *may_be) if each is not None):
        return True
    if mention.kind in _COUNTED and _as_number(mention.value) is not None:
        if _as_number(value) == _as_number(mention.value):
            return True
    elif isinstance(value, str) and value.casefold() == mention.text.casefold():
        return True
    day = _as_day(value)
    return day is not None and mention.kind in _DATED and _says_day(mention, day)


def may_agree(value: Json, mention: Mention) -> bool:
    """Return whether `mention` may say `value`: a date, and words for one such as "tomorrow"."""
    return _as_day(value) is not None and mention.relative and mention.kind in _DATED


def _as_number(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    spelled = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
    return float(str(value).strip().rstrip("%")) if spelled else None


def _as_day(value: Json) -> date | None:
    match = _DAY.match(value) if isinstance(value, str) else None
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _says_day(mention: Mention, day: date) -> bool:
    """Return whether numbers, month and weekday that the words name are those of `day`."""
    if mention.kind == "ordinal":
        return mention.value == day.day
    words = _DIGITS_OR_LETTERS.findall(mention.text.casefold())
    numbers = [int(word) for word in words if word.isdecimal()]
    months = {MONTHS[word] for word in words if word in MONTHS}
    weekdays = {DAYS[word] for word in words if word in DAYS}
    left = [day.year, day.month, day.day, day.year % 100]
    for number in numbers:
        if number not in left:
            return False
        left.remove(number)
    named = bool(weekdays) or (bool(numbers) and day.day not in left)
    return named and months <= {day.month} and weekdays <= {day.strftime("%A")}
