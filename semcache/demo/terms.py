"""What a query of sales is made of: filters, figures, groups, order; and the SQL of each."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

Scalar = str | int | float

Field = Literal[
    "order_id", "date", "year", "quarter", "month", "customer", "email", "state", "city",
    "product", "category", "price", "quantity", "amount", "channel", "payment_method", "status",
]  # fmt: skip
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not_in", "between"]
Function = Literal["sum", "avg", "min", "max", "count"]

_EXPRESSIONS: dict[str, str] = {
    "order_id": "o.id",
    "date": "o.date",
    "year": "CAST(substr(o.date, 1, 4) AS INTEGER)",
    "quarter": "(CAST(substr(o.date, 6, 2) AS INTEGER) + 2) / 3",
    "month": "CAST(substr(o.date, 6, 2) AS INTEGER)",
    "customer": "c.name",
    "email": "c.email",
    "state": "c.state",
    "city": "c.city",
    "product": "p.name",
    "category": "p.category",
    "price": "p.price",
    "quantity": "o.quantity",
    "amount": "o.amount",
    "channel": "o.channel",
    "payment_method": "o.payment_method",
    "status": "o.status",
}
_NUMERIC = {"year", "quarter", "month", "price", "quantity", "amount"}
SOURCE = "orders o JOIN customers c ON c.id = o.customer_id JOIN products p ON p.id = o.product_id"


class SalesFilter(BaseModel):
    """A condition that every counted order meets."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    field: Field
    operator: Operator = "="
    value: Scalar | list[Scalar]
    """One value; a list for `in` and `not_in`; the two ends, both included, for `between`."""


class Aggregate(BaseModel):
    """A figure over the orders of each group; its column is named `sum_amount`, or `count`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    field: Field = "amount"
    """What is summed, averaged, compared; `count` counts orders whatever the field."""
    function: Function


class SalesSort(BaseModel):
    """What the rows are sorted by."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    field: Field
    """A field that is grouped by or aggregated; then by its figure."""
    direction: Literal["asc", "desc"] = "asc"


def columns_of(aggregates: Sequence[Aggregate], group_by: Sequence[Field]) -> dict[str, str]:
    """Return column → SQL expression; every field where nothing is grouped or aggregated."""
    if not aggregates and not group_by:
        return dict(_EXPRESSIONS)
    columns: dict[str, str] = {name: _EXPRESSIONS[name] for name in group_by}
    for aggregate in aggregates:
        columns[_column(aggregate)] = _figure(aggregate)
    return columns


def _column(aggregate: Aggregate) -> str:
    return "count" if aggregate.function == "count" else f"{aggregate.function}_{aggregate.field}"


def _figure(aggregate: Aggregate) -> str:
    if aggregate.function == "count":
        return "count(*)"
    figure = f"{aggregate.function}({_EXPRESSIONS[aggregate.field]})"
    # Cents: sums of floats differ in the last digits with the order of the rows.
    exact = aggregate.function in {"min", "max"} or figure == "sum(o.quantity)"
    return figure if exact else f"round({figure}, 2)"


def select(columns: dict[str, str]) -> str:
    """Return what stands behind SELECT for these columns."""
    return ", ".join(f"{expression} AS {name}" for name, expression in columns.items())


def where_of(filters: Sequence[SalesFilter]) -> tuple[str, list[Scalar]]:
    """Return the WHERE of these filters, empty without any, and the values of its placeholders.

    Raises:
        ValueError: a filter has not the values that its operator and field take.
    """
    conditions, values = [], []
    for condition in filters:
        operands = _operands(condition)
        conditions.append(_condition(condition, len(operands)))
        values += operands
    return (" WHERE " + " AND ".join(conditions) if conditions else ""), values


def _condition(condition: SalesFilter, count: int) -> str:
    expression = _EXPRESSIONS[condition.field]
    match condition.operator:
        case "in" | "not_in" as word:
            return f"{expression} {word.replace('_', ' ')} ({', '.join('?' * count)})"
        case "between":
            return f"{expression} BETWEEN ? AND ?"
        case comparison:
            return f"{expression} {comparison} ?"


def _operands(condition: SalesFilter) -> list[Scalar]:
    many = condition.operator in {"in", "not_in", "between"}
    if isinstance(condition.value, list) != many:
        expected = "a list of values" if many else "one value"
        raise ValueError(
            f"operator {condition.operator!r} on {condition.field!r} got {condition.value!r}; "
            f"expected {expected}"
        )
    values = condition.value if isinstance(condition.value, list) else [condition.value]
    if condition.operator == "between" and len(values) != 2:
        raise ValueError(f"'between' got {len(values)} values; expected the two ends")
    return [_typed(condition.field, value) for value in values]


def _typed(name: str, value: Scalar) -> Scalar:
    """Return `value` in the type of its column: SQLite finds no text equal to a number."""
    if name not in _NUMERIC:
        return str(value)
    try:
        return float(value)
    except ValueError as error:
        raise ValueError(f"{name!r} is compared with {value!r}; expected a number") from error


def grouped(group_by: Sequence[Field]) -> str:
    """Return the GROUP BY of these fields; empty without any."""
    return " GROUP BY " + ", ".join(_EXPRESSIONS[name] for name in group_by) if group_by else ""


def sorted_by(
    order_by: Sequence[SalesSort], aggregates: Sequence[Aggregate], columns: dict[str, str]
) -> str:
    """Return the ORDER BY that puts rows in the order asked for, and ties in one of their own.

    Raises:
        ValueError: rows have nothing of that name.
    """
    figures = {aggregate.field: _column(aggregate) for aggregate in aggregates}
    wanted = [(figures.get(sort.field, sort.field), sort.direction) for sort in order_by]
    for name, _ in wanted:
        if name not in columns:
            raise ValueError(f"rows have no {name!r} to sort by; they have {', '.join(columns)}")
    # Ties in an order that is the same every time: by what is grouped, else by date and id.
    ties = [name for name in columns if name in _EXPRESSIONS]
    ties = ["date", "order_id"] if len(ties) == len(_EXPRESSIONS) else ties
    keys = [f"{name} {direction}" for name, direction in wanted] + ties
    return f" ORDER BY {', '.join(keys)}" if keys else ""
