"""The quick check: its yes is always the validator's yes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from semcache.canonical import Json, JsonObject
from semcache.catalog.fit import quick_check

QUERY: JsonObject = {
    "$defs": {
        "Filter": {
            "additionalProperties": False,
            "properties": {
                "field": {"enum": ["year", "state"]},
                "value": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
            "required": ["field"],
        }
    },
    "type": "object",
    "properties": {
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "minItems": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
        "code": {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 5},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"filters": [{"field": "year", "value": 2024}, {"field": "state", "value": "CA"}]},
        {"limit": 100, "code": "ABC", "other": [1]},
    ],
)
def test_usual_values_of_usual_schemas_get_a_quick_yes(value: Json) -> None:
    assert quick_check(QUERY)(value)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"filters": []},
        {"filters": [{"value": 2024}]},
        {"filters": [{"field": "city"}]},
        {"filters": [{"field": "year", "value": True}]},
        {"filters": [{"field": "year", "more": 1}]},
        {"limit": 0},
        {"limit": 101},
        {"code": "abc"},
        {"code": "ABCDEF"},
    ],
)
def test_values_that_do_not_fit_get_none(value: Json) -> None:
    assert not quick_check(QUERY)(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{}]},
        {"type": "nonsense"},
        {"pattern": "("},
        {"minimum": "5"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/Self", "$defs": {"Self": {"$ref": "#/$defs/Self"}}},
        {"properties": 5},
    ],
)
def test_nothing_is_sure_under_a_keyword_that_is_not_known(schema: JsonObject) -> None:
    assert not quick_check(schema)({})


KINDS = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
SIZES = st.sampled_from(
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
     "minItems", "maxItems"]
)  # fmt: skip


def inside(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": inner,
            "pattern": st.sampled_from(["a", "^b"]),
        },
    ) | st.dictionaries(SIZES, st.integers(0, 3), max_size=2)


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.just({}) | st.booleans(), inside, max_leaves=6)


@settings(max_examples=150)
@given(SCHEMAS, VALUES)
def test_a_quick_yes_is_always_the_yes_of_the_validator(schema: Json, value: Json) -> None:
    document: JsonObject = {"anyOf": [schema]}
    if quick_check(document)(value):
        assert Draft202012Validator(document).is_valid(value)


@settings(max_examples=80)
@given(KINDS, VALUES)
def test_a_type_is_known_wherever_the_validator_knows_it(kind: str, value: Json) -> None:
    schema: JsonObject = {"type": kind}
    valid = Draft202012Validator(schema).is_valid(value)
    assert quick_check(schema)(value) == (
        valid and not (kind == "integer" and type(value) is float)
    )
