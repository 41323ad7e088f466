"""Rows: real data as lists of things that have fields, however it came out of an operation.

A result may be a list, or an object that has one (`{"items": [...], "total": 3}`); a row may be an
object or a plain value. Fields are found by their name, spelled in any way, singular or plural.
"""

from collections.abc import Iterable, Iterator

from semcache.binding.codecs import number
from semcache.canonical import Json, same
from semcache.errors import BindingError, OperationRefused
from semcache.planners.arguments.synonyms import words
from semcache.plans.finding import kind

ENVELOPES = ("data", "items", "results", "rows", "records", "values", "entries", "nodes")
"""Members that hold the list, where an object has several lists."""
ITSELF = "value"
"""The one field of a row that is a plain value."""
# What a nested object is called by: `{"label": {"name": "bug"}}` is the label "bug".
_CALLED = ("name", "title", "label", "login", "key", "id", "value")

Order = tuple[int, float, str]


def rows_of(data: Json) -> list[Json]:
    """Return the list that `data` is or has.

    Raises:
        OperationRefused: it is neither a list nor an object with one.
    """
    if isinstance(data, list):
        return data
    if isinstance(data, dict):
        lists = {key: value for key, value in data.items() if isinstance(value, list)}
        named = [lists[key] for key in ENVELOPES if key in lists]
        if len(lists) == 1 or named:
            return named[0] if named else next(iter(lists.values()))
    raise OperationRefused(
        f"the rows are {kind(data)}; expected a list, or an object with one (`items`, `data`)"
    )


def field_in(rows: list[Json], wanted: str) -> str:
    """Return the field of the rows that `wanted` names, as they spell it.

    Of rows without any, `wanted` itself.

    Raises:
        OperationRefused: they have no such field, or several; the message lists what they have.
    """
    if not rows:
        return wanted
    names = list(dict.fromkeys(name for row in rows for name in fields_of(row)))
    if wanted in names:
        return wanted
    for found in likely(names, wanted):
        if len(found) == 1:
            return found[0]
        if found:
            told = ", ".join(map(repr, found))
            raise OperationRefused(f"{wanted!r} could be any of {told}; name one of them")
    has = ", ".join(map(repr, names[:20])) or "none"
    raise OperationRefused(f"the rows have no field {wanted!r}; they have {has}")


def likely(names: Iterable[str], wanted: str) -> Iterator[list[str]]:
    """Yield the names that `wanted` may mean: by spelling, by words, without an `id`, by the head.

    All of its own words count: "new price" is no `price`, though "price" may be the `unit_price`.
    """
    known = list(names)
    yield [name for name in known if name.casefold() == wanted.casefold()]
    yield [name for name in known if words(name) == words(wanted)]
    yield [name for name in known if bare(name) == bare(wanted)]
    yield [name for name in known if head(name) == words(wanted)]


def bare(name: str) -> tuple[str, ...]:
    """Return the words of a name without a last `id`: the customer of `customer_id`."""
    found = words(name)
    return found[:-1] if len(found) > 1 and found[-1] == "id" else found


def head(name: str) -> tuple[str, ...]:
    """Return the last word of a name, which says what it is: `created_date` is a date."""
    return words(name)[-1:]


def fields_of(row: Json) -> Iterator[str]:
    """Yield the fields of a row."""
    yield from row if isinstance(row, dict) else (ITSELF,)


def value_of(row: Json, field: str) -> Json:
    """Return what a row has in a field; null if it lacks it."""
    if isinstance(row, dict):
        return row.get(field)
    return row if field == ITSELF else None


def plain_value(value: Json) -> Json:
    """Return what a nested object is called by (`{"name": "bug"}` is "bug"), else the value."""
    if isinstance(value, dict):
        return next((value[key] for key in _CALLED if key in value), value)
    return value


def equal(value: Json, wanted: Json) -> bool:
    """Return whether a value is the wanted one: text in any case, 5 as "5", one in a list."""
    if isinstance(value, list) and not isinstance(wanted, list):
        return any(equal(item, wanted) for item in value)
    value = plain_value(value)
    if isinstance(value, str) and isinstance(wanted, str):
        return value.casefold() == wanted.casefold() or words(value) == words(wanted)
    return same(value, wanted) or _numbers(value, wanted) == 0


def compared(value: Json, wanted: Json) -> int | None:
    """Return -1, 0 or 1 as a value is below, at or above another; None if they don't compare.

    Numbers and text that spells one compare by size; other text by letters, as ISO dates do.
    """
    value, wanted = plain_value(value), plain_value(wanted)
    by_size = _numbers(value, wanted)
    if by_size is not None:
        return by_size
    if isinstance(value, str) and isinstance(wanted, str):
        one, other = value.casefold(), wanted.casefold()
        return (one > other) - (one < other)
    return None


def _numbers(value: Json, wanted: Json) -> int | None:
    one, other = as_number(value), as_number(wanted)
    return None if one is None or other is None else (one > other) - (one < other)


def as_number(value: Json) -> float | None:
    """Return the number that a value is or spells; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = number(value)
    except BindingError:
        return None
    return found if isinstance(found, int | float) else None


def order(value: Json) -> Order:
    """Return where a value stands in an ascending order: numbers, then text, then the rest."""
    value = plain_value(value)
    size = as_number(value)
    if size is not None:
        return (0, size, "")
    return (1, 0.0, value.casefold()) if isinstance(value, str) else (2, 0.0, "")
