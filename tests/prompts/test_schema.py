from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter, PromptSchema
from semcache.canonical import Json
from semcache.errors import InvalidJson, InvalidParameter
from semcache.prompts.parameter import type_key
from semcache.prompts.schema import AGGREGATES, OPERATORS, aggregate_name, operator_name


def test_the_wire_form_is_snake_case_and_has_the_key() -> None:
    # specs: A-1
    schema = PromptSchema("search", ("sale",), ("state",), {"year": 2024}, {"year": "2024"})
    assert schema.to_json() == {
        "action": "search",
        "entities": ["sale"],
        "group_by": ["state"],
        "params": {"year": 2024},
        "cache_key": "search-sale-year-group_state",
    }


def test_unknown_members_are_ignored_and_missing_ones_are_empty() -> None:
    # specs: A1 (wire form)
    text = '{"action": "list", "entities": null, "params": null, "cache_key": "lie", "note": 1}'
    schema = PromptSchema.from_json(text)
    assert schema == PromptSchema("list")
    assert schema.key == "list"


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "not json",
        '{"action": 1}',
        '{"action": "list", "entities": "sale"}',
        '{"action": "list", "group_by": [1]}',
        '{"action": "list", "params": []}',
        '{"action": "list", "params": {"year": NaN}}',
    ],
)
def test_what_is_no_schema_is_refused(document: str) -> None:
    with pytest.raises(InvalidJson):
        PromptSchema.from_json(document)


def test_a_parameter_that_is_not_json_is_refused() -> None:
    nan: Any = float("nan")
    with pytest.raises(InvalidParameter, match="year is nan"):
        PromptSchema("list", params={"year": nan})


def test_the_schema_keeps_its_own_copy_of_the_parameters() -> None:
    operand: list[Json] = ["TX"]
    schema = PromptSchema("list", params={"state": {"operator": "in", "operand": operand}})
    operand.append("CA")
    assert schema.params == {"state": {"operator": "in", "operand": ["TX"]}}


def test_parameters_are_the_values_and_not_the_structure() -> None:
    schema = PromptSchema(
        "summarize",
        params={
            "year": {"operator": "between", "operand": [2021, 2023]},
            "amount": {"operator": ">", "operand": 500, "aggregate": "sum"},
            "state": {"operator": "in", "operand": ["TX", "CA"]},
            "channel": "online",
            "sort_by": "amount",
            "order": "desc",
            "limit": 5,
        },
        mentions={"amount.operand": "$500", "limit": "five"},
    )
    assert schema.parameters() == (
        Parameter("year.operand.0", 2021),
        Parameter("year.operand.1", 2023),
        Parameter("amount.operand", 500, mention="$500"),
        Parameter("state.operand", ["TX", "CA"]),
        Parameter("channel", "online"),
        Parameter("limit", 5, mention="five"),
    )


def test_an_operand_has_the_slot_type_of_its_field() -> None:
    assert {type_key(name) for name in ("state", "state.operand")} == {"state"}
    assert type_key("year.operand.1") == "year"


def test_the_environment_is_walked_by_placeholders() -> None:
    # specs: A-5
    schema = PromptSchema("list", params={"amount": {"aggregate": "sum"}})
    env = schema.env()
    assert env == {"amount": {"aggregate": "sum"}}
    env.clear()
    assert schema.env() != {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=100)
@given(
    action=st.text(max_size=8),
    names=st.lists(st.text(max_size=5), max_size=3),
    params=st.dictionaries(st.text(max_size=8), json_values, max_size=4),
)
def test_a_schema_survives_its_wire_form(
    action: str, names: list[str], params: dict[str, Json]
) -> None:
    schema = PromptSchema(action, tuple(names), tuple(names), params)
    again = PromptSchema.from_json(schema.to_json())
    assert again == schema
    assert again.identity == schema.identity


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("greater_than", ">"),
        ("greater than", ">"),
        ("$gte", ">="),
        ("less_than_or_equal", "<="),
        ("not_equals", "!="),
        ("==", "="),
        ("is_not_null", "is_not_null"),
        ("~", None),
        ("", None),
    ],
)
def test_an_operator_is_known_by_every_usual_spelling(spelling: str, name: str | None) -> None:
    # specs: F4 (operators)
    assert operator_name(spelling) == name


def test_canonical_names_are_their_own() -> None:
    assert [operator_name(name) for name in OPERATORS] == list(OPERATORS)
    assert [aggregate_name(name) for name in AGGREGATES] == list(AGGREGATES)


def test_an_aggregate_is_known_by_every_usual_spelling() -> None:
    # specs: F4 (aggregates)
    assert aggregate_name("Average") == "avg"
    assert aggregate_name("standard_deviation") == "stddev"
    assert aggregate_name("sum of squares") is None
