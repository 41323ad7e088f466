"""Cautions: kinds of difference that must be proven harmless, and what a tenant's labels clear.

A word is proven harmless by labels of its own, which most words never get. So it is also counted
what became of prompts that nothing but such a difference kept from a plan of low risk: a tenant
whose phrases stand now here, now there, or who says "each" without meaning another thing has shown
it after a few. What turns a sentence into its opposite is cleared by no other word's record.
"""

from typing import NamedTuple

from semcache.matching.evidence import MOVED, TURNED, Evidence
from semcache.matching.words.classes import word_class
from semcache.matching.words.content import MARKS
from semcache.matching.words.difference import Difference
from semcache.prompts.words import (
    AGGREGATION,
    COMPARISON,
    CONJUNCTIONS,
    DIRECTION,
    NEGATION,
    ORDER,
    QUANTIFIERS,
    SCOPE,
)

CLEARED = 0.2
"""Share of other plans up to which differences of a kind are harmless."""
CLEARED_AT_LARGE = 0.15
"""The same of steering words of all kinds, to speak for one of them: after five labels that said so
and none against."""
_STANDS_FOR = 2.0
"""Labels that the wider kind of a difference weighs against its own."""
_UNKNOWN = 0.5
"""Share of other plans that is supposed before anything was labeled."""

STEERING = frozenset(
    "when where why how must may might should ought here there someone somebody everyone everybody "
    "anyone anybody".split()
)
"""Light words that change what is asked: its time, place, reason or way, whether it must be."""

_SORTS = {
    "moved": frozenset({MOVED}),
    "turned": frozenset({TURNED}),
    "negation": NEGATION,
    "comparison": COMPARISON,
    "direction": DIRECTION,
    "aggregation": AGGREGATION,
    "order": ORDER,
    "conjunction": CONJUNCTIONS,
    "scope": SCOPE | QUANTIFIERS,
    "mark": MARKS,
    "steering": STEERING,
}
_PARTING = frozenset({"moved", "turned", "conjunction", "role", "role for role"})
"""Kinds that tell which of several values of one type plays which part."""
_SORT_OF = {word: sort for sort, words in reversed(_SORTS.items()) for word in words}
"""Of a word that is of several sorts, the first."""

_NEVER = frozenset({"unheard", "party", "switched"})
"""Kinds that no record clears: a word that no entry uses is a value or a condition, whatever others
like it were; which of two values is which is another question each time, and so is which of two
things is the first and which the last."""
_APART = frozenset({"negation", "exchanged", "other"})
"""Kinds of which each word has only its own record: negations, and one steering word in place of
another."""
_LIGHT = frozenset({"moved", "form", "role"})
"""Kinds that speak for one another. The others, which steer a plan, do so with more labels: who
chats with a service says "so", "there" and "should" of anything."""
_ANY, _STEERING = "any", "steering at large"
"""Keys of what these came to together."""


class Doubt(NamedTuple):
    """A difference that must be proven harmless and that its own word does not prove so."""

    word: str
    """`<moved>` or `<turned>` for order."""
    caution: str
    """Kind of difference that it is."""


class Cautions:
    """Names the kinds of what one difference consists of."""

    def __init__(
        self,
        difference: Difference,
        *,
        switched: frozenset[str],
        unheard: frozenset[str],
        formed: frozenset[str],
        exchanged: frozenset[str],
        repeated: frozenset[str],
        parties: bool,
    ) -> None:
        """Take what words are already known as; `parties`: several values of one type are said."""
        self._named = (
            ("switched", switched),
            ("unheard", unheard),
            ("form", formed),
            ("exchanged", exchanged),
        )
        self._repeated = repeated
        self._parties = parties
        self._both = set(map(_sort, difference.extra)) & set(map(_sort, difference.missing))

    def doubt(self, word: str) -> Doubt:
        """Return the doubt about `word`, named after its kind."""
        caution = self._caution(word)
        return Doubt(word, "party" if self._parties and caution in _PARTING else caution)

    def _caution(self, word: str) -> str:
        for name, words in self._named:
            if word in words:
                return name
        sort = _sort(word)
        if sort in self._both and sort != "open":
            return "role for role" if sort == "role" else "other"
        return "repeated" if word in self._repeated else sort


def _sort(word: str) -> str:
    return _SORT_OF.get(word) or word_class(word)


def keys(doubt: Doubt) -> tuple[str, ...]:
    """Return the keys under which a doubt is counted, widest first."""
    own = f"{doubt.caution} {doubt.word}"
    if doubt.caution in _APART:
        return (own,)
    return (_ANY if doubt.caution in _LIGHT else _STEERING, doubt.caution, own)


def is_cleared(doubt: Doubt, evidence: Evidence) -> bool:
    """Return whether differences of its kind turned out harmless where the risk was low.

    Of all kinds like it, of its own, and of its word: each stands in for the next until that has
    counts of its own.
    """
    if doubt.caution in _NEVER:
        return False
    share = _UNKNOWN
    for key in keys(doubt):
        same, other = evidence.doubted.of(key)
        of_key = (other + _STANDS_FOR * share) / (same + other + _STANDS_FOR)
        # What steers a plan in another way speaks for a word only where nearly all of it was idle.
        share = _UNKNOWN if key == _STEERING and of_key > CLEARED_AT_LARGE else of_key
    return share <= CLEARED
