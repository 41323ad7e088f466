from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.template import Binding, PlanTemplate
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError

Routes = Callable[..., JsonObject]


@pytest.fixture
def template(routes: Routes) -> PlanTemplate:
    return generalize(routes({"year": 2024, "city": "Paris"}), {"year": 2024, "city": "Paris"})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"year": 2023}, "missing"),
        ({"year": 2023, "city": "Rome", "limit": 5}, "unknown"),
        ({"year": 2023, "Year": 2022, "city": "Rome"}, "unknown"),
        ({"year": float("nan"), "city": "Rome"}, "json"),
        ({"year": 2023, "city": "\ud800"}, "json"),
        ({"year": {"$gt": 1}, "city": "Rome"}, "type"),
        ({"year": True, "city": "Rome"}, "type"),
        ({"year": 2023, "city": ["Rome"]}, "type"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_a_reason(
    template: PlanTemplate, values: dict[str, Json], reason: str
) -> None:
    with pytest.raises(BindingError) as caught:
        bind(template, values)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "text", ["$.secret", "{{params.year}}", "../../x", "'; DROP TABLE x --", "$$", "${a}"]
)
def test_text_of_a_user_stays_what_it_is(template: PlanTemplate, text: str) -> None:  # specs: A-17
    bound = bind(template, {"year": 1, "city": text})
    assert bound.plan["call"]["input"]["city"] == text  # type: ignore[index,call-overload]  # a routes plan
    assert bound.data == {("call", "input", "year"), ("call", "input", "city")}


def test_binding_leaves_the_template_as_it_was(template: PlanTemplate, routes: Routes) -> None:
    bind(template, {"year": 2023, "city": "Rome"})
    assert template.plan == routes({"year": 2024, "city": "Paris"})


def test_a_bound_container_is_a_copy(routes: Routes) -> None:
    template = generalize(routes({"tags": ["a", "b"]}), {"tags": ["a", "b"]})
    tags: list[Json] = ["c"]
    bound = bind(template, {"tags": tags})
    tags.append("d")
    assert bound.plan == routes({"tags": ["c"]})


def test_a_codec_that_this_version_lacks_is_named(routes: Routes) -> None:
    binding = Binding(("call", "input", "city"), "city", "shout")
    template = PlanTemplate(routes({"city": "PARIS!"}), (binding,), (Parameter("city", "Paris"),))
    with pytest.raises(BindingError, match="'shout'"):
        bind(template, {"city": "Rome"})


@pytest.mark.parametrize("day", ["05/02/2100", "2100-05", "2100-13-01", "May 2", 21000502])
def test_a_day_is_replaced_only_by_a_day_written_the_same_way(routes: Routes, day: Json) -> None:
    template = generalize(routes({"since": "2100-03-21"}), {"since": "2100-03-21"})
    with pytest.raises(BindingError) as caught:
        bind(template, {"since": day})
    assert caught.value.reason == "type"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/orders/{{params.id}}", "../admin"),
        ("/orders/{{params.id}}", "7?all=1"),
        ("name = '{{params.id}}'", "x' OR '1'='1"),
        ("name = '{{params.id}}'", "x\\"),
        ("n = {{params.id}}", "1 OR true"),
        ("f({{params.id}})", "1); g("),
        ("Dear {{params.id}}", "a\x00b"),
    ],
)
def test_a_value_that_could_end_the_text_it_stands_in_is_refused(
    routes: Routes, text: str, value: str
) -> None:
    template = generalize(routes({"x": text}), {"id": "abc"})
    with pytest.raises(BindingError) as caught:
        bind(template, {"id": value})
    assert caught.value.reason == "unsafe"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/orders/{{params.id}}", "ORD-7"),
        ("name = '{{params.id}}'", "Ada Lovelace (1815)"),
        ("n = {{params.id}}", 12),
        ("Dear {{params.id}}, it's 5 o'clock", "O'Brien; <b>"),
    ],
)
def test_a_value_that_stays_a_value_goes_into_text(routes: Routes, text: str, value: Json) -> None:
    template = generalize(routes({"x": text}), {"id": "abc"})
    filled = text.replace("{{params.id}}", str(value))
    assert bind(template, {"id": value}).plan == routes({"x": filled})


@pytest.mark.parametrize(
    "amount", [{"other": 1}, {"operand": "text"}, "text", [5], {"operand": [5]}]
)
def test_a_value_without_the_part_that_the_plan_takes_is_refused(
    routes: Routes, amount: Json
) -> None:
    template = generalize(routes({"x": "{{params.a.operand[1]}}"}), {"a": {"operand": [5, 6]}})
    with pytest.raises(BindingError) as caught:
        bind(template, {"a": amount})
    assert caught.value.reason in {"shape", "pinned"}


def test_a_part_that_is_not_there_is_a_shape_error(routes: Routes) -> None:
    binding = Binding(("call", "input", "x"), "a", "any", ("b",))
    template = PlanTemplate(routes({"x": 1}), (binding,), (Parameter("a", {"b": 1}),))
    for value in ({"c": 1}, "text", [1]):
        with pytest.raises(BindingError) as caught:
            bind(template, {"a": value})  # type: ignore[dict-item]  # a list of int is JSON
        assert caught.value.reason == "shape"
