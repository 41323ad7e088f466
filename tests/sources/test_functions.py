"""Python functions as operations."""

import datetime as dt
import enum
import functools
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Operation, catalog_from, operation
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidOperation, OperationRefused
from semcache.sources.functions import load


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Row:
    day: dt.date
    amount: float


def find_orders(
    schema: str, since: dt.date | None = None, *, limit: int = 5, color: Color = Color.RED
) -> list[Row]:
    """Find the orders of a
    schema.

    Only the newest are found.

    Args:
        schema: which book
            of orders to look in
        since (date): the first day

    Returns:
        The orders.
    """
    return [Row(since or dt.date(2024, 1, 1), float(limit))] * (2 if schema else 1)


def properties(found: Operation) -> dict[str, Any]:
    listed = found.input_schema["properties"]
    assert isinstance(listed, dict)
    return listed


def call(found: Operation, **values: Json) -> object:
    assert found.call is not None
    return found.call(values)


def test_name_summary_and_effect_come_from_the_function_and_the_careful_default() -> None:
    found = operation(find_orders)
    assert found.name == "find_orders"
    assert found.summary == "Find the orders of a schema."
    assert found.effect == "write"


def test_a_decorator_with_arguments_says_what_the_function_does_not() -> None:
    @operation(name="orders.find", effect="read", summary="Find orders.")
    def find(limit: int) -> int:
        return limit

    assert (find.name, find.effect, find.summary) == ("orders.find", "read", "Find orders.")


def test_a_bare_decorator_works_and_a_missing_docstring_is_made_up_for_by_the_name() -> None:
    @operation
    def get_order(order_id: str) -> str:
        return order_id

    assert get_order.summary == "get order"


def test_the_schema_has_types_defaults_and_descriptions_but_no_titles() -> None:
    found = operation(find_orders)
    described = properties(found)
    assert found.input_schema["required"] == ["schema"]
    assert found.input_schema["additionalProperties"] is False
    assert described["schema"] == {
        "type": "string",
        "description": "which book of orders to look in",
    }
    assert described["limit"] == {"type": "integer", "default": 5}
    assert described["since"]["description"] == "the first day"
    assert "title" not in str(found.input_schema["properties"])
    assert found.output_schema["type"] == "array"


def test_input_becomes_python_values_and_output_becomes_json() -> None:
    found = operation(find_orders)
    assert call(found, schema="", since="2024-02-03", limit=7) == [
        {"day": "2024-02-03", "amount": 7.0}
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"schema": "x", "limit": "5"},
        {"schema": "x", "limit": True},
        {"schema": 5},
        {"schema": "x", "since": "yesterday"},
        {"schema": "x", "color": "green"},
        {"schema": "x", "other": 1},
        {},
    ],
)
def test_input_that_would_have_to_be_bent_is_refused_before_the_call(values: JsonObject) -> None:
    with pytest.raises(OperationRefused, match="'find_orders' does not take this input"):
        call(operation(find_orders), **values)


def test_text_with_leading_zeros_stays_text() -> None:
    assert call(operation(lambda_of_text), code="01234") == "01234"


def lambda_of_text(code: str) -> str:
    return code


def test_arguments_may_have_the_names_of_model_attributes() -> None:
    def find(copy: int, model_config: str, json: list[int]) -> list[object]:
        return [copy, model_config, json]

    assert call(operation(find), copy=1, model_config="x", json=[2]) == [1, "x", [2]]


def test_an_omitted_argument_takes_the_default_of_the_function() -> None:
    marker = object()

    def find(limit: int | None = marker) -> bool:  # type: ignore[assignment]  # a default of its own
        return limit is marker

    assert call(operation(find)) is True


def test_any_json_can_be_taken_and_given() -> None:
    def echo(value: Json) -> JsonObject:
        return {"value": value}

    assert call(operation(echo), value=[1, {"a": None}]) == {"value": [1, {"a": None}]}


def test_bound_methods_are_operations_without_their_self() -> None:
    class Shop:
        def sell(self, count: int) -> int:
            return count + 1

    found = operation(Shop().sell)
    assert list(properties(found)) == ["count"]
    assert call(found, count=1) == 2


def test_a_result_that_json_cannot_describe_has_no_schema_and_is_passed_on() -> None:
    def zone() -> dt.tzinfo:
        return dt.UTC

    found = operation(zone)
    assert found.output_schema == {}
    assert call(found) is dt.UTC


def test_a_result_that_breaks_its_annotation_is_an_error() -> None:
    def count() -> int:
        return "five"  # type: ignore[return-value]  # the very mistake

    with pytest.raises(Exception, match="int"):
        call(operation(count))


def unannotated(limit) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - the very mistake
    return int(limit)


def positional(limit: int, /) -> int:
    return limit


