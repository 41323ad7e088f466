"""Constructs: the few forms that a request may have, and the reader that tries them.

At each place of a prompt the constructs are tried in the order of `RULES`, first come first served;
each accounts for every word that it takes. What none takes is unexplained. A form whose reading is
not certain is left out rather than guessed: "sales by state over $500" may bound rows or groups, so
"over $500" stays unexplained there.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from semcache.planners import conditions
from semcache.planners.conditions import Condition, condition
from semcache.planners.cursor import Cursor, Pending, Subject
from semcache.planners.draft import Draft, Rank
from semcache.planners.frame import Frame
from semcache.planners.reading import Unit

Rule: TypeAlias = Callable[[Cursor], bool]
"""Takes the construct that begins at the cursor, if one does; returns whether it did."""

_WHEN = frozenset({"in", "during", "within", "for", "of", "on"})
_TIMES = frozenset({"year", "date", "month", "quarter", "time"})
_BARE = frozenset({
    "closed", "given", "year", "month", "quarter", "date", "email", "code", "identifier", "number",
    "quoted", "url",
})  # fmt: skip
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
    if any(rule(c) for rule in (_condition, _prepositional, _field_condition, _value)):
        return True
    c.at = at
    return False


# ── conditions ───────────────────────────────────────────────────────────────────────────────────


def _condition(c: Cursor) -> bool:
    """Take "over $500", "between 2021 and 2023", "excluding Texas", "since 2022"."""
    found = condition(c, c.at)
    if found is None or found.operator in {"=", "in"}:
        return False
    return conditions.take(c, found)


def _prepositional(c: Cursor) -> bool:
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
    if found.terms[0].kind in _TIMES:
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


def _against(c: Cursor) -> bool:
    """Take the second value of a comparison: "compare 2023 with 2024"."""
    if not c.sense(c.at, "against"):
        return False
    found = condition(c, c.skip(c.at + 1))
    pair = c.frame.pair(found.terms[0].kind) if found is not None else None
    return pair is not None and conditions.take(c, found)


def _field_condition(c: Cursor) -> bool:
    """Take "amount over 500", "status is returned", "state: Texas"."""
    if not c.field(c.at) or c.pending is not None or c.sense(c.at, "entity"):
        return False  # "sales over $500" bounds each sale, not a figure named "sales"
    return conditions.take(c, _on_field(c, c.at))


def _on_field(c: Cursor, at: int) -> Condition | None:
    """Return the condition on the field that is named at `at`."""
    start = c.skip(at + 1)
    start = c.skip(start + 1) if c.text(start) == ":" else start
    return condition(c, start, c.field(at))


def _value(c: Cursor) -> bool:
    """Take a value that stands bare: "electronics sales", "2024 sales", "order ORD1042"."""
    found = condition(c, c.at)
    if found is None or found.operator not in {"=", "in"} or found.terms[0].kind not in _BARE:
        return False
    return conditions.take(c, found)


# ── aggregates ───────────────────────────────────────────────────────────────────────────────────


def _aggregate(c: Cursor) -> bool:
    """Take "total", "average", "how many"; what they are of follows."""
    function = c.sense(c.at, "agg")
    if not function or (c.pending is not None and c.pending.function != function):
        return False
    if c.draft.aggregates and c.last != "and":
        return False
    c.pending = Pending(function, c.text(c.at))
    return c.take(c.at + 1, "aggregate")


def _another_aggregate(c: Cursor) -> bool:
    """Take the "and" of "total amount and average quantity"."""
    ready = c.last == "aggregated" and c.sense(c.at, "and") and c.sense(c.skip(c.at + 1), "agg")
    return bool(ready) and c.take(c.skip(c.at + 1), "and")


def _settle(c: Cursor, function: str, name: str) -> None:
    """Note the waiting aggregate, now that its noun is known."""
    if c.pending is not None and name not in c.draft.aggregates:
        c.draft.aggregates[name] = function
        c.pending = None


def _of_entity(c: Cursor, pending: Pending) -> int:
    """Give the waiting aggregate the entity for a noun; return where the prompt goes on."""
    follower = c.field(c.at + 1)
    if follower and condition(c, c.skip(c.at + 2), follower) is None:
        if pending.function != "count" and c.frame.summable(follower):
            _settle(c, pending.function, follower)
            return c.at + 2
        return c.at + 1
    if pending.superlative and (c.plural(c.at) or not c.asks):
        return c.at + 1  # "show me the largest sale": the row or the figure?
    name = c.measure(c.at)
    if pending.function == "count":
        name = c.frame.measure or c.frame.id_field()
    elif not name and pending.function != "sum":  # "total orders" may count them
        name = c.frame.measure
    if name and c.frame.aggregates(pending.function):
        _settle(c, pending.function, name)
    return c.at + 1


def _of_field(c: Cursor, pending: Pending, name: str) -> bool:
    """Give the waiting aggregate a field for a noun; return whether that makes sense."""
    function = pending.function
    if function == "count":
        function = "sum" if c.frame.counted(name) else ""
    if function in {"max", "min"} and c.measure(
        c.at
    ):  # "the highest revenue" is one of some groups
        return False
    if not function or not c.frame.summable(name) or not c.frame.aggregates(function):
        return False
    _settle(c, function, name)
    return c.pending is None


# ── nouns ────────────────────────────────────────────────────────────────────────────────────────


def _entity(c: Cursor) -> bool:
    unit = c.unit(c.at)
    if unit is None or not c.sense(c.at, "entity"):
        return False
    c.draft.entity = c.draft.entity or unit
    if c.pending is not None:
        pending, to = c.pending, _of_entity(c, c.pending)
        return c.take(to, "entity" if c.pending is pending or to == c.at + 1 else "aggregated")
    rank = c.draft.rank
    if rank is not None and rank.subject is None:
        return _ranked_entity(c, rank)
    if _totals(c, c.measure(c.at)):
        return True
    return c.take(c.at + 1, "entity")


def _ranked_entity(c: Cursor, rank: Rank) -> bool:
    name = c.field(c.at + 1)
    if name and c.frame.groupable(name) and not rank.by_date:  # "top 5 sales channels"
        rank.subject, rank.one = name, not c.plural(c.at + 1)
        return c.take(c.at + 2, "rank")
    rank.subject, rank.one = "", not c.plural(c.at)
    return c.take(c.at + 1, "entity")


def _totals(c: Cursor, name: str) -> bool:
    """Take a noun with its aggregate after it: "sales totals", "revenue total", "sales count"."""
    function = c.sense(c.at + 1, "agg")
    at = c.skip(c.at + 2)
    if not function or c.field(at) or c.sense(at, "entity") or c.draft.aggregates:
        return False
    if function == "count" and c.sense(c.at, "entity"):
        name = c.frame.measure or c.frame.id_field()
    elif function == "count":
        return False
    if not name or not c.frame.aggregates(function):
        return False
    c.draft.aggregates[name] = function
    return c.take(c.at + 2, "aggregated")


def _field(c: Cursor) -> bool:
    """Take a field that stands as the noun of something read before."""
    name = c.field(c.at)
    if not name:
        return False
    if c.pending is not None:
        return _of_field(c, c.pending, name) and c.take(c.at + 1, "aggregated")
    rank = c.draft.rank
    if rank is not None and rank.subject is None:
        if rank.by_date or not c.frame.groupable(name):
            return False
        rank.subject, rank.one = name, not c.plural(c.at)
        return c.take(c.at + 1, "rank")
    return _lone_measure(c) or _superlative_follows(c)


def _lone_measure(c: Cursor) -> bool:
    name = c.measure(c.at)
    if not name:
        return False
    if _totals(c, name):
        return True
    c.draft.measures.append((name, c.text(c.at)))
    return c.take(c.at + 1, "measure")


def _superlative_follows(c: Cursor) -> bool:
    """Take "the state with the highest revenue" up to its superlative."""
    name, at = c.field(c.at), c.skip(c.at + 1)
    at = c.skip(at + 1) if c.sense(at, "prep") == "with" else at
    ranked = c.sense(at, "super") or c.sense(at, "most")
    if not ranked or c.subject is not None or not c.frame.groupable(name):
        return False
    c.subject = Subject(name, c.text(c.at), one=not c.plural(c.at))
    return c.take(at, "subject")


def _which(c: Cursor) -> bool:
    """Take "which state" or "which 5 states"; what they are ranked by follows."""
    if not c.sense(c.at, "which") or c.last or c.subject is not None:
        return False
    limit = c.number(c.at + 1)
    at = c.at + 2 if limit is not None else c.at + 1
    name = c.field(at)
    if not name or not c.frame.groupable(name):
        return False
    words = c.text(c.at + 1) if limit is not None else ""
    c.subject = Subject(name, c.text(at), one=not c.plural(at), limit=limit, limit_words=words)
    return c.take(at + 1, "subject")


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def _by(c: Cursor) -> bool:
    """Take "by state", "for each category and channel", or what a rank is by."""
    if not c.sense(c.at, "by") and not c.sense(c.at, "group"):
        return False
    rank = c.draft.rank
    if rank is not None:
        return _rank_measure(c, rank)
    names, at = _group_names(c, c.skip(c.at + 1))
    if c.sense(c.at, "by") and any(map(c.plural, range(c.at, at))):
        return False  # "sales by customers" may be those that they made
    if c.text(c.at).lower() in {"per", "each"} and "avg" in c.draft.aggregates.values():
        return False  # "average sales per month" may be the average of the monthly totals
    if not names or set(names) & set(c.draft.groups) or _names_a_value(c, names[-1], at):
        return False
    c.draft.groups += names
    c.draft.group_words += [c.text(place) for place in range(c.at, at)]
    return c.take(at, "group")


def _group_names(c: Cursor, at: int) -> tuple[list[str], int]:
    """Return the fields of "category, channel and state", and where the prompt goes on."""
    names: list[str] = []
    end = at
    while True:
        start = c.skip(at)
        if c.sense(start, "entity") and c.field(start + 1):  # "by sales channel"
            start += 1
        name = c.field(start)
        if not name or not c.frame.groupable(name) or name in names:
            return names, end
        names.append(name)
        end = at = start + 1
        if c.sense(at, "comma"):
            at += 1
        if c.sense(at, "and"):
            at += 1
            at = at + 1 if c.sense(at, "by") or c.sense(at, "group") else at
        if at == end:
            return names, end


def _names_a_value(c: Cursor, name: str, at: int) -> bool:
    """Return whether the group is said to be one value: "by product Webcam"."""
    term = c.term(at)
    return term is not None and name in term.closed


# ── ends of an order ─────────────────────────────────────────────────────────────────────────────


def _top(c: Cursor) -> bool:
    """Take "top 5" or "bottom"; what is ranked follows."""
    direction = c.sense(c.at, "top")
    if not direction or c.draft.rank is not None:
        return False
    limit = c.number(c.at + 1)
    c.draft.rank = Rank(direction, c.text(c.at), limit, c.text(c.at + 1) if limit else "")
    return c.take(c.at + (2 if limit else 1), "rank")


def _recent(c: Cursor) -> bool:
    """Take "latest", "last 5", "5 oldest"; the entity follows."""
    at = c.at + 1 if c.number(c.at) is not None else c.at
    direction = c.sense(at, "recent")
    if not direction or c.draft.rank is not None:
        return False
    place = c.at if at > c.at else at + 1
    limit = c.number(place)
    to = at + 2 if limit is not None and place > at else at + 1
    words = c.text(place) if limit is not None else ""
    c.draft.rank = Rank(direction, c.text(at), limit, words, by_date=True)
    return c.take(to, "rank")


def _counted_superlative(c: Cursor) -> bool:
    """Take "5 largest"; the entity or a field follows."""
    limit, direction = c.number(c.at), c.sense(c.at + 1, "super")
    if limit is None or not direction or c.draft.rank is not None:
        return False
    c.draft.rank = Rank(direction, c.text(c.at + 1), limit, c.text(c.at))
    return c.take(c.at + 2, "rank")


def _superlative(c: Cursor) -> bool:
    """Take "highest revenue" of a subject, or "largest" as an aggregate whose noun follows."""
    most = c.sense(c.at, "most")
    direction = c.sense(c.at, "super") or most
    if not direction or c.draft.rank is not None or c.pending is not None:
        return False
    if c.subject is not None:
        return _rank_subject(c, c.subject, direction, most=bool(most))
    if most or c.last == "entity":  # "the sale with the highest amount" is a row
        return False
    c.pending = Pending("max" if direction == "desc" else "min", c.text(c.at), superlative=True)
    return c.take(c.at + 1, "aggregate")


def _rank_subject(c: Cursor, subject: Subject, direction: str, *, most: bool) -> bool:
    found = _measure(c, c.at + 1, most=most)
    if found is None:
        return False
    measure, function, at = found
    c.draft.rank = Rank(
        direction,
        c.text(c.at),
        subject.limit,
        subject.limit_words,
        subject=subject.field,
        one=subject.one,
        measure=measure,
        function=function,
    )
    c.subject = None
    return c.take(at, "rank")


def _rank_measure(c: Cursor, rank: Rank) -> bool:
    """Take what a rank is by: "top 5 states by revenue"."""
    found = _measure(c, c.at + 1) if not (rank.measure or rank.by_date) else None
    if found is None or rank.subject is None:
        return False
    rank.measure, rank.function, at = found
    if not rank.subject and rank.function != "sum":
        return False
    return c.take(at, "rank")


def _measure(c: Cursor, at: int, *, most: bool = False) -> tuple[str, str, int] | None:
    """Return field, aggregate and end of what groups are compared by; None if not certain.

    "The most sales" may count them or add them up; "by price" has no sum that means something.
    """
    at = c.skip(at)
    told = c.sense(at, "agg")
    at = c.skip(at + 1) if told else at
    noun = bool(c.sense(at, "entity"))
    if noun and c.frame.summable(c.field(at + 1)):
        return _figure(c, c.field(at + 1), told, at + 2)
    counted = told == "count" or (most and not c.measure(at))
    if noun and counted:
        name = c.frame.measure or c.frame.id_field()
        return (name, "count", at + 1) if name and c.frame.aggregates("count") else None
    if noun and most:
        return None
    name = c.measure(at) or c.sense(at, "field")
    sure = told or c.measure(at) or name == c.frame.measure or c.frame.counted(name)
    return _figure(c, name, told, at + 1) if sure else None


def _figure(c: Cursor, name: str, told: str, at: int) -> tuple[str, str, int] | None:
    function = told or "sum"
    if function == "count" or not c.frame.summable(name) or not c.frame.aggregates(function):
        return None
    return name, function, at


# ── order and limit ──────────────────────────────────────────────────────────────────────────────


def _sort(c: Cursor) -> bool:
    """Take "sorted by amount descending"."""
    if not c.sense(c.at, "sort") or c.draft.sort is not None or c.draft.rank is not None:
        return False
    at = c.skip(c.at + 1)
    found = _measure(c, at)
    name, function, to = found or (c.field(at), "", at + 1)
    known = c.draft.aggregates.get(name, "")
    if not name or (known and function != known and c.sense(at, "agg")):
        return False
    direction = c.sense(to, "direction") or c.sense(to, "dated" if _is_time(name) else "sized")
    c.draft.sort = (name, direction or "asc", c.text(c.at))
    return c.take(to + 1 if direction else to, "sort")


def _direction(c: Cursor) -> bool:
    """Take "highest first" after groups of one figure, and "newest first" after rows.

    "Ascending" alone does not say of what.
    """
    if c.draft.sort is not None or c.draft.rank is not None:
        return False
    figures, sized, dated = list(c.draft.aggregates), c.sense(c.at, "sized"), c.sense(c.at, "dated")
    if sized and c.draft.groups and len(figures) == 1:
        c.draft.sort = (figures[0], sized, c.text(c.at))
    elif dated and not c.draft.groups and not figures and c.draft.date:
        c.draft.sort = (c.draft.date, dated, c.text(c.at))
    else:
        return False
    return c.take(c.at + 1, "sort")


def _is_time(name: str) -> bool:
    return name.rsplit("_", 1)[-1] in _TIMES


def _limit(c: Cursor) -> bool:
    """Take the number of "show me 10 orders", at the start alone."""
    limit = c.number(c.at)
    if limit is None or c.last or c.draft.limit is not None or _may_be_a_year(limit):
        return False
    noun = c.at + 1
    while (term := c.term(noun)) is not None and term.kind == "closed":
        noun += 1
    if not c.sense(noun, "entity"):
        return False
    c.draft.limit, c.draft.limit_words = limit, c.text(c.at)
    return c.take(c.at + 1, "limit")


def _may_be_a_year(number: int) -> bool:
    return 1000 <= number < 3000  # "2024 sales"


RULES: tuple[Rule, ...] = (
    _verb,
    _which,
    _top,
    _recent,
    _counted_superlative,
    _superlative,
    _limit,
    _another_aggregate,
    _aggregate,
    _sort,
    _direction,
    _condition,
    _by,
    _against,
    _prepositional,
    _field_condition,
    _entity,
    _field,
    _value,
    _opening,
    _conjunction,
    _comma,
    _filling,
)
"""Every construct, in the order in which they are tried."""
