"""Phrases: a prompt as a row of units, each a phrase with everything that it may stand for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcache.planners.rules.frame import Frame
from semcache.planners.rules.lexicon import LONGEST, PHRASES, Sense
from semcache.prompts.mentions import Mention
from semcache.prompts.words import CLOSED_CLASS, singular

_TOKEN = re.compile(r"\w+(?:['\u2019]\w+)?|[<>=!]=|<>|[^\w\s'\u2019]")
_POSSESSIVE = re.compile(r"['\u2019]s$")
_NOT = re.compile(r"n't$")
_HYPHENS = ("-", "\u2013")


class Token(NamedTuple):
    """One word or sign of a prompt."""

    start: int
    end: int
    word: str
    """Case-folded, without a possessive ending; `not` for the "n't" of a verb."""
    single: str
    """Its singular."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A phrase of a prompt, as long as any that is known, and what it may stand for."""

    text: str
    """As it stands in the prompt."""
    senses: tuple[Sense, ...]
    mention: Mention | None = None
    """The value of an open class that it is; None if it is none."""
    plural: bool = False
    """Whether its last word is a plural."""

    kinds: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Kind → value of its first sense of that kind."""

    def __post_init__(self) -> None:
        kinds: dict[str, str] = {}
        for sense in self.senses:
            kinds.setdefault(sense.kind, sense.value)
        object.__setattr__(self, "kinds", kinds)

    def values(self) -> tuple[Sense, ...]:
        """Return the closed values that it may be, one for each field that has it."""
        return tuple(sense for sense in self.senses if sense.kind == "value")


def tokenized(text: str) -> tuple[Token, ...]:
    """Return the words and signs of `text`; a hyphen within a word only parts it."""
    return tuple(
        _token(match)
        for match in _TOKEN.finditer(text)
        if match[0] not in _HYPHENS or not _joins_letters(text, *match.span())
    )


def _token(match: "re.Match[str]") -> Token:
    written = _POSSESSIVE.sub("", match[0])
    end = match.start() + len(written)
    if written in _HYPHENS:
        return Token(match.start(), end, "-", "-")
    word = written.casefold().replace("\u2019", "'")
    word = "not" if _NOT.search(word) else word
    return Token(match.start(), end, word, singular(word))


def _joins_letters(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (before.isalpha() and after.isalnum()) or (before.isalnum() and after.isalpha())


def units(
    text: str, tokens: Sequence[Token], mentions: Sequence[Mention], frame: Frame
) -> tuple[Unit, ...]:
    """Return the prompt as units: the longest known phrase at each place, mentions among them."""
    covers = _covers(tokens, mentions)
    shouted = text.upper() == text
    row: list[Unit] = []
    at = 0
    while at < len(tokens):
        length, senses = _longest(tokens, at, frame)
        end, mention = covers.get(at, (at, None))
        if mention is not None and end - at >= length:
            senses = senses if end - at == length else ()
            length = end - at
        else:
            mention = None
        span = tokens[at : at + length]
        if length == 1:
            senses = _without_chance_codes(senses, tokens, at, text, shouted=shouted)
        words = mention.text if mention else text[span[0].start : span[-1].end]
        row.append(Unit(words, senses, mention, plural=span[-1].word != span[-1].single))
        at += length
    return tuple(row)


def _covers(tokens: Sequence[Token], mentions: Sequence[Mention]) -> dict[int, tuple[int, Mention]]:
    """Return first token → token after the last, and the mention that they are."""
    covers: dict[int, tuple[int, Mention]] = {}
    at = 0
    for mention in mentions:
        while at < len(tokens) and tokens[at].end <= mention.start:
            at += 1
        first = at
        while at < len(tokens) and tokens[at].start < mention.end:
            at += 1
        if at > first:
            covers[first] = (at, mention)
    return covers


def _longest(tokens: Sequence[Token], at: int, frame: Frame) -> tuple[int, tuple[Sense, ...]]:
    """Return how many tokens the longest known phrase here has, and what it may stand for."""
    first = tokens[at]
    most = max(LONGEST.get(first.word, 0), frame.longest.get(first.single, 0))
    for length in range(min(most, len(tokens) - at), 0, -1):
        span = tokens[at : at + length]
        senses = frame.words.get(tuple(token.single for token in span), ())
        senses += PHRASES.get(tuple(token.word for token in span), ())
        if senses:
            return length, senses
    return 1, ()


_BEFORE_A_NAME = frozenset({"in", "for", "from", "of", "at", "to", ",", "and", "or", "state"})


def _without_chance_codes(
    senses: tuple[Sense, ...], tokens: Sequence[Token], at: int, text: str, *, shouted: bool
) -> tuple[Sense, ...]:
    """Return the senses of a word without values that are only spelled like it.

    "in", "or" and "me" are codes of Indiana, Oregon and Maine. Such a word is a value only if it is
    spelled exactly as the value, in a prompt that is not all in capitals, and stands where a name
    does; "TX OR CA" is a choice between two.
    """
    token = tokens[at]
    if token.word not in CLOSED_CLASS or not any(sense.kind == "value" for sense in senses):
        return senses
    named = not shouted and at > 0 and tokens[at - 1].word in _BEFORE_A_NAME
    words = text[token.start : token.end]
    exact = tuple(s for s in senses if s.kind == "value" and s.value == words and named)
    if exact and not _a_code_follows(tokens, at, text):
        return exact
    return tuple(sense for sense in senses if sense.kind != "value")


def _a_code_follows(tokens: Sequence[Token], at: int, text: str) -> bool:
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    return after is not None and after.word not in CLOSED_CLASS and _capital(after, text)


def _capital(token: Token, text: str) -> bool:
    return text[token.start : token.end][:1].isupper()
