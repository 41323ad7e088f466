"""The construct of groups: "by state", "for each category and channel"."""

from semcache.planners.rules.cursor import Cursor
from semcache.planners.rules.ranking import rank_measure


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
