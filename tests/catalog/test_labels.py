"""Labels of enums in schemas: words of a prompt become the value that a plan has."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache import Catalog, Miss, Operation, PlanCache, SemCache
from semcache.canonical import JsonObject
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input

STATE: JsonObject = {
    "oneOf": [
        {"const": "CA", "title": "California"},
        {"const": "NY", "title": "New York"},
        {"const": "TX", "title": "Texas"},
    ]
}


def catalog(**fields: Any) -> Catalog:
    schema: JsonObject = {"type": "object", "properties": fields}
    return Catalog([Operation("depot.query", "Query the depot.", schema, effect="read")])


plan = partial(calling, "depot.query")


def cache(known: Catalog, **options: Any) -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder(), catalog=known, **options)


def served(asked: PlanCache, prompt: str) -> object:
    return given_input(asked.lookup(prompt))


@pytest.mark.parametrize(
    "described",
    [
        STATE,
        {"anyOf": [{"anyOf": STATE["oneOf"]}, {"type": "null"}]},
        {"enum": ["CA", "NY", "TX"], "enumNames": ["California", "New York", "Texas"]},
        {"enum": ["CA", "NY", "TX"], "x-enum-varnames": ["CALIFORNIA", "NEW_YORK", "TEXAS"]},
        {"enum": ["CA", "NY", "TX"], "x-enum-varnames": ["California", "NewYork", "Texas"]},
        {
            "enum": ["CA", "NY", "TX"],
            "x-enum-descriptions": {"CA": "California", "NY": "New York", "TX": "Texas"},
        },
        {
            "enum": ["CA", "NY", "TX"],
            "x-ms-enum": {
                "values": [
                    {"value": "CA", "name": "California"},
                    {"value": "NY", "name": "NewYork"},
                    {"value": "TX", "name": "Texas"},
                ]
            },
        },
    ],
)
def test_words_that_a_schema_has_for_a_value_become_that_value(described: JsonObject) -> None:
    with cache(catalog(state=described)) as asked:
        assert asked.store("trucks in California", plan(state="CA"), params={"state": "CA"})
        assert served(asked, "trucks in New York") == {"state": "NY"}
        assert served(asked, "Trucks in texas?") == {"state": "TX"}
        assert served(asked, "trucks in TX") == {"state": "TX"}
        assert isinstance(asked.lookup("trucks in Ontario"), Miss)


def test_labeled_numbers_stay_numbers() -> None:
    urgency: JsonObject = {"enum": [1, 2, 3], "x-enum-varnames": ["LATER", "Soon", "AtOnce"]}
    with cache(catalog(urgency=urgency)) as asked:
        assert asked.store("trucks needed soon", plan(urgency=2), params={"urgency": 2})
        assert served(asked, "trucks needed at once") == {"urgency": 3}


def test_labels_of_items_and_of_definitions_count_too() -> None:
    known = catalog(states={"type": "array", "items": STATE}, home={"$ref": "#/$defs/Gone"})
    assert known.labels == {"states": {"California": "CA", "New York": "NY", "Texas": "TX"}}


def test_a_table_of_the_user_goes_before_the_labels() -> None:
    tables = {"state": {"Texas": "NY"}}
    with cache(catalog(state=STATE), translations=tables) as asked:
        assert asked.store("trucks in California", plan(state="CA"), params={"state": "CA"})
        assert served(asked, "trucks in Texas") == {"state": "NY"}


def test_what_the_words_stand_for_is_checked_against_the_operation_that_is_called() -> None:
    fewer: JsonObject = {"enum": ["CA", "NY"]}
    schema: JsonObject = {"type": "object", "properties": {"state": fewer}}
    one = Operation("depot.query", "Query the depot.", schema, effect="read")
    other = Operation("other", "Another.", {"properties": {"state": STATE}}, effect="read")
    with cache(Catalog([one, other])) as asked:
        assert asked.store("trucks in California", plan(state="CA"), params={"state": "CA"})
        assert served(asked, "trucks in New York") == {"state": "NY"}
        assert isinstance(asked.lookup("trucks in Texas"), Miss)


@pytest.mark.parametrize(
    "described",
    [
        {"const": "circle", "title": "Shape"},  # the title is the field's, not the value's
        {"anyOf": [{"const": "circle", "title": "Shape"}, {"type": "null"}]},
        {"enum": ["a", "b"], "enumNames": ["first of all"]},  # another length
        {"enum": ["a", "b"], "enumNames": [5, None]},
        {"enum": ["a", "b"], "x-enum-descriptions": ["It is the first letter of all.", "B"]},
        {"enum": [None, ["b"]], "enumNames": ["nothing", "a list"]},
        {"oneOf": [{"const": "a", "title": "The Other"}, {"const": "b", "title": "the other"}]},
        {"oneOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "B"}]},
        {"enum": "ab", "enumNames": "ab", "oneOf": 5, "x-ms-enum": [5]},
        {"enum": ["a"], "x-ms-enum": {"values": [5, {"value": "a"}, {"name": "A value"}]}},
    ],
)
def test_what_names_no_value_or_two_is_no_label(described: JsonObject) -> None:
    assert catalog(state=described).labels == {}


def test_what_shapes_a_query_has_no_labels() -> None:
    order: JsonObject = {"enum": ["asc", "desc"], "enumNames": ["rising", "falling"]}
    assert catalog(order=order).labels == {}


def test_words_that_two_fields_have_for_different_values_are_no_label_of_either() -> None:
    urgency: JsonObject = {"enum": [1, 2], "enumNames": ["low", "high"]}
    risk: JsonObject = {"enum": [1, 3], "enumNames": ["low", "high"]}
    assert catalog(urgency=urgency, risk=risk).labels == {"urgency": {"low": 1}}


JSON = st.recursive(
    st.sampled_from([None, True, 5, -1.5, "", "a", "A b", "NEW_YORK", "All."]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["enum", "enumNames", "oneOf", "anyOf", "const", "title", "x-ms-enum"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_stands_in_a_schema_its_labels_can_be_read(described: Any) -> None:
    for words, value in catalog(state=described).labels.get("state", {}).items():
        assert len(words) > 1
        assert value is not None


def test_another_wording_with_a_label_has_the_same_schema() -> None:
    asked: list[JsonObject] = []

    def query(values: JsonObject) -> JsonObject:
        asked.append(values)
        return {"count": len(asked)}

    schema: JsonObject = {"type": "object", "properties": {"state": STATE}}
    listing = Operation("list_orders", "List orders.", schema, effect="read", call=query)
    with SemCache.open(catalog=Catalog([listing]), embedder=HashEmbedder()) as semcache:
        semcache.run("list orders in California")
        found = semcache.run("Could you please display the New York orders?")
    assert (found.tier, asked) == ("schema", [{"state": "CA"}, {"state": "NY"}])
