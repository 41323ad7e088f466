"""The constructs of figures and nouns: "total amount", "sales totals", "which state"."""

from semcache.planners.rules.conditions import condition
from semcache.planners.rules.cursor import Cursor, Pending, Subject
from semcache.planners.rules.draft import Rank


def aggregate(c: Cursor) -> bool:
    """Take "total", "average", "how many"; what they are of follows."""
    function = c.sense(c.at, "agg")
    if not function or (c.pending is not None and c.pending.function != function):
        return False
    if c.draft.aggregates and c.last != "and":
        return False
    c.pending = Pending(function, c.text(c.at))
    return c.take(c.at + 1, "aggregate")


def another_aggregate(c: Cursor) -> bool:
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


def entity(c: Cursor) -> bool:
    """Take an entity, for itself or as the noun of something read before."""
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


def field(c: Cursor) -> bool:
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
    return _lone_measure(c)


def _lone_measure(c: Cursor) -> bool:
    name = c.measure(c.at)
    if not name:
        return False
    if _totals(c, name):
        return True
    c.draft.measures.append((name, c.text(c.at)))
    return c.take(c.at + 1, "measure")


def which(c: Cursor) -> bool:
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
