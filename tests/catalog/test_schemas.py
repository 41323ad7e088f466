"""Violations of a schema, and the closed sets that it declares."""

import pytest

from semcache.canonical import JsonObject
from semcache.catalog.schemas import MAX_WHAT, Schema, enums
from semcache.errors import InvalidOperation


def test_all_violations_are_told_in_the_order_of_their_places() -> None:
    schema = Schema({"required": ["b"], "properties": {"a": {"type": "string"}}}, name="find")
    assert [str(v) for v in schema.violations({"a": 1})] == [
        "'b' is a required property",
        "/a: 1 is not of type 'string'",
    ]


def test_a_huge_value_is_quoted_in_part() -> None:
    (violation,) = Schema({"type": "integer"}, name="find").violations("x" * 10_000)
    assert len(violation.what) == MAX_WHAT + 1


def test_what_is_no_json_schema_is_refused_by_the_name_of_the_operation() -> None:
    with pytest.raises(InvalidOperation, match="'find'"):
        Schema({"type": "nonsense"}, name="find").violations({})


def found(schema: JsonObject) -> dict[str, tuple[str, ...]]:
    return dict(enums(schema))


def test_enums_are_found_in_items_alternatives_definitions_and_nested_objects() -> None:
    schema: JsonObject = {
        "properties": {
            "color": {"anyOf": [{"enum": ["red", 5]}, {"type": "null"}]},
            "sizes": {"type": "array", "items": {"enum": ["S", "M"]}},
            "state": {"$ref": "#/$defs/State"},
            "box": {"properties": {"lid": {"enum": ["open"]}}},
            "rows": {"items": {"properties": {"cell": {"enum": ["x"]}}}},
        },
        "$defs": {
            "State": {"enum": ["CA", "NY"]},
            "Part": {"properties": {"kind": {"enum": ["a"]}}},
        },
    }
    assert found(schema) == {
        "color": ("red",),
        "sizes": ("S", "M"),
        "state": ("CA", "NY"),
        "lid": ("open",),
        "cell": ("x",),
        "kind": ("a",),
    }


def test_operators_and_columns_are_no_values_of_the_data() -> None:
    schema: JsonObject = {
        "properties": {
            "operator": {"enum": ["=", "<"]},
            "group_by": {"items": {"enum": ["category"]}},
            "limit": {"type": "integer"},
        }
    }
    assert found(schema) == {}


def test_a_schema_that_refers_to_itself_is_read_to_its_end() -> None:
    schema: JsonObject = {
        "properties": {"part": {"$ref": "#/$defs/Part"}},
        "$defs": {"Part": {"enum": ["a"], "items": {"$ref": "#/$defs/Part"}}},
    }
    assert found(schema) == {"part": ("a",)}


def test_what_is_no_schema_declares_nothing() -> None:
    assert found({"properties": {"x": 5}, "$defs": []}) == {}
    assert found({"properties": {"x": {"$ref": "#/$defs/None", "anyOf": 5}}}) == {}
