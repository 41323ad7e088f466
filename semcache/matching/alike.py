"""Alike: how two sequences of content words differ, forms and typing errors of one word apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from semcache.matching.content import MARKS
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
"""`meaning`: closed-class words that steer a plan (not, over, first, sum…). `role`: other
prepositions. `light`: articles, pronouns, courtesy. `digit`: a bare number. `open`: the rest."""

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


@lru_cache(maxsize=20_000)
def word_class(word: str) -> WordClass:
    """Return the class of a content word."""
    if word.startswith("<") and word not in MARKS:
        return "slot"
    if word in _MEANING:
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


@lru_cache(maxsize=20_000)
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


_TYPED = 5
"""Letters from which one letter more, less, other or swapped is taken for a typing error."""


@lru_cache(maxsize=50_000)
def is_alike(left: str, right: str) -> bool:
    """Return whether two open-class words are forms of one word, or one mistyped."""
    if word_class(left) != "open" or word_class(right) != "open":
        return False
    if stem(left) == stem(right):
        return True
    return min(len(left), len(right)) >= _TYPED and _one_edit(left, right)


def _one_edit(left: str, right: str) -> bool:
    """Return whether one edit or a swap of neighbors parts them (Damerau 1964)."""
    if abs(len(left) - len(right)) > 1:
        return False
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    a, b = left[start : len(left) - end], right[start : len(right) - end]
    return max(len(a), len(b)) <= 1 or (len(a) == len(b) == 2 and a == b[::-1])


@dataclass(frozen=True, slots=True)
class Difference:
    """How the words of a prompt differ from those of a candidate."""

    extra: tuple[str, ...]
    """Words only of the prompt, each as often as it is too many."""
    missing: tuple[str, ...]
    """Words only of the candidate."""
    alike: int
    """Words that differ only in form."""
    moved: int
    """Shared words that stand in another order."""
    typed: tuple[str, ...] = ()
    """Words of the prompt among the alike that are no form of a word of the candidate, but close
    enough to one to be it mistyped."""

    @property
    def words(self) -> tuple[str, ...]:
        """All words of one side only."""
        return self.extra + self.missing


_EQUAL = Difference((), (), 0, 0)


@lru_cache(maxsize=20_000)
def compare(mine: tuple[str, ...], its: tuple[str, ...]) -> Difference:
    """Return how the content words `mine` differ from `its`."""
    if mine == its:
        return _EQUAL
    once = len(set(mine)) == len(mine) and len(set(its)) == len(its)
    extra, missing = _without(mine, its, once=once), _without(its, mine, once=once)
    typed: list[str] = []
    alike = _pair_off(extra, missing, typed) if extra and missing else 0
    shared, theirs = _without(mine, extra, once=once), _without(its, missing, once=once)
    moved = 0 if shared == theirs else len(shared) - alike - _longest_common(shared, theirs)
    return Difference(tuple(extra), tuple(missing), alike, max(0, moved), tuple(typed))


def _without(words: Sequence[str], others: Sequence[str], *, once: bool) -> list[str]:
    """Return `words` without `others`, each taken out as often as it is there; order is kept.

    `once`: no word is there twice.
    """
    if once:
        apart = set(others)
        return [word for word in words if word not in apart]
    rest = list(others)
    left = []
    for word in words:
        if word in rest:
            rest.remove(word)
        else:
            left.append(word)
    return left


def _pair_off(extra: list[str], missing: list[str], typed: list[str]) -> int:
    """Take words that are forms of one another out of both; return how many pairs.

    What may be mistyped goes to `typed`.
    """
    others = [word for word in missing if word_class(word) == "open"]
    pairs = 0
    for word in list(extra) if others else ():
        if word_class(word) != "open":
            continue
        other = next((w for w in others if is_alike(word, w)), None)
        if other is not None:
            extra.remove(word)
            missing.remove(other)
            others.remove(other)
            pairs += 1
            if stem(word) != stem(other):
                typed.append(word)
    return pairs


def _longest_common(mine: Sequence[str], its: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the table of lengths is the bits of one number (Crochemore et al. 2001, "A fast and
    practical bit-vector algorithm for the longest common subsequence problem").
    """
    places: dict[str, int] = {}
    for i, word in enumerate(mine):
        places[word] = places.get(word, 0) | 1 << i
    row = full = (1 << len(mine)) - 1
    for word in its:
        met = row & places.get(word, 0)
        row = (row + met | row - met) & full
    return len(mine) - row.bit_count()
