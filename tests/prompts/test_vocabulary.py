from typing import Literal

import pytest

from semcache import Catalog, Operation, PromptSchema, catalog_from
from semcache.canonical import Json, JsonObject
from semcache.prompts.vocabulary import Vocabulary

WORDS = Vocabulary(
    actions=("list", "summarize"),
    entities=("sale",),
    fields=("amount", "category", "year"),
)


def list_pull_requests(
    *, repository: str, state: Literal["open", "closed"] = "open", min_age: int = 0
) -> list[str]:
    """List pull requests."""
    return [repository, state, str(min_age)]


def cancel_order(*, order_id: str) -> None:
    """Cancel an order."""


@pytest.fixture
def catalog() -> Catalog:
    return catalog_from(list_pull_requests, cancel_order, synonyms={"PR": "pull_request"})


def test_labels_of_values_belong_to_it() -> None:
    state: JsonObject = {"enum": ["CA", "NY"], "enumNames": ["California", "New York"]}
    schema: JsonObject = {"type": "object", "properties": {"state": state}}
    words = Vocabulary.from_catalog(Catalog([Operation("list_orders", "", schema, effect="read")]))
    assert words.labels == {"state": {"California": "CA", "New York": "NY"}}


def test_the_words_of_a_catalog_come_from_its_names_and_schemas(catalog: Catalog) -> None:
    words = Vocabulary.from_catalog(catalog)
    assert words.actions == ("cancel", "list", "search")
    assert words.entities == ("order", "pull_request")
    assert words.fields == ("age", "min_age", "order_id", "repository", "state")
    assert words.closed == {"state": ("open", "closed")}
    assert words.synonyms == {"PR": "pull_request"}


def test_fields_are_added_without_changing_a_vocabulary() -> None:
    assert WORDS.with_fields(["state"]).fields == ("amount", "category", "state", "year")
    assert WORDS.fields == ("amount", "category", "year")


def test_a_model_is_bound_to_five_lists() -> None:
    # specs: A1 (dictionary), A3
    document = WORDS.to_json()
    assert list(document) == ["actions", "entities", "fields", "operators", "aggregates"]
    assert document["entities"] == ["sale"]


def test_a_schema_in_the_vocabulary_has_no_findings() -> None:
    params: dict[str, Json] = {
        "year": {"operator": "greater_than", "operand": 2022},
        "amount": {"aggregate": "sum"},
        "sort_by": "amount",
        "order": "desc",
        "limit": 5,
    }
    assert WORDS.validate(PromptSchema("summarize", ("sale",), ("category",), params)) == ()


def test_everything_outside_the_vocabulary_is_found_at_once() -> None:
    # specs: A1 (validation), A-15
    params: dict[str, Json] = {
        "color": "red",
        "amount": {"operator": "~", "operand": 1},
        "year": {"aggregate": "mode"},
        "sort_by": "size",
        "order": "up",
    }
    assert WORDS.validate(PromptSchema("query", ("Sale",), ("state",), params)) == (
        "Action 'query' is not in dictionary",
        "Entity 'Sale' is not in dictionary",
        "Param key 'color' is not in dictionary",
        "Operator '~' of 'amount' is not in dictionary",
        "Aggregate 'mode' of 'year' is not in dictionary",
        "Sort field 'size' is not in dictionary",
        "Order 'up' is neither 'asc' nor 'desc'",
        "Group by field 'state' is not in dictionary",
    )


def test_an_action_is_required_and_local_is_always_allowed() -> None:
    # specs: A1 (validation)
    assert WORDS.validate(PromptSchema("")) == ("Action is required for cache key",)
    assert WORDS.validate(PromptSchema("local")) == ()


def test_a_field_named_like_a_control_is_a_field() -> None:
    words = WORDS.with_fields(["order"])
    assert words.validate(PromptSchema("list", params={"order": "ORD17"})) == ()
