"""Constructs: the few forms that a request may have, and the reader that tries them.

At each place of a prompt the constructs are tried in the order of `RULES`, first come first served;
each accounts for every word that it takes. What none takes is unexplained. A form whose reading is
not certain is left out rather than guessed: "sales by state over $500" may bound rows or groups, so
"over $500" stays unexplained there.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from semcache.planners.rules import conditions
from semcache.planners.rules.conditions import Condition, condition
from semcache.planners.rules.cursor import Cursor
from semcache.planners.rules.draft import SchemaDraft
from semcache.planners.rules.figures import aggregate, another_aggregate, entity, field, which
from semcache.planners.rules.frame import Frame
from semcache.planners.rules.phrases import Unit
from semcache.planners.rules.ranks import (
    by,
    counted_superlative,
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
_WHEN = frozenset({"in", "during", "within", "for", "of", "on"})
_BARE = frozenset({
    "closed", "given", "year", "month", "quarter", "date", "email", "code", "identifier", "number",
    "quoted", "url",
})  # fmt: skip


def read(frame: Frame, units: Sequence[Unit]) -> SchemaDraft:
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


# ── conditions: "over $500", "in 2024", "status is returned", "electronics" ──────────────────────


def compared(c: Cursor) -> bool:
    """Take "over $500", "between 2021 and 2023", "excluding Texas", "since 2022"."""
    found = condition(c, c.at)
    if found is None or found.operator in {"=", "in"}:
        return False
    return conditions.take(c, found)


def prepositional(c: Cursor) -> bool:
    """Take "in 2024", "from Ohio", "with status returned", "in the state of Texas"."""
    word = c.sense(c.at, "prep")
    if not word:
        return False
    at = c.skip(c.at + 1)
    if word in conditions.PLAIN and c.field(at) and not c.sense(at, "entity"):
        return conditions.take(c, _on_field(c, at)) or _of_noun(c, word, at)
    found = conditions.span(c, at) if word in _WHEN else None
    found = found or _after(c, word, condition(c, at))
    if found is not None and conditions.take(c, replace(found, preposition=word)):
        return True
    return _of_noun(c, word, at)


def _after(c: Cursor, word: str, found: Condition | None) -> Condition | None:
    """Return the condition after a preposition, if the two go together."""
    if found is not None and word == "with" and c.field(found.next):  # "with over 5 units"
        return found
    if found is None or found.operator not in {"=", "in", ">=", "<="}:
        return None
    if found.terms[0].kind in conditions.TIMES:
        if word == "from" and found.operator == "=" and c.sense(found.next, "onward"):
            return replace(found, operator=">=", next=found.next + 1)
        # "from 2022" may be in that year or since; "by 2022" before or in it.
        return found if word in _WHEN or found.operator == ">=" else None
    known = word in conditions.PLAIN or word == "to"
    listed = found.operator in {"=", "in"} and found.terms[0].kind not in {"number", "money"}
    return found if known and listed else None


def _of_noun(c: Cursor, word: str, at: int) -> bool:
    """Take the preposition of "total of sales", "average amount for orders"."""
    noun = c.sense(at, "entity") or (c.pending is not None and c.field(at))
    return bool(noun) and word in {"of", "for", "from", "in"} and c.take(c.at + 1, c.last)


def on_field(c: Cursor) -> bool:
    """Take "amount over 500", "status is returned", "state: Texas"."""
    if not c.field(c.at) or c.pending is not None or c.sense(c.at, "entity"):
        return False  # "sales over $500" bounds each sale, not a figure named "sales"
    return conditions.take(c, _on_field(c, c.at))


def _on_field(c: Cursor, at: int) -> Condition | None:
    """Return the condition on the field that is named at `at`."""
    start = c.skip(at + 1)
    start = c.skip(start + 1) if c.text(start) == ":" else start
    return condition(c, start, c.field(at))


def bare_value(c: Cursor) -> bool:
    """Take a value that stands bare: "electronics sales", "2024 sales", "order ORD1042"."""
    found = condition(c, c.at)
    if found is None or found.operator not in {"=", "in"} or found.terms[0].kind not in _BARE:
        return False
    return conditions.take(c, found)


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
    compared,
    by,
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
