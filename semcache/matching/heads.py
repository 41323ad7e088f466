"""Heads: the words that steering words belong to.

In "the first dose of the last visit" the dose is the first and the visit is the last; the same
words make another question where each stands before the other's.
"""

from collections.abc import Mapping, Sequence

from semcache.matching.forms import stem
from semcache.matching.word_class import word_class
from semcache.prompts.words import AGGREGATION, COMPARISON, DIRECTION, NEGATION, ORDER

_SORTS = tuple(enumerate((NEGATION, COMPARISON, DIRECTION, AGGREGATION, ORDER)))
"""Sorts of which one word for another, or the same before another head, asks for another thing."""


def heads(words: Sequence[str]) -> dict[tuple[str, int], frozenset[str]]:
    """Return the stem of each head with the sort of steering words and those that stand before it.

    A head is the next word that says something of its own. Which value is meant by which of two
    slots is for their own gates to say (`roles`): a slot is no head.
    """
    found: dict[tuple[str, int], frozenset[str]] = {}
    head: str | None = None
    for word in reversed(words):
        for sort, steering in _SORTS:
            if word in steering and head is not None and word_class(head) != "slot":
                key = stem(head), sort
                found[key] = found.get(key, frozenset()) | {word}
        if _says_something(word):
            head = word
    return found


def switches(mine: Sequence[str], its: Sequence[str]) -> tuple[str, ...]:
    """Return the steering words that both say, but before other heads that both say; sorted."""
    ours, theirs = heads(mine), heads(its)
    switched: set[str] = set()
    for at, steering in ours.items():
        other = theirs.get(at, steering)
        if steering.isdisjoint(other) and steering.issubset(its) and other.issubset(mine):
            switched |= steering | other
    denied, other_denied = _denied(ours), _denied(theirs)
    if denied and other_denied and denied.isdisjoint(other_denied):
        both = {stem(w) for w in mine} & {stem(w) for w in its}
        if (denied | other_denied) <= both:
            switched |= NEGATION.intersection(mine)
    return tuple(sorted(switched))


def _denied(found: Mapping[tuple[str, int], frozenset[str]]) -> set[str]:
    return {head for head, sort in found if sort == 0}


def _says_something(word: str) -> bool:
    return word_class(word) in {"open", "slot", "digit"}
