"""Transforms: filter, sort, group, count, aggregate and limit, as built-in operations.

They read, take the rows that another operation gave, and are called like any operation, through
`execution.call`. `data.each` drives a loop (a call for each row) and `data.convert` makes a value
what the next operation's schema wants. Offer them beside a catalog: `catalog.with_builtins(
TRANSFORMS)`.
"""

from collections.abc import Callable
from functools import partial
from statistics import fmean, median

from semcache.canonical import Json, JsonObject, as_list, as_object, dumps
from semcache.catalog.operation import Operation
from semcache.errors import OperationRefused
from semcache.planners.arguments.coercion import coerced
from semcache.planners.rows import (
    as_number,
    compared,
    equal,
    field_in,
    order,
    plain_value,
    rows_of,
    value_of,
)

FILTER = "data.filter"
SORT = "data.sort"
GROUP = "data.group"
COUNT = "data.count"
AGGREGATE = "data.aggregate"
LIMIT = "data.limit"
EACH = "data.each"
CONVERT = "data.convert"

FUNCTIONS = ("sum", "avg", "min", "max", "median")
"""What `data.aggregate` can make of many numbers."""

Test = Callable[[Json, Json], bool]


def _ordered(value: Json, wanted: Json, *, signs: tuple[int, ...]) -> bool:
    found = compared(value, wanted)
    return found is not None and found in signs


