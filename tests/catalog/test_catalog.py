"""A catalog: names, fingerprints, domains, and what it says about input."""

from typing import Any

import pytest

from semcache import Catalog, Operation
from semcache.canonical import JsonObject
from semcache.errors import InvalidOperation, UnknownOperation

LIMIT: JsonObject = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}},
    "required": ["limit"],
}


def make(name: Any = "find", **fields: Any) -> Operation:
    return Operation(**{"name": name, "summary": "Find.", "input_schema": {}, **fields})


def test_operations_are_found_by_name_and_listed_in_the_order_of_names() -> None:
    catalog = Catalog([make("sell"), make("buy")])
    assert catalog.get("sell").name == "sell"
    assert catalog.names == ("buy", "sell")
    assert [operation.name for operation in catalog] == ["buy", "sell"]
    assert len(catalog) == 2
    assert "buy" in catalog
    assert "bye" not in catalog


def test_an_unknown_name_is_refused_with_names_near_it() -> None:
    catalog = Catalog([make("query_sales"), make("get_order")])
    with pytest.raises(UnknownOperation, match=r"'query_sale'.*'query_sales'") as raised:
        catalog.get("query_sale")
    assert "get_order" not in str(raised.value)


def test_an_empty_catalog_says_that_it_is_empty() -> None:
    for ask in (Catalog().get, lambda name: Catalog().violations(name, {})):
        with pytest.raises(UnknownOperation, match="it is empty"):
            ask("find")


def test_two_operations_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidOperation, match="two operations are named 'find'"):
        Catalog([make(), make(summary="Other.")])


@pytest.mark.parametrize(
    "broken", [make(name=" "), make(name=5), make(input_schema={"x": float("nan")}), "find"]
)
def test_what_cannot_be_an_operation_is_refused(broken: Any) -> None:
    with pytest.raises(InvalidOperation):
        Catalog([broken])


def test_with_adds_an_operation_and_replaces_one_of_its_name() -> None:
    catalog = Catalog([make()], closed={"color": ["red"]}, synonyms={"hue": "color"})
    changed = catalog.with_(make(summary="Other.")).with_(make("buy"))
    assert changed.names == ("buy", "find")
    assert changed.get("find").summary == "Other."
    assert catalog.get("find").summary == "Find."
    assert (changed.closed, changed.synonyms) == (catalog.closed, catalog.synonyms)


def test_the_fingerprint_follows_the_operations_and_not_their_order() -> None:
    one, other = make("buy"), make("sell")
    assert Catalog([one, other]).fingerprint == Catalog([other, one]).fingerprint
    assert Catalog([one]).fingerprint != Catalog([one, other]).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"summary": "Other."},
        {"input_schema": LIMIT},
        {"output_schema": LIMIT},
        {"effect": "read"},
    ],
)
def test_any_change_of_an_operation_changes_the_fingerprints(change: dict[str, Any]) -> None:
    before, after = Catalog([make()]), Catalog([make(**change)])
    assert before.fingerprint != after.fingerprint
    assert before.fingerprints != after.fingerprints


@pytest.mark.parametrize("change", [{"call": print}, {"idempotency_key": "k", "compensation": "u"}])
def test_what_is_behind_a_description_keeps_the_fingerprint(change: dict[str, Any]) -> None:
    assert Catalog([make()]).fingerprint == Catalog([make(**change)]).fingerprint


def test_catalogs_are_equal_by_operations_and_words() -> None:
    assert Catalog([make()]) == Catalog([make()])
    assert hash(Catalog([make()])) == hash(Catalog([make()]))
    assert Catalog([make()]) != Catalog([make()], closed={"color": ["red"]})
    assert Catalog([make()]) != "catalog"


def test_closed_domains_come_from_declarations_and_from_enums_of_inputs() -> None:
    schema: JsonObject = {"properties": {"color": {"enum": ["blue", "red"]}}}
    catalog = Catalog([make(input_schema=schema)], closed={"color": ["red"], "size": ["XL"]})
    assert catalog.closed == {"color": ("red", "blue"), "size": ("XL",)}


def test_nobody_can_change_a_catalog_through_what_it_shows() -> None:
    catalog = Catalog([make()], closed={"color": ["red"]})
    shown: Any = catalog.closed
    with pytest.raises(TypeError):
        shown["color"] = ()


def test_input_that_breaks_the_schema_is_told_with_its_place() -> None:
    catalog = Catalog([make(input_schema=LIMIT)])
    assert catalog.violations("find", {"limit": 5}) == ()
    (violation,) = catalog.violations("find", {"limit": "5"})
    assert (violation.at, violation.keyword) == (("limit",), "type")
    assert str(violation) == "/limit: '5' is not of type 'integer'"


def test_a_catalog_shows_its_names() -> None:
    assert repr(Catalog([make("sell"), make("buy")])) == "Catalog(buy, sell)"
