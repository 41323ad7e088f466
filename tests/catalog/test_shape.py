import pytest

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.catalog.shape import Shape, shape


def shaped(operation: str = "list_things", /, **properties: Json) -> Shape:
    schema: JsonObject = {"type": "object", "properties": properties}
    return shape(Operation(name=operation, summary="", input_schema=schema))


@pytest.mark.parametrize(
    ("name", "verb", "noun"),
    [
        ("list_issues", "list", "issues"),
        ("querySalesData", "query", "sales"),
        ("get_order_by_id", "get", "order"),
        ("github.list_pull_requests", "list", "pull_requests"),
        ("weather", "get", "weather"),
        ("issues.list", "list", "issues"),
        ("tracker.orders/search", "search", "orders"),
        ("city.weather", "get", "weather"),
        ("get_all_records", "get", "all_records"),
        ("GetHTTPStatus", "get", "http_status"),
    ],
)
def test_a_name_has_a_verb_and_a_noun(name: str, verb: str, noun: str) -> None:
    one = shaped(name)
    assert (one.verb, one.noun) == (verb, noun)


@pytest.mark.parametrize(
    ("name", "field", "operator"),
    [
        ("maxPrice", "price", "<="),
        ("min_price", "price", ">="),
        ("since", "since", ">="),
        ("start_date", "date", ">="),
        ("end_date", "date", "<="),
        ("to_city", "to_city", "="),
        ("end_user", "end_user", "="),
        ("orderId", "order_id", "="),
    ],
)
def test_an_input_is_about_a_field_and_compares_it(name: str, field: str, operator: str) -> None:
    described: JsonObject = {name: {"type": "string"}}
    (one,) = shaped(**described).inputs
    assert (one.name, one.field, one.operator) == (name, field, operator)


def test_a_description_can_leave_the_end_out() -> None:
    open_end: Json = {"type": "number", "description": "Only products that cost less than this."}
    closed_end: Json = {"type": "number", "description": "Products that cost no more than this."}
    assert shaped(max_price=open_end).inputs[0].operator == "<"
    assert shaped(max_price=closed_end).inputs[0].operator == "<="


def test_types_are_read_through_alternatives_and_without_null() -> None:
    (one,) = shaped(tags={"anyOf": [{"type": "array"}, {"type": "null"}]}).inputs
    assert one.types == {"array"}
    assert one.many


def test_a_limit_is_no_field() -> None:
    one = shaped(limit={"type": "integer"}, owner={"type": "string"})
    assert one.limit == "limit"
    assert [given.name for given in one.inputs] == ["owner"]


def test_a_query_is_read_through_references() -> None:
    schema: JsonObject = {
        "$defs": {
            "Filter": {
                "properties": {
                    "column": {"$ref": "#/$defs/Field"},
                    "op": {"enum": ["eq", "gt"]},
                    "value": {},
                }
            },
            "Field": {"anyOf": [{"enum": ["size"]}, {"const": "color"}]},
        },
        "properties": {
            "where": {"anyOf": [{"items": {"$ref": "#/$defs/Filter"}}, {"type": "null"}]},
            "groupBy": {"items": {"$ref": "#/$defs/Field"}},
            "owner": {"type": "string"},
        },
        "required": ["owner"],
    }
    one = shape(Operation(name="query_boxes", summary="", input_schema=schema))
    assert one.query is not None
    assert one.query.filters.fields == ("size", "color")
    assert (one.query.filters.field_key, one.query.filters.second_key) == ("column", "op")
    assert one.query.groups is not None
    assert one.query.aggregates is None
    assert [given.name for given in one.required] == ["owner"]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": None},
        {"properties": {"filters": None, "x": []}},
        {"properties": {"filters": {"items": {"properties": {"odd": {}}}}}},
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "properties": {"filters": {"$ref": "#/$defs/A"}}},
    ],
)
def test_what_cannot_be_read_is_left_out(schema: JsonObject) -> None:
    one = shape(Operation(name="list_things", summary="", input_schema=schema))
    assert one.query is None


def test_a_schema_that_refers_to_itself_over_and_over_ends() -> None:
    again: list[Json] = [{"$ref": "#/$defs/knot"} for _ in range(50)]
    knot: JsonObject = {"anyOf": [*again, {"enum": ["a"]}]}
    schema: JsonObject = {
        "type": "object",
        "properties": {"knot": {"$ref": "#/$defs/knot"}},
        "$defs": {"knot": knot},
    }
    operation = Operation("list_knots", "", schema)
    assert [one.name for one in shape(operation).inputs] == ["knot"]
    assert Catalog([operation]).closed == {"knot": ("a",)}
