"""Word class: what part a word plays in what a prompt asks for."""

from functools import lru_cache
from typing import Literal, TypeAlias

from semcache.matching.content import MARKS
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


@lru_cache(maxsize=20_000)
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
