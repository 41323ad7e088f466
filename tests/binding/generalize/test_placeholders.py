from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError

Routes = Callable[..., JsonObject]


@pytest.mark.parametrize("value", [2024, "2024", [1, 2], {"a": 1}, True])
def test_a_whole_placeholder_takes_the_value_with_its_type(routes: Routes, value: Json) -> None:
    template = generalize(routes({"y": "{{params.year}}"}), {"year": value})  # specs: A-5
    assert bind(template, {"year": value}).plan == routes({"y": value})


def test_placeholders_inside_a_text_become_text(routes: Routes) -> None:  # specs: A-5
    plan = routes({"t": "{{params.a}} in {{ params.year }}, not {{params.a}}!"})
    template = generalize(plan, {"a": "Rome", "year": 2024})
    bound = bind(template, {"a": "x", "year": 2023}).plan
    assert bound == routes({"t": "x in 2023, not x!"})


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("amount.aggregate", "sum"),
        ("amount.operand[1]", 20),
        ("amount_limit.max", 7),
        ("Amount.aggregate", "sum"),
    ],
)
def test_a_path_leads_into_an_object(
    routes: Routes, written: str, found: Json
) -> None:  # specs: A-5
    params: dict[str, Json] = {
        "amount": {"aggregate": "sum", "operand": [10, 20]},
        "amount_limit.max": 7,
    }
    template = generalize(routes({"x": f"{{{{params.{written}}}}}"}), params)
    assert bind(template, params).plan == routes({"x": found})


def test_the_exact_flat_name_comes_before_a_path(routes: Routes) -> None:
    params: dict[str, Json] = {"a.b": "flat", "a": {"b": "deep"}}
    template = generalize(routes({"x": "{{params.a.b}}"}), params)
    assert bind(template, params).plan == routes({"x": "flat"})


@pytest.mark.parametrize("written", ["year", "a.b.c", "a[9]", "", "a b", "a..b", "__class__"])
def test_a_placeholder_that_names_nothing_is_refused(routes: Routes, written: str) -> None:
    with pytest.raises(BindingError, match="placeholder") as caught:  # specs: A-5
        generalize(routes({"x": f"{{{{params.{written}}}}}"}), {"a": {"b": [1]}})
    assert caught.value.reason == "placeholder"


@pytest.mark.parametrize("at", ["condition", "path", "operation", "key"])
def test_a_placeholder_where_its_value_would_be_evaluated_is_refused(
    routes: Routes, at: str
) -> None:
    plan = routes({"x": "$.call[?(@.n == '{{params.n}}')]"} if at == "path" else {})
    if at == "condition":
        plan["start_node"] = {"route": [{"condition": "{{params.n}} > 1", "node": "end"}, "end"]}
    elif at == "operation":
        plan = routes({}, operation="{{params.n}}")
    elif at == "key":
        plan = routes({"{{params.n}}": 1})
    with pytest.raises(BindingError):
        generalize(plan, {"n": "x"})


def test_a_price_before_a_placeholder_is_no_path(routes: Routes) -> None:
    template = generalize(routes({"x": "${{params.amount}}"}), {"amount": 500})
    bound = bind(template, {"amount": 7})
    assert bound.plan == routes({"x": "$7"})
    assert ("call", "input", "x") in bound.data


def test_a_users_text_that_looks_like_a_placeholder_is_data(routes: Routes) -> None:
    text = "{{params.year}}"
    template = generalize(routes({"note": text, "year": 2024}), {"note": text, "year": 2024})
    bound = bind(template, {"note": "{{params.secret}}", "year": 2023})
    assert bound.plan == routes({"note": "{{params.secret}}", "year": 2023})


def test_a_placeholder_that_may_be_the_users_own_text_is_refused(routes: Routes) -> None:
    params = [Parameter("note", "see {{params.year}}"), Parameter("year", 2024)]
    with pytest.raises(BindingError, match="own text"):
        generalize(routes({"x": "{{params.year}}"}), params)


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "year": {"type": "integer"},
        "zip": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        "any": {"type": ["integer", "string"]},
    },
    "$defs": {"Filter": {"properties": {"value": {"type": "number"}}}},
}


@pytest.mark.parametrize(
    ("inputs", "given", "bound"),
    [
        ({"year": "{{params.p}}"}, "2024", {"year": 2024}),
        ({"zip": "{{params.p}}"}, "01234", {"zip": "01234"}),
        ({"zip": "{{params.p}}"}, 1234, {"zip": "1234"}),
        ({"filters": [{"value": "{{params.p}}"}]}, "2.5", {"filters": [{"value": 2.5}]}),
        ({"any": "{{params.p}}"}, "7", {"any": "7"}),
        ({"other": "{{params.p}}"}, "7", {"other": "7"}),
    ],
)
def test_types_follow_the_schema_of_the_operation(
    routes: Routes, inputs: JsonObject, given: Json, bound: JsonObject
) -> None:
    template = generalize(routes(inputs), {"p": given}, schemas={"find": SCHEMA})
    assert bind(template, {"p": given}).plan == routes(bound)


@pytest.mark.parametrize("given", ["01234", "2024.5", "twenty", True, None, [2024]])
def test_a_type_that_would_lose_something_is_refused(routes: Routes, given: Json) -> None:
    template = generalize(
        routes({"year": "{{params.year}}"}), {"year": 2024}, schemas={"find": SCHEMA}
    )
    with pytest.raises(BindingError) as caught:
        bind(template, {"year": given})
    assert caught.value.reason == "type"


def test_types_follow_the_schema_of_a_tasks_plan() -> None:
    plan: JsonObject = {
        "tasks": [{"id": "task1", "service": "find", "input": {"year": "{{params.year}}"}}]
    }
    template = generalize(plan, {"year": "2024"}, schemas={"find": SCHEMA})
    bound = bind(template, {"year": "2023"}).plan
    assert bound == {"tasks": [{"id": "task1", "service": "find", "input": {"year": 2023}}]}


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        ({"enum": [1, 2]}, 2),
        ({"const": 2}, 2),
        ({"enum": ["2", None]}, "2"),
        ({"enum": [1, "x"]}, "2"),
    ],
)
def test_listed_values_tell_the_type_too(routes: Routes, schema: JsonObject, bound: Json) -> None:
    schemas: dict[str, JsonObject] = {"find": {"properties": {"x": schema}}}
    template = generalize(routes({"x": "{{params.p}}"}), {"p": "2"}, schemas=schemas)
    assert bind(template, {"p": "2"}).plan == routes({"x": bound})


def test_a_placeholder_in_what_a_plan_returns_has_any_type(routes: Routes) -> None:
    plan = routes({})
    plan["end"] = {"completed": True, "vars": {"year": "{{params.year}}"}}
    template = generalize(plan, {"year": "2024"}, schemas={"find": SCHEMA})
    assert bind(template, {"year": "2023"}).plan["end"] == {
        "completed": True,
        "vars": {"year": "2023"},
    }
