"""Transforms run on real data, through the one place that calls operations."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog
from semcache.canonical import Json, JsonObject
from semcache.errors import OperationFailed, OperationRefused
from semcache.execution.call import call
from semcache.planners.transforms import FUNCTIONS, TRANSFORMS
from semcache.ports import Limits

CATALOG = Catalog(TRANSFORMS)
ISSUES: list[Json] = [
    {"number": 1, "title": "a", "labels": [{"name": "bug"}], "state": "open", "votes": 3},
    {"number": 2, "title": "b", "labels": [{"name": "docs"}], "state": "closed", "votes": "10"},
    {"number": 3, "title": "c", "labels": [{"name": "bug"}, {"name": "docs"}], "state": "Open"},
]


def run(name: str, **given_input: Json) -> Any:
    return call(
        CATALOG.get(f"data.{name}"),
        given_input,
        catalog=CATALOG,
        limits=Limits(allow_writes=False),
        timeout_s=5,
        node="step1",
    )


def numbers(rows: Any) -> list[Json]:
    return [row["number"] if isinstance(row, dict) else row for row in rows]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ({"field": "label", "value": "bug"}, [1, 3]),
        ({"field": "state", "value": "open"}, [1, 3]),
        ({"field": "state", "operator": "!=", "value": "open"}, [2]),
        ({"field": "votes", "operator": ">", "value": 3}, [2]),
        ({"field": "votes", "operator": ">=", "value": "3"}, [1, 2]),
        ({"field": "number", "operator": "in", "value": [1, 2]}, [1, 2]),
        ({"field": "title", "operator": "contains", "value": "B"}, [2]),
        ({"value": "docs"}, [2, 3]),
    ],
)
def test_rows_are_filtered_by_what_they_have_in_a_field(
    condition: dict[str, Json], kept: list[Json]
) -> None:
    assert numbers(run("filter", rows=ISSUES, **condition)) == kept


def test_rows_are_found_in_the_object_that_has_them() -> None:
    assert run("count", rows={"total": 3, "items": ISSUES}) == 3
    assert run("count", rows={"issues": ISSUES}) == 3
    with pytest.raises(OperationRefused, match="expected a list, or an object with one"):
        run("count", rows={"a": [1], "b": [2]})


def test_rows_are_sorted_and_those_without_a_value_go_last() -> None:
    assert numbers(run("sort", rows=ISSUES, by="votes")) == [1, 2, 3]
    assert numbers(run("sort", rows=ISSUES, by="votes", order="desc")) == [2, 1, 3]
    assert run("sort", rows=[3, 1, 2]) == [1, 2, 3]


def test_rows_are_grouped_and_counted_by_a_field() -> None:
    grouped = run("group", rows=ISSUES, by="labels")
    told = [(each["labels"], numbers(each["rows"])) for each in grouped]
    assert told == [("bug", [1, 3]), ("docs", [2, 3])]
    assert run("count", rows=ISSUES, by="label") == [
        {"labels": "bug", "count": 2},
        {"labels": "docs", "count": 2},
    ]


def test_numbers_of_a_field_are_aggregated() -> None:
    found = {f: run("aggregate", rows=ISSUES, field="votes", function=f) for f in FUNCTIONS}
    assert found == {"sum": 13, "avg": 6.5, "min": 3, "max": 10, "median": 6.5}
    assert run("aggregate", rows=[], field="votes", function="max") is None
    by = run("aggregate", rows=ISSUES, field="number", function="sum", by="title")
    assert by == [{"title": "a", "sum": 1}, {"title": "b", "sum": 2}, {"title": "c", "sum": 3}]


def test_a_loop_hands_out_each_item_and_keeps_what_came_of_it() -> None:
    state: Json = None
    for result in (None, "x", "y", "z"):
        state = run("each", items=ISSUES, field="number", state=state, result=result)
    assert state == {"done": True, "position": 3, "item": None, "results": ["x", "y", "z"]}


def test_a_value_becomes_what_the_next_operation_wants() -> None:
    # specs: E-6
    assert run("convert", value="10", schema={"type": "integer"}) == 10
    with pytest.raises(OperationFailed, match="'many': expected a whole number"):
        run("convert", value="many", schema={"type": "integer"})


def test_what_the_data_does_not_have_is_refused_with_what_it_has() -> None:
    with pytest.raises(OperationRefused, match="no field 'owner'; they have 'number', 'title'"):
        run("sort", rows=ISSUES, by="owner")
    with pytest.raises(OperationRefused, match="'title' is 'a' in a row; sum needs numbers"):
        run("aggregate", rows=ISSUES, field="title", function="sum")
    with pytest.raises(OperationRefused, match="could be any of"):
        run("sort", rows=[{"start_date": 1, "end_date": 2}], by="date")
    with pytest.raises(OperationRefused, match="breaks its schema"):
        run("limit", rows=ISSUES, count="two")


ROWS = st.lists(st.integers(-9, 9).map(lambda n: {"n": n, "odd": n % 2 == 1}), max_size=12)


def applied(name: str, **given_input: Json) -> Any:
    """Return what a transform gives, called without the bounds that a run sets."""
    made = CATALOG.get(f"data.{name}").call
    assert made is not None
    return made(given_input)


@given(ROWS, st.integers(-9, 9))
@settings(max_examples=60)
def test_a_filter_and_its_opposite_share_out_all_rows(rows: list[JsonObject], at: int) -> None:
    kept = [
        row["n"]
        for sign in ("<", ">=")
        for row in applied("filter", rows=[*rows], field="n", operator=sign, value=at)
    ]
    assert Counter(kept) == Counter(row["n"] for row in rows)


@given(ROWS)
@settings(max_examples=60)
def test_groups_hold_each_row_once_and_sorting_loses_none(rows: list[JsonObject]) -> None:
    counted = applied("count", rows=[*rows], by="odd")
    assert sum(group["count"] for group in counted) == len(rows)
    ordered = applied("sort", rows=[*rows], by="n")
    assert Counter(map(str, ordered)) == Counter(map(str, rows))
