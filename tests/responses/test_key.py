import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from semcache.canonical import digest
from semcache.errors import InvalidJson
from semcache.ports import Message
from semcache.responses.key import ModelRequest, canonical_text, response_key, schema_fingerprint

TOOL = {"name": "sum", "description": "Add.", "input_schema": {"type": "object"}}
OTHER = {"name": "get", "description": "Read.", "input_schema": {"type": "object"}}
REQUEST = ModelRequest(
    provider="https://api.example/v1",
    model="m-1",
    system="You plan.",
    user="sales in 2024",
    messages=[Message("user", "hello")],
    data={"year": 2024, "states": ["CA", "TX"]},
    temperature=0.5,
    max_tokens=100,
    sampling={"top_p": 0.9, "stop": ["\n"]},
    tools=[TOOL, OTHER],
    response_schema={"type": "integer", "minimum": 3},
)

floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | st.text() | floats
names = st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


# specs: B-1
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"z": {"b": 2, "a": 1}, "y": [3, 2, 1]}, '{"y":[3,2,1],"z":{"a":1,"b":2}}'),
        ("hello", '"hello"'),
        ([1, 2, 3], "[1,2,3]"),
        (None, "null"),
        (datetime(2024, 1, 15, 10, 30, tzinfo=UTC), '"2024-01-15T10:30:00.000Z"'),
        ({"on": date(2024, 1, 15)}, '{"on":"2024-01-15"}'),
    ],
)
def test_a_value_has_one_text(value: object, text: str) -> None:
    assert canonical_text(value) == text


def test_times_are_as_fine_as_they_are_given_and_one_moment_has_one_text() -> None:
    moment = datetime(2024, 1, 15, 10, 30, 0, 1500, tzinfo=UTC)
    there = moment.astimezone(timezone(timedelta(hours=9)))
    assert canonical_text(moment) == canonical_text(there) == '"2024-01-15T10:30:00.001500Z"'
    assert canonical_text(moment.replace(tzinfo=None)) == '"2024-01-15T10:30:00.001500"'


def cycle() -> object:
    ring: dict[str, object] = {"on": date(2024, 1, 1)}
    ring["again"] = [ring, ring]
    return ring


def deep() -> object:
    value: object = date(2024, 1, 1)
    for _ in range(5000):
        value = [value]
    return value


# specs: B-1
@pytest.mark.parametrize(
    "bad", [math.nan, -math.inf, {1, 2}, b"x", object(), cycle(), deep(), {1: "x"}, "\ud800"]
)
def test_what_is_not_json_is_a_typed_error(bad: object) -> None:
    for request in (replace(REQUEST, data={"a": bad}), replace(REQUEST, sampling={"stop": bad})):
        with pytest.raises(InvalidJson, match="the request"):
            response_key(request)


# specs: B-1
def test_a_cycle_is_a_typed_error_wherever_a_value_is_hashed() -> None:
    with pytest.raises(InvalidJson, match="Circular"):
        digest(cycle())  # type: ignore[arg-type] # the very mistake


# specs: B-1
def test_a_value_shared_but_not_circular_is_fine() -> None:
    shared = {"a": date(2024, 1, 1)}
    assert canonical_text([shared, shared]) == '[{"a":"2024-01-01"},{"a":"2024-01-01"}]'


# specs: B-2
@pytest.mark.parametrize(
    "change",
    [
        {"provider": "https://other/v1"},
        {"model": "m-2"},
        {"system": "You plan well."},
        {"system": None},
        {"user": "sales in 2023"},
        {"messages": [Message("user", "hello"), Message("assistant", "hi")]},
        {"messages": [Message("system", "hello")]},
        {"data": {"year": "2024", "states": ["CA", "TX"]}},
        {"data": {"year": 2024, "states": ["TX", "CA"]}},
        {"data": None},
        {"temperature": 0.6},
        {"temperature": None},
        {"max_tokens": 101},
        {"sampling": {"top_p": 0.9, "stop": ["\n"], "seed": 1}},
        {"tools": [TOOL]},
        {"tools": [TOOL, OTHER | {"description": "Read it."}]},
        {"tools": [TOOL, OTHER | {"input_schema": {"type": "object", "required": ["x"]}}]},
        {"response_schema": None},
        {"response_schema": {"type": "integer", "minimum": 5}},
    ],
)
def test_whatever_the_answer_depends_on_changes_the_key(change: dict[str, Any]) -> None:
    assert response_key(replace(REQUEST, **change)) != response_key(REQUEST)