def many(*limits: int) -> int:
    return len(limits)


def more(**limits: int) -> int:
    return len(limits)


def undefined(limit: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821 - the very mistake
    return int(limit)


def unjson(zone: dt.tzinfo) -> None: ...


def callback(hook: Callable[[], int]) -> None: ...


async def stream(limit: int) -> AsyncIterator[int]:
    yield limit


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (unannotated, "argument 'limit' of operation 'unannotated' has no annotation"),
        (positional, "argument 'limit' of operation 'positional' is positional-only"),
        (many, "'limits' of operation 'many'"),
        (more, "'limits' of operation 'more'"),
        (undefined, "annotations of operation 'undefined' cannot be read"),
        (unjson, "'unjson' has a type that JSON cannot carry"),
        (callback, "'callback' has a type that JSON cannot carry"),
        (stream, "'stream' is an asynchronous generator"),
        (functools.partial(positional, 5), "is no function"),
        (5, "is no function"),
    ],
)
def test_what_a_plan_could_not_call_is_refused(fn: Any, said: str) -> None:
    with pytest.raises(InvalidOperation, match=said):
        operation(fn)


def test_an_unknown_effect_is_refused() -> None:
    effect: Any = "maybe"
    with pytest.raises(InvalidOperation, match="'maybe'"):
        operation(find_orders, effect=effect)


def test_a_catalog_is_made_of_functions_and_operations() -> None:
    catalog = catalog_from(find_orders, operation(lambda_of_text, effect="read"))
    assert catalog.names == ("find_orders", "lambda_of_text")
    assert [found.effect for found in catalog] == ["write", "read"]


def test_a_catalog_takes_the_words_of_the_domain() -> None:
    catalog = catalog_from(find_orders, closed={"size": ["XL"]}, synonyms={"hue": "color"})
    assert catalog.closed["size"] == ("XL",)
    assert catalog.synonyms == {"hue": "color"}


SOURCE = """
from semcache.sources.functions import catalog_from, operation

def find(limit: int) -> int:
    return limit

def sell(limit: int) -> int:
    return limit

one = operation(find)
both = [find, sell]
catalog = catalog_from(sell)
number = 5
mixed = [find, 5]
"""


@pytest.fixture
def module(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterable[str]:
    (tmp_path / "shop_of_the_test.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "broken_shop.py").write_text("import nowhere_at_all", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "shop_of_the_test"
    sys.modules.pop("shop_of_the_test", None)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("find", ("find",)),
        ("one", ("find",)),
        ("both", ("find", "sell")),
        ("catalog", ("sell",)),
    ],
)
def test_operations_are_loaded_by_address(module: str, name: str, names: tuple[str, ...]) -> None:
    assert load(f"{module}:{name}").names == names


@pytest.mark.parametrize(
    "address",
    [
        "",
        "shop",
        ":x",
        "shop_of_the_test:",
        "nowhere_at_all:x",
        "broken_shop:x",
        "shop_of_the_test:nothing",
        "shop_of_the_test:number",
        "shop_of_the_test:mixed",
    ],
)
def test_an_address_without_operations_is_refused(module: str, address: str) -> None:
    with pytest.raises(InvalidOperation):
        load(address)


def test_the_argument_for_the_idempotency_key_is_not_for_planners() -> None:
    def pay(amount: int, key: str) -> str:
        return f"{amount} {key}"

    paying = operation(pay, idempotency_key="key", compensation="refund")
    assert paying.input_schema["properties"] == {"amount": {"type": "integer"}}
    assert paying.input_schema["required"] == ["amount"]
    assert (paying.idempotency_key, paying.compensation) == ("key", "refund")
    with pytest.raises(InvalidOperation, match="no argument 'token'"):
        operation(pay, idempotency_key="token")


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_input_is_either_taken_as_it_is_or_refused(value: Json) -> None:
    try:
        assert call(operation(lambda_of_text), code=value) == value
    except OperationRefused:
        assert not isinstance(value, str)


class Town(TypedDict):
    name: str
    people: NotRequired[int]


class Trip(TypedDict):
    towns: list[Town]
    end: Town | None


def test_typed_dicts_of_the_standard_library_describe_what_goes_in_and_out() -> None:
    def plan_trip(trip: Trip) -> list[Town]:
        return trip["towns"]

    (operation,) = catalog_from(plan_trip)
    assert operation.output_schema["type"] == "array"
    definitions: Any = operation.output_schema["$defs"]
    town = definitions["Town"]
    assert (town["required"], town["properties"].keys()) == (["name"], {"name", "people"})
    assert operation.call is not None
    assert operation.call({"trip": {"towns": [{"name": "Oslo"}], "end": None}}) == [
        {"name": "Oslo"}
    ]
