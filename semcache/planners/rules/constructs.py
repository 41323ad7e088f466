"""Constructs: the few forms that a request may have, and the reader that tries them.

At each place of a prompt the constructs are tried in the order of `RULES`, first come first served;
each accounts for every word that it takes. What none takes is unexplained. A form whose reading is
not certain is left out rather than guessed: "sales by state over $500" may bound rows or groups, so
"over $500" stays unexplained there.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from semcache.planners.rules.cursor import Cursor
from semcache.planners.rules.draft import Draft
from semcache.planners.rules.figures import aggregate, another_aggregate, entity, field, which
from semcache.planners.rules.filters import against, bare_value, compared, on_field, prepositional
from semcache.planners.rules.frame import Frame
from semcache.planners.rules.phrases import Unit
from semcache.planners.rules.ranks import (
    by,
    counted_superlative,
    direction,
    limit,
    recent,
    sort,
    superlative,
    top,
)

Rule: TypeAlias = Callable[[Cursor], bool]
"""Takes the construct that begins at the cursor, if one does; returns whether it did."""

# "Where are …" asks for a place, and "are …" whether something is so.
_OPENING_A_QUESTION = frozenset({"that", "copula", "auxiliary"})


def read(frame: Frame, units: Sequence[Unit]) -> Draft:
    """Return what the units ask for, if they ask for the operation of this frame."""
    c = Cursor(frame, units)
    while c.at < len(c.units):
        if not any(rule(c) for rule in RULES):
            c.leave(c.text(c.at))
            c.take(c.at + 1, "unexplained")
    if c.pending is not None:
        c.leave(c.pending.words)
    if c.subject is not None:
        c.leave(c.subject.words)
    return c.draft


# ── verbs and words without content ──────────────────────────────────────────────────────────────


def _verb(c: Cursor) -> bool:
    if c.frame.reads or c.draft.verb or c.last or not c.sense(c.at, "verb"):
        return False
    c.draft.verb = True
    return c.take(c.at + 1, "")


def _opening(c: Cursor) -> bool:
    """Take "show me" or "what is", at the start alone: later it begins another request."""
    word = c.sense(c.at, "read")
    if not word or c.last or not c.frame.reads:
        return False
    c.asks = c.asks or word == "ask"
    return c.take(c.at + 1, "")


def _filling(c: Cursor) -> bool:
    word = c.sense(c.at, "fill")
    if not word or (word in _OPENING_A_QUESTION and _begins(c)):
        return False
    if word == "mark" and c.at < c.end and c.text(c.at) in {".", "!", "?"}:
        return False
    return c.take(c.at + 1, c.last)


def _begins(c: Cursor) -> bool:
    """Return whether nothing but courtesy stands before."""
    return all(c.sense(at, "fill") for at in range(c.at))


def _comma(c: Cursor) -> bool:
    return bool(c.sense(c.at, "comma")) and c.take(c.at + 1, c.last)


def _conjunction(c: Cursor) -> bool:
    """Take "and" between two conditions, or between a group and a condition."""
    if not c.sense(c.at, "and") or c.last not in {"filter", "group"}:
        return False
    at = c.at
    c.at += 1
    if any(rule(c) for rule in (compared, prepositional, on_field, bare_value)):
        return True
    c.at = at
    return False


RULES: tuple[Rule, ...] = (
    _verb,
    which,
    top,
    recent,
    counted_superlative,
    superlative,
    limit,
    another_aggregate,
    aggregate,
    sort,
    direction,
    compared,
    by,
    against,
    prepositional,
    on_field,
    entity,
    field,
    bare_value,
    _opening,
    _conjunction,
    _comma,
    _filling,
)
"""Every construct, in the order in which they are tried."""
