"""The constructs of order and of groups: "top 5", "latest", "sorted by amount", "by state"."""

from semcache.planners.rules.conditions import TIMES
from semcache.planners.rules.cursor import Cursor, Pending, Subject
from semcache.planners.rules.draft import Rank


def top(c: Cursor) -> bool:
    """Take "top 5" or "bottom"; what is ranked follows."""
    direction = c.sense(c.at, "top")
    if not direction or c.draft.rank is not None:
        return False
    limit = c.number(c.at + 1)
    c.draft.rank = Rank(direction, c.text(c.at), limit, c.text(c.at + 1) if limit else "")
    return c.take(c.at + (2 if limit else 1), "rank")


def recent(c: Cursor) -> bool:
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


def counted_superlative(c: Cursor) -> bool:
    """Take "5 largest"; the entity or a field follows."""
    limit, direction = c.number(c.at), c.sense(c.at + 1, "super")
    if limit is None or not direction or c.draft.rank is not None:
        return False
    c.draft.rank = Rank(direction, c.text(c.at + 1), limit, c.text(c.at))
    return c.take(c.at + 2, "rank")


def superlative(c: Cursor) -> bool:
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


def rank_measure(c: Cursor, rank: Rank) -> bool:
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


def sort(c: Cursor) -> bool:
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


def _is_time(name: str) -> bool:
    return name.rsplit("_", 1)[-1] in TIMES


def limit(c: Cursor) -> bool:
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


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def by(c: Cursor) -> bool:
    """Take "by state", "for each category and channel", or what a rank is by."""
    if not c.sense(c.at, "by") and not c.sense(c.at, "group"):
        return False
    rank = c.draft.rank
    if rank is not None:
        return rank_measure(c, rank)
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
