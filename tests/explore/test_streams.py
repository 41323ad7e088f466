from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semcache import Parameter
from semcache.errors import InvalidInput, InvalidStream
from semcache.explore.streams import read_log, read_stream, rows_from

PLAN = {"call": {"input": {"year": 2024}}}
ROW: dict[str, Any] = {
    "id": 7,
    "scope": "acme",
    "text": "sales in 2024",
    "params": [{"name": "year", "value": 2024, "text": "2024"}],
    "plan": PLAN,
}
Write = Callable[..., Path]


def test_a_stream_is_read_row_by_row(write: Write) -> None:
    (row, other) = read_stream(write(ROW, "", {**ROW, "plan": None}))
    assert (row.id, row.scope, row.text, row.plan) == ("7", "acme", "sales in 2024", PLAN)
    assert row.params == (Parameter("year", 2024, mention="2024"),)
    assert row.values == {"year": 2024}
    assert other.plan is None
    assert other.shape is None


def test_no_more_rows_are_read_than_asked_for(write: Write) -> None:
    assert len(read_stream(write(ROW, ROW, "{ not read"), limit=2)) == 2


@pytest.mark.parametrize("name", ["id", "scope", "text", "params", "plan"])
def test_a_stream_with_a_missing_field_names_it_and_the_line(write: Write, name: str) -> None:
    short = {key: value for key, value in ROW.items() if key != name}
    with pytest.raises(InvalidStream, match=rf"stream\.jsonl:2: no field '{name}'"):
        read_stream(write(ROW, short))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"plan": 3}, "the plan is 3; expected an object, a list of calls, or null"),
        ({"plan": "{}"}, "the plan is text"),
        ({"text": 5}, "the prompt is 5"),
        ({"params": 5}, "params is 5"),
        ({"params": [{"name": "x"}]}, "no value"),
        ({"params": [{"name": "", "value": 1}]}, "named ''"),
        ({"params": [{"name": "x", "value": 1, "text": 5}]}, "mention"),
        ({"id": None}, "the id is None; expected text or a whole number"),
        ({"scope": None}, "the scope is None; expected text or a whole number"),
        ({"scope": True}, "the scope is True"),
        ({"scope": {"name": "acme"}}, "the scope is {"),
        ({"scope": ""}, r"stream\.jsonl:1: tenant is ''"),
        ({"scope": "a\nb"}, r"stream\.jsonl:1: tenant is"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(write: Write, change: Any, said: str) -> None:
    with pytest.raises(InvalidStream, match=said):
        read_stream(write({**ROW, **change}))


@pytest.mark.parametrize("line", ["{", "3", '{"plan": NaN}', "[]"])
def test_a_line_that_is_no_json_object_is_named(write: Write, line: str) -> None:
    with pytest.raises(InvalidStream, match=r":1: the line is"):
        read_stream(write(line))


def test_a_log_needs_only_prompt_and_plan(write: Write) -> None:
    (row, other) = read_log(
        write(
            {"prompt": "sales in 2024", "plan": '{"year": 2024}', "model": "x"},
            {"text": "a", "plan": None, "tenant": "b", "params": {"year": 1}},
        )
    )
    assert (row.id, row.scope, row.plan) == ("1", "default", {"year": 2024})
    assert row.params == (Parameter("year", 2024, mention="2024"),)  # as `store` takes them
    assert (other.scope, other.values) == ("b", {"year": 1})


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"plan": {}}, "'text' or 'prompt'"),
        ({"text": "a"}, "'plan'"),
        ({"text": "a", "plan": "call sales()"}, "the plan is not JSON"),
        ({"text": "a", "plan": "3"}, "the plan is 3"),
    ],
)
def test_a_log_with_a_missing_field_or_a_plan_that_is_no_json_is_refused(
    write: Write, record: Any, said: str
) -> None:
    with pytest.raises(InvalidStream, match=said):
        read_log(write(record))


def test_a_tenant_that_is_a_number_is_a_tenant_of_its_own(write: Write) -> None:
    lines: list[dict[str, Any]] = [
        {"text": "a", "plan": {}, "tenant": tenant} for tenant in (0, 7, None)
    ]
    assert [row.scope for row in read_log(write(*lines))] == ["0", "7", "default"]


def test_a_log_whose_ids_are_null_is_numbered(write: Write) -> None:
    assert read_log(write({"id": None, "text": "a", "plan": {}}))[0].id == "1"


@pytest.mark.parametrize("records", [None, 5, "text", {"text": "a", "plan": {}}])
def test_records_that_are_none_are_refused(records: Any) -> None:
    with pytest.raises(InvalidInput, match="expected a list of mappings"):
        rows_from(records)


@pytest.mark.parametrize("read", [read_stream, read_log])
@pytest.mark.parametrize("path", [None, 5, ["a.jsonl"]])
def test_what_is_no_path_is_refused(read: Any, path: Any) -> None:
    with pytest.raises(InvalidInput, match="is no path; expected that of a file"):
        read(path)


def test_records_in_memory_are_named_by_number() -> None:
    assert rows_from([{"text": "a", "plan": {}}])[0].text == "a"
    with pytest.raises(InvalidStream, match="record 2: no field 'plan'"):
        rows_from([{"text": "a", "plan": {}}, {"text": "a"}])
    with pytest.raises(InvalidStream, match="record 1: it is 5; expected a mapping"):
        rows_from([5])  # type: ignore[list-item]  # what a caller without types may hand in
    with pytest.raises(InvalidStream, match=r"record 1: .*JSON has only finite numbers"):
        rows_from([{"text": "a", "plan": {"x": float("nan")}}])


def test_rows_of_a_log_share_a_shape_if_only_recognized_values_differ() -> None:
    rows = rows_from(
        {"text": f"sales in {year}", "plan": {"year": year, "limit": 5}} for year in (2023, 2024)
    )
    other = rows_from([{"text": "sales in 2024", "plan": {"year": 2024, "limit": 6}}])
    assert rows[0].shape == rows[1].shape != other[0].shape


def test_the_shape_of_a_prompt_that_no_cache_would_take_is_its_whole_plan() -> None:
    (row,) = rows_from([{"text": " ", "plan": {"x": 1}}])
    assert row.shape == 'default\0{"x":1}'