def _within(value: Json, wanted: Json) -> bool:
    return any(equal(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _contains(value: Json, wanted: Json) -> bool:
    if isinstance(value, list):
        return any(_contains(item, wanted) for item in value)
    return str(wanted).casefold() in str(plain_value(value)).casefold()


TESTS: dict[str, Test] = {
    "=": equal,
    "!=": lambda value, wanted: not equal(value, wanted),
    "<": partial(_ordered, signs=(-1,)),
    "<=": partial(_ordered, signs=(-1, 0)),
    ">": partial(_ordered, signs=(1,)),
    ">=": partial(_ordered, signs=(0, 1)),
    "in": _within,
    "contains": _contains,
}
"""Operator → whether a value passes it."""


def _filter(given: JsonObject) -> Json:
    rows = rows_of(given["rows"])
    test = TESTS[str(given.get("operator", "="))]
    wanted = given["value"]
    if "field" not in given:
        return [row for row in rows if any(test(one, wanted) for one in _values(row))]
    field = field_in(rows, str(given["field"]))
    return [row for row in rows if test(value_of(row, field), wanted)]


def _values(row: Json) -> list[Json]:
    return list(row.values()) if isinstance(row, dict) else [row]


def _sort(given: JsonObject) -> Json:
    rows = rows_of(given["rows"])
    field = field_in(rows, str(given["by"])) if "by" in given else None
    falling = given.get("order") == "desc"
    keyed = [(order(row if field is None else value_of(row, field)), row) for row in rows]
    # What has no value there goes last, whichever the direction.
    known = [pair for pair in keyed if pair[0][0] < 2]
    known.sort(key=lambda pair: pair[0], reverse=falling)
    return [row for _, row in known] + [row for key, row in keyed if key[0] == 2]


def _group(given: JsonObject) -> Json:
    groups = _groups(rows_of(given["rows"]), str(given["by"]))
    return [{given_by: value, "count": len(rows), "rows": rows} for given_by, value, rows in groups]


def _groups(rows: list[Json], by: str) -> list[tuple[str, Json, list[Json]]]:
    """Return field, value and rows of each group, in the order of their first rows."""
    field = field_in(rows, by)
    found: dict[str, tuple[str, Json, list[Json]]] = {}
    for row in rows:
        held = value_of(row, field)
        for value in held if isinstance(held, list) else [held]:
            value = plain_value(value)  # noqa: PLW2901 - a label counts by its name
            found.setdefault(dumps(value), (field, value, []))[2].append(row)
    return list(found.values())


def _count(given: JsonObject) -> Json:
    rows = rows_of(given["rows"])
    if "by" not in given:
        return len(rows)
    groups = _groups(rows, str(given["by"]))
    return [{field: value, "count": len(own)} for field, value, own in groups]


def _aggregate(given: JsonObject) -> Json:
    rows, function = rows_of(given["rows"]), str(given["function"])
    field = field_in(rows, str(given["field"]))
    if "by" not in given:
        return _computed(function, rows, field)
    groups = _groups(rows, str(given["by"]))
    return [{name: value, function: _computed(function, own, field)} for name, value, own in groups]


def _computed(function: str, rows: list[Json], field: str) -> Json:
    """Return the function of the numbers in a field; null where there are none to compute of."""
    held = [plain_value(value_of(row, field)) for row in rows]
    numbers = [as_number(value) for value in held if value is not None]
    known = [value for value in numbers if value is not None]
    if len(known) < len(numbers):
        odd = next(v for v in held if v is not None and as_number(v) is None)
        raise OperationRefused(f"{field!r} is {odd!r} in a row; {function} needs numbers")
    if function == "sum":
        return sum(known)
    makers: dict[str, Callable[[list[float]], float]] = {
        "avg": fmean, "min": min, "max": max, "median": median,
    }  # fmt: skip
    return makers[function](known) if known else None


def _limit(given: JsonObject) -> Json:
    count = given["count"]
    return rows_of(given["rows"])[: count if isinstance(count, int) else 0]


def _each(given: JsonObject) -> Json:
    """Return the next item of a loop, and the results so far.

    `state` is what this operation gave the round before (null in the first), `result` what the
    loop's call gave for the item of that round.
    """
    items = rows_of(given["items"])
    state = given.get("state")
    if not isinstance(state, dict):
        at, results = 0, []
    else:
        at = _position(state) + 1
        results = [*as_list(state.get("results")), given.get("result")]
    done = at >= len(items)
    item = None if done else _member(items[at], str(given.get("field", "")))
    return {"done": done, "position": at, "item": item, "results": results}


def _position(state: JsonObject) -> int:
    at = state.get("position")
    return at if isinstance(at, int) else 0


def _member(item: Json, field: str) -> Json:
    if not field or not isinstance(item, dict):
        return item
    return value_of(item, field_in([item], field))


def _convert(given: JsonObject) -> Json:
    wanted = given["schema"]
    return coerced(given["value"], as_object(wanted), name="the value")


_ROWS: JsonObject = {
    "type": ["array", "object"],
    "description": "What another operation gave: a list, or an object that has one.",
}
_FIELD: JsonObject = {"type": "string", "minLength": 1}
_LIST: JsonObject = {"type": "array"}


def _operation(
    name: str,
    summary: str,
    call: Callable[[JsonObject], Json],
    output: JsonObject,
    required: tuple[str, ...],
    **properties: Json,
) -> Operation:
    return Operation(
        name,
        summary,
        {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        output,
        "read",
        call,
    )


TRANSFORMS: tuple[Operation, ...] = (
    _operation(
        FILTER,
        "Keep the rows whose field compares so with a value; of all fields if none is named.",
        _filter,
        _LIST,
        ("rows", "value"),
        rows=_ROWS,
        field=_FIELD,
        operator={"type": "string", "enum": list(TESTS), "default": "="},
        value={},
    ),
    _operation(
        SORT,
        "Put the rows in the order of a field, or of the rows themselves.",
        _sort,
        _LIST,
        ("rows",),
        rows=_ROWS,
        by=_FIELD,
        order={"type": "string", "enum": ["asc", "desc"], "default": "asc"},
    ),
    _operation(
        GROUP,
        "Put the rows that have the same value in a field together.",
        _group,
        _LIST,
        ("rows", "by"),
        rows=_ROWS,
        by=_FIELD,
    ),
    _operation(
        COUNT,
        "Count the rows, or those of each value of a field.",
        _count,
        {"type": ["integer", "array"]},
        ("rows",),
        rows=_ROWS,
        by=_FIELD,
    ),
    _operation(
        AGGREGATE,
        "Add, average or pick the least, greatest or middle number of a field.",
        _aggregate,
        {"type": ["number", "array", "null"]},
        ("rows", "field", "function"),
        rows=_ROWS,
        field=_FIELD,
        function={"type": "string", "enum": list(FUNCTIONS)},
        by=_FIELD,
    ),
    _operation(
        LIMIT,
        "Keep the first rows.",
        _limit,
        _LIST,
        ("rows", "count"),
        rows=_ROWS,
        count={"type": "integer", "minimum": 0},
    ),
    _operation(
        EACH,
        "Go to the next item of a loop, and keep what the call for the last one gave.",
        _each,
        {"type": "object"},
        ("items",),
        items=_ROWS,
        field=_FIELD,
        state={},
        result={},
    ),
    _operation(
        CONVERT,
        "Make a value what a schema wants, if nothing is lost.",
        _convert,
        {},
        ("value", "schema"),
        value={},
        schema={"type": "object"},
    ),
)
"""The built-in operations on data."""
