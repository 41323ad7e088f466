"""Word classes: what part a word plays in what a prompt asks for, and which words are one word."""

from typing import Literal, TypeAlias

from semcache.matching.words.content import MARKS
from semcache.process.memo import memoized
from semcache.prompts.tokens import is_sign, is_slot
from semcache.prompts.words import (
    AGGREGATION,
    COMPARISON,
    CONJUNCTIONS,
    DIRECTION,
    FUNCTION_WORDS,
    NEGATION,
    ORDER,
    POLITENESS,
    QUANTIFIERS,
    REQUESTS,
    ROLES,
    SCOPE,
    singular,
)

WordClass: TypeAlias = Literal["slot", "meaning", "role", "light", "digit", "open"]
"""`meaning`: signs, and closed-class words that steer a plan (not, over, first, sum…). `role`:
other prepositions. `light`: articles, pronouns, courtesy. `digit`: a bare number. `open`: the
rest."""

_MEANING = (
    NEGATION
    | COMPARISON
    | DIRECTION
    | AGGREGATION
    | ORDER
    | SCOPE
    | CONJUNCTIONS
    | QUANTIFIERS
    | MARKS
    | {"count"}
)
_ROLE = ROLES - _MEANING
_LIGHT = (FUNCTION_WORDS | POLITENESS | REQUESTS) - _MEANING - _ROLE


@memoized(20_000)
def word_class(word: str) -> WordClass:
    """Return the class of a content word."""
    if is_slot(word):
        return "slot"
    if word in _MEANING or is_sign(word):
        return "meaning"
    if word in _ROLE:
        return "role"
    if word in _LIGHT:
        return "light"
    return "digit" if word.isdigit() else "open"


_ENDINGS = (
    "ations", "ation", "ments", "ment", "ingly", "edly", "ings", "ing", "ers", "er", "ed", "es",
    "ly", "s", "e",
)  # fmt: skip
_SHORTEST_STEM = 3


@memoized(20_000)
def stem(word: str) -> str:
    """Return `word` without its inflection: equal for `arrive`, `arriving`, `arrives`."""
    word = singular(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] + "y" if word.endswith("i") else word


_NAMING = ("ee", "ation", "ment", "er", "ed", "ly", "ing")
_SAME_THING = frozenset({"", "ing"})
"""Forms of a verb that say one thing: flights that arrive, flights arriving."""


def is_other_thing(left: str, right: str) -> bool:
    """Return whether two forms of a word may name two things: trained and training drivers."""
    forms = {_form(singular(left)), _form(singular(right))}
    return len(forms) > 1 and forms != _SAME_THING


def _form(word: str) -> str:
    return next((ending for ending in _NAMING if word.endswith(ending)), "")


_TYPED = 8
"""Letters from which one letter more, less, other or swapped is taken for a typing error. Shorter
words have too many such neighbors that are words: county and country, trial and trail."""
_SLIPS = frozenset(
    "qw we er rt ty yu op as sd df fg gh hj jk kl zx xc cv vb bn nm qa aw ws se ed dr rf ft tg gy "
    "yh hu uj ji ik ko ol lp az zs sx xd dc cf fv vg gb bh hn nj jm mk".split()
)
"""Letters side by side on the keyboard, but for two vowels: those make other words."""


def is_mistyped(left: str, right: str) -> bool:
    """Return whether one slip of the fingers parts two long words (Damerau 1964).

    The first letter is seldom wrong, and a wrong one is a neighbor on the keyboard: what differs
    by another letter, stationary and stationery, are two words.
    """
    if min(len(left), len(right)) < _TYPED or left[0] != right[0]:
        return False
    if {left[-2:], right[-2:]} == {"er", "ee"}:  # interviewers and interviewees
        return False
    parts = _one_edit(left, right)
    if parts is None:
        return False
    a, b = parts
    return len(a) != 1 or len(b) != 1 or a + b in _SLIPS or b + a in _SLIPS


def _one_edit(left: str, right: str) -> tuple[str, str] | None:
    """Return what stands in `left` for what in `right`, if one edit or one swap parts them."""
    if abs(len(left) - len(right)) > 1:
        return None
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    a, b = left[start : len(left) - end], right[start : len(right) - end]
    one = max(len(a), len(b)) <= 1 or (len(a) == len(b) == 2 and a == b[::-1])
    return (a, b) if one else None
