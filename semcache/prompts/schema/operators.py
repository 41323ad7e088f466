"""Operators and aggregates that a schema may use, and the other spellings that they go by."""

from collections.abc import Iterable

OPERATORS = (
    "=", "!=", "<", "<=", ">", ">=", "in", "not_in", "between", "contains", "not_contains",
    "starts_with", "ends_with", "is_null", "is_not_null",
)  # fmt: skip
"""Comparisons of a field with an operand, by their canonical names."""

AGGREGATES = ("sum", "avg", "count", "min", "max", "median", "stddev", "variance")
"""Functions that make one value of many, by their canonical names."""

CONTROLS = ("limit", "offset", "order", "sort_by")
"""Flat parameters of a schema that shape its answer and are fields of no entity."""

_SPELLINGS = {
    "=": "== eq equal equals equal_to is",
    "!=": "<> ne neq not_equal not_equals not_equal_to is_not",
    "<": "lt less less_than before below under",
    "<=": "lte le less_than_or_equal less_or_equal less_than_or_equal_to at_most until",
    ">": "gt greater greater_than more_than after above over",
    ">=": "gte ge greater_than_or_equal greater_or_equal greater_than_or_equal_to at_least since",
    "in": "one_of any_of",
    "not_in": "nin none_of",
    "between": "range",
    "contains": "like includes",
    "not_contains": "not_like",
    "starts_with": "prefix",
    "ends_with": "suffix",
    "is_null": "null",
    "is_not_null": "not_null",
    "sum": "total add",
    "avg": "average mean",
    "count": "number",
    "min": "minimum lowest",
    "max": "maximum highest",
    "stddev": "std standard_deviation",
    "variance": "var",
}


def _known(names: Iterable[str]) -> dict[str, str]:
    """Return spelling → canonical name for `names`."""
    known = {name: name for name in names}
    for name in tuple(known):
        known.update(dict.fromkeys(_SPELLINGS.get(name, "").split(), name))
    return known


_OPERATORS = _known(OPERATORS)
_AGGREGATES = _known(AGGREGATES)


def operator_name(spelling: str) -> str | None:
    """Return the canonical name of an operator (`greater_than` is `>`), or None if it is none."""
    return _OPERATORS.get(_folded(spelling))


def aggregate_name(spelling: str) -> str | None:
    """Return the canonical name of an aggregate (`average` is `avg`), or None if it is none."""
    return _AGGREGATES.get(_folded(spelling))


def _folded(spelling: str) -> str:
    return spelling.strip().lower().lstrip("$").replace(" ", "_").replace("-", "_")
