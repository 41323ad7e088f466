"""Values become what a schema wants, nothing lost; else an error says why."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, JsonObject, same
from semcache.catalog.schemas import Schema
from semcache.errors import InvalidParameter
from semcache.planners.arguments.coercion import coerced, fits

INTEGER: JsonObject = {"type": "integer"}
STATE: JsonObject = {"type": "string", "enum": ["OPEN", "CLOSED", "IN_PROGRESS"]}
PLACE: JsonObject = {
    "oneOf": [{"const": "CA", "title": "California"}, {"const": "NY", "title": "New York"}]
}
URGENCY: JsonObject = {"enum": [1, 2, 3], "x-enum-varnames": ["Later", "Soon", "AtOnce"]}
DAY: JsonObject = {"type": "string", "format": "date"}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("10", INTEGER, 10),
        (10.0, INTEGER, 10),
        ("five", INTEGER, 5),
        ("1,200", INTEGER, 1200),
        ("2.5", {"type": "number"}, 2.5),
        ("true", {"type": "boolean"}, True),
        ("01234", {"type": "string"}, "01234"),
        (1234, {"type": "string"}, "1234"),
        ("7", {"type": ["integer", "null"]}, 7),
        (None, {"type": ["integer", "null"]}, None),
        ("7", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 7),
        ("7", {"type": ["string", "integer"]}, "7"),
        ("open", STATE, "OPEN"),
        ("in progress", STATE, "IN_PROGRESS"),
        ("2", {"enum": [1, 2, 3]}, 2),
        ("2024-03-11", DAY, "2024-03-11"),
        ("March 11, 2024", DAY, "2024-03-11"),
        ("bug", {"type": "array", "items": {"type": "string"}}, ["bug"]),
        ("open", {"type": "array", "items": STATE}, ["OPEN"]),
        ("open and closed", {"type": "array", "items": STATE}, ["OPEN", "CLOSED"]),
        ("1, 2 and 3", {"type": "array", "items": INTEGER}, [1, 2, 3]),
        ("Portland, OR", {"type": "array", "items": {"type": "string"}}, ["Portland, OR"]),
        ('["a", "b"]', {"type": "array", "items": {"type": "string"}}, ["a", "b"]),
        ('{"n": "3"}', {"type": "object", "properties": {"n": INTEGER}}, {"n": 3}),
        ({"n": "3", "m": 1}, {"type": "object", "properties": {"n": INTEGER}}, {"n": 3, "m": 1}),
        ("anything", {}, "anything"),
        ("new  york", PLACE, "NY"),
        ("California and NY", {"type": "array", "items": PLACE}, ["CA", "NY"]),
        ("at once", URGENCY, 3),
        ("AtOnce", URGENCY, 3),
        ("Later", {"anyOf": [URGENCY, {"type": "string"}]}, "Later"),
        ("Öl", {"enum": ["o", "a"], "enumNames": ["Öl", "Äl"]}, "o"),
    ],
)
def test_a_value_becomes_what_the_schema_wants(
    value: Json, schema: JsonObject, expected: Json
) -> None:
    # specs: E-6
    assert same(coerced(value, schema), expected)


@pytest.mark.parametrize(
    ("value", "schema", "why"),
    [
        ("01234", INTEGER, "a whole number"),
        ("2.5", INTEGER, "a whole number"),
        ("Ontario", PLACE, "expected one of 'CA', 'NY'"),
        ("Soon", {"enum": [1, 2], "enumNames": ["soon", "Soon"]}, "could be any of 1, 2"),
        (4, URGENCY, "expected one of 1, 2, 3"),
        ("many", {"type": "number"}, "a number"),
        ("maybe", {"type": "boolean"}, "true or false"),
        (1, {"type": "boolean"}, "true or false"),
        (True, {"type": "string"}, "text"),
        ("lost", STATE, "one of 'OPEN', 'CLOSED', 'IN_PROGRESS'"),
        ("03/11/2024", DAY, "a day written as 2024-03-11"),
        ("next week", DAY, "a day written as 2024-03-11"),
        ("2024-03-11", {"type": "string", "format": "date-time"}, "a moment"),
        ("a", {"type": "object"}, "an object"),
        (["x"], {"type": "array", "items": INTEGER}, "a whole number"),
        ("pm", {"enum": ["Pm", "PM"]}, "any of 'Pm', 'PM'"),
    ],
)
def test_what_would_lose_something_is_an_error_that_says_why(
    value: Json, schema: JsonObject, why: str
) -> None:
    # specs: E-6
    with pytest.raises(InvalidParameter, match="'size' is") as caught:
        coerced(value, schema, name="size")
    assert why in str(caught.value)
    assert not fits(value, schema)


def test_references_are_followed_in_the_document_that_has_them() -> None:
    root: JsonObject = {"$defs": {"size": INTEGER}, "properties": {"n": {"$ref": "#/$defs/size"}}}
    assert coerced("4", {"$ref": "#/$defs/size"}, root=root) == 4


def test_a_schema_that_refers_to_itself_over_and_over_ends() -> None:
    knot: JsonObject = {"anyOf": [{"$ref": "#/$defs/a"}] * 12}
    root: JsonObject = {"$defs": {"a": knot}}
    assert coerced("x", {"$ref": "#/$defs/a"}, root=root) == "x"


def test_an_enormous_schema_costs_no_more_than_its_bound() -> None:
    wide: JsonObject = {"anyOf": [{"const": f"v{i}"} for i in range(20_000)]}
    assert coerced("V3", wide) == "v3"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 3000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["10", "01234", "true", "open", "2024-03-11", "five", "a, b", "[1]", "{}"])
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
SCHEMAS: st.SearchStrategy[JsonObject] = st.one_of(
    st.sampled_from(KINDS).map(lambda kind: {"type": kind}),
    st.lists(st.sampled_from(KINDS), min_size=1, unique=True).map(lambda kinds: {"type": kinds}),
    st.just(STATE),
    st.sampled_from(KINDS).map(lambda kind: {"type": "array", "items": {"type": kind}}),
)


@given(JSON, SCHEMAS)
@settings(max_examples=200)
def test_what_comes_out_is_what_the_schema_takes_and_stays_so(
    value: Json, schema: JsonObject
) -> None:
    try:
        made = coerced(value, schema)
    except InvalidParameter:
        return
    assert not Schema(schema, name="x").violations(made)
    assert same(coerced(made, schema), made)


@given(JSON, SCHEMAS)
@settings(max_examples=200)
def test_a_value_that_the_schema_takes_comes_back_as_it_is(value: Json, schema: JsonObject) -> None:
    if not Schema(schema, name="x").violations(value):
        assert same(coerced(value, schema), value)
