"""The constructs of conditions: "over $500", "in 2024", "status is returned", "electronics"."""

from dataclasses import replace

from semcache.planners.rules import conditions
from semcache.planners.rules.conditions import Condition, condition
from semcache.planners.rules.cursor import Cursor

_WHEN = frozenset({"in", "during", "within", "for", "of", "on"})
TIMES = frozenset({"year", "date", "month", "quarter", "time"})
"""Kinds of values and last words of fields that say when something is."""
_BARE = frozenset({
    "closed", "given", "year", "month", "quarter", "date", "email", "code", "identifier", "number",
    "quoted", "url",
})  # fmt: skip


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
    if found.terms[0].kind in TIMES:
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


def against(c: Cursor) -> bool:
    """Take the second value of a comparison: "compare 2023 with 2024"."""
    if not c.sense(c.at, "against"):
        return False
    found = condition(c, c.skip(c.at + 1))
    pair = c.frame.pair(found.terms[0].kind) if found is not None else None
    return pair is not None and conditions.take(c, found)


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