# specs: B-2
def test_the_order_of_tools_and_of_keys_and_the_spelling_of_numbers_do_not() -> None:
    same = replace(
        REQUEST,
        tools=[OTHER, dict(reversed(TOOL.items()))],
        data={"states": ("CA", "TX"), "year": 2024},
    )
    assert response_key(same) == response_key(REQUEST)
    assert response_key(replace(REQUEST, temperature=1)) == response_key(
        replace(REQUEST, temperature=1.0)
    )


# specs: B-2
def test_a_key_is_64_hex_digits_and_the_same_in_another_process_with_another_hash_seed() -> None:
    code = (
        "from semcache.responses.key import *\n"
        "print(response_key(ModelRequest(model='m', data={'b': {'x': 1.5}, 'a': ['é']},"
        " tools=[{'name': 'b'}, {'name': 'a'}], response_schema=int)))"
    )
    keys = {
        subprocess.run(  # noqa: S603 - the code stands above
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert keys == {GOLDEN + "\n"}


GOLDEN = "da6c6f227da49acd3f9240d94ac5739ff21f59d9822a3ef3f63eb5fca2fd1a4b"
"""Pinned: a cache on disk is read by the next release and by another Python."""


def shuffled(value: Any, reverse: Callable[[Any], Any] = reversed) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reverse(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


# specs: B-1
@settings(max_examples=80)
@given(values)
def test_the_order_of_keys_never_matters(value: Any) -> None:
    key = response_key(replace(REQUEST, data={"v": value}))
    assert response_key(replace(REQUEST, data={"v": shuffled(value)})) == key


# specs: B-2
@settings(max_examples=80)
@given(values, values)
def test_different_data_have_different_keys(left: Any, right: Any) -> None:
    keys = [response_key(replace(REQUEST, data={"v": value})) for value in (left, right)]
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (keys[0] == keys[1]) == same


CONSTRAINTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 3, "maximum": 9, "multipleOf": 1},
        "name": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        "list": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        "kind": {"enum": ["a", "b"]},
        "fixed": {"const": "a"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["limit"],
    "additionalProperties": False,
}


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*at, key))]
    if isinstance(value, list):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, (*at, i))]
    return [at]


def changed(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = changed(value[at[0]], at[1:], new)
    return copy


# specs: B-3
@settings(max_examples=100)
@given(
    st.sampled_from(leaves(CONSTRAINTS)), st.none() | st.booleans() | st.integers(10) | st.text()
)
def test_any_constraint_of_a_schema_changes_its_fingerprint(at: tuple[Any, ...], new: Any) -> None:
    other = changed(CONSTRAINTS, at, new)
    same = json.dumps(other) == json.dumps(CONSTRAINTS)
    assert (schema_fingerprint(other) == schema_fingerprint(CONSTRAINTS)) == same
    assert schema_fingerprint(shuffled(other)) == schema_fingerprint(other)


class Reply(BaseModel):
    count: int


# specs: B-3
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Annotated[int, Field(ge=3)], Annotated[int, Field(ge=5)]),
        (Literal["a"], Literal["b"]),
        (str | None, int | None),
        (dict[str, int], dict[str, str]),
        (Reply, Reply | None),
    ],
)
def test_types_that_pydantic_tells_apart_are_told_apart(left: object, right: object) -> None:
    assert schema_fingerprint(left) != schema_fingerprint(right)
    assert schema_fingerprint(left) == schema_fingerprint(left)


# specs: B-3
def test_no_schema_has_a_fingerprint_of_its_own() -> None:
    assert schema_fingerprint(None) == "no-schema"
    assert schema_fingerprint({}) != "no-schema"
    assert schema_fingerprint(Reply) == schema_fingerprint(Reply.model_json_schema())


def test_a_type_without_a_schema_is_a_typed_error() -> None:
    for wrong in (Callable[[int], int], object()):
        with pytest.raises(InvalidJson, match="response schema"):
            schema_fingerprint(wrong)
