from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError, InvalidParameter, InvalidPlan
from semcache.prompts.mentions import Mention

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]


def task0(**inputs: Json) -> JsonObject:
    task1: JsonObject = {"id": "task1", "service": "svc", "input": {"x": "$task0.message"}}
    return {"tasks": [{"id": "task0", "input": inputs}, task1], "parallel_groups": [["task1"]]}


def places(template: PlanTemplate) -> dict[str, str]:
    """Return last key of each bound place → parameter."""
    return {str(b.at[-1]): b.param for b in template.bindings}


def pins(template: PlanTemplate) -> dict[str, str]:
    return {pin.param: pin.why for pin in template.pinned}


# ── orra's facts ─────────────────────────────────────────────────────────────────────────────────


def test_a_value_binds_to_a_leaf_of_another_name() -> None:  # specs: D-4
    template = generalize(
        task0(message="cust12345"), {"customerId": "cust12345", "productDescription": "Red shoes"}
    )
    assert places(template) == {"message": "customerId"}
    assert pins(template) == {"productDescription": "unbound"}


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        (["swatch", "red"], ["swatch", "red"]),
        ([1, "a", None, True], [1, "a", None, True]),
        ([{"a": 1}, {"b": [2]}], [{"a": 1}, {"b": [2]}]),
        ({"city": "Paris", "zip": "75001"}, {"zip": "75001", "city": "Paris"}),
    ],
)
def test_an_array_or_an_object_binds_as_a_whole(leaf: Json, value: Json) -> None:  # specs: D-4
    template = generalize(task0(tags=leaf), {"given": value})
    assert places(template) == {"tags": "given"}
    other: Json = [*leaf, "new"] if isinstance(leaf, list) else {"city": "Rome"}
    assert bind(template, {"given": other}).plan == task0(tags=other)


def test_an_empty_array_binds_where_the_names_agree() -> None:  # specs: D-4
    template = generalize(task0(tags=[]), {"tags": []})
    assert bind(template, {"tags": ["a"]}).plan == task0(tags=["a"])


def test_one_value_may_feed_several_leaves_and_constants_stay() -> None:  # specs: D-4
    template = generalize(
        task0(message="cust12345", customer="cust12345", limit=3), {"id": "cust12345"}
    )
    bound = bind(template, {"id": "cust777"}).plan
    assert bound == task0(message="cust777", customer="cust777", limit=3)


def test_two_names_that_differ_only_in_spelling_are_refused() -> None:
    params = [Parameter("orderId", 1), Parameter("order_id", 2)]
    with pytest.raises(InvalidParameter, match="differ only in spelling"):
        generalize(task0(x=1), params)


def test_a_number_and_the_text_that_spells_it_convert_to_what_the_plan_has() -> None:  # specs: D-5
    template = generalize(task0(year="2024", quantity=31), {"year": 2024, "quantity": "31"})
    assert bind(template, {"year": 2023, "quantity": "12"}).plan == task0(year="2023", quantity=12)


@pytest.mark.parametrize(
    ("value", "leaf"), [("01234", 1234), (True, "True"), (1, True), (None, "None")]
)
def test_values_that_only_look_alike_are_not_taken_for_each_other(value: Json, leaf: Json) -> None:
    template = generalize(task0(code=leaf), {"code": value})  # specs: D-5
    assert template.bindings == ()
    assert pins(template) == {"code": "unbound"}


# ── what is pinned ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "title", ["Jordan Jones' mail", "jordan_jones", "JordanJones2", "x/jordan-jones"]
)
def test_a_name_is_found_however_it_is_written(routes: Routes, title: str) -> None:
    plan = routes({"customer": "Jordan Jones", "title": title})
    assert pins(generalize(plan, {"customer": "Jordan Jones"})) == {"customer": "left"}


@pytest.mark.parametrize("text", ["in 2016", "alias1", "v1.5", "10"])
def test_a_short_number_inside_another_word_is_no_leftover(routes: Routes, text: str) -> None:
    assert pins(generalize(routes({"rank": 1, "note": text}), {"rank": 1})) == {}


def test_the_prompts_words_for_a_value_are_leftovers_too(routes: Routes) -> None:
    plan = routes({"state": "CA", "title": "Sales in California"})
    template = generalize(plan, [Parameter("state", "CA", mention="California")])
    assert pins(template) == {"state": "left"}


def test_a_text_that_calls_the_parameter_by_name_keeps_its_own_numbers(routes: Routes) -> None:
    plan = routes({"sql": "since -{ago} year LIMIT 1", "args": {"ago": "1"}})
    assert pins(generalize(plan, {"ago": "1"})) == {}


def test_a_parameters_own_name_is_no_leftover_of_its_value(routes: Routes) -> None:
    plan = routes({"text": "is it {higher_or_lower}?", "args": {"higher_or_lower": "lower"}})
    assert pins(generalize(plan, {"higher_or_lower": "lower"})) == {}


def test_a_common_value_does_not_bind_a_leaf_by_chance(routes: Routes) -> None:
    template = generalize(routes({"limit": 1, "page": 1}), {"limit": 1})
    assert places(template) == {"limit": "limit"}
    assert pins(template) == {"limit": "repeated"}


def test_a_numbered_name_is_another_than_its_neighbor(routes: Routes) -> None:
    template = generalize(routes({"city0": "Boston", "city1": "Boston"}), {"city0": "Boston"})
    assert places(template) == {"city0": "city0"}
    assert pins(template) == {"city0": "repeated"}


def test_a_word_does_not_bind_two_leaves_that_are_called_otherwise(routes: Routes) -> None:
    template = generalize(routes({"value": "Paris", "home": "Paris"}), {"city": "Paris"})
    assert pins(template) == {"city": "repeated"}


def test_a_short_number_does_not_bind_a_leaf_that_is_called_otherwise(routes: Routes) -> None:
    template = generalize(routes({"limit": 10, "min_cents": 1000}), {"amount": 10})
    assert template.bindings == ()
    assert pins(template) == {"amount": "repeated"}


def test_a_number_without_a_plain_spelling_binds_too(routes: Routes) -> None:
    template = generalize(routes({"mass": 1.5e300}), {"mass": 1.5e300})
    assert bind(template, {"mass": 2.5e300}).plan == routes({"mass": 2.5e300})


def test_the_structure_of_a_plan_is_never_bound(routes: Routes) -> None:
    template = generalize(routes({"paid": True}), {"paid": True, "step": "end", "what": "find"})
    assert places(template) == {"paid": "paid"}
    assert pins(template) == {"step": "unbound", "what": "unbound"}


def test_a_filter_binds_by_the_field_beside_it(routes: Routes) -> None:
    filters: list[JsonObject] = [
        {"field": "rooms", "operator": "=", "value": 3},
        {"field": "stars", "operator": "=", "value": 3},
    ]
    template = generalize(routes({"filters": [*filters]}), {"stars": 3, "rooms": 3})
    bound: list[JsonObject] = [{**filters[0], "value": 2}, {**filters[1], "value": 5}]
    assert bind(template, {"stars": 5, "rooms": 2}).plan == routes({"filters": [*bound]})


def test_case_converts_only_where_the_names_agree(routes: Routes) -> None:
    plan = routes({"city": "NEW YORK", "team": "mets"})
    template = generalize(plan, {"city": "New York", "club": "Mets"})
    assert places(template) == {"city": "city"}
    assert bind(template, {"city": "Boston", "club": "Mets"}).plan == routes(
        {"city": "BOSTON", "team": "mets"}
    )


def test_a_value_inside_an_array_that_is_bound_as_a_whole_is_pinned(routes: Routes) -> None:
    template = generalize(
        routes({"tags": ["red", "swatch"]}), {"tags": ["red", "swatch"], "color": "red"}
    )
    assert places(template) == {"tags": "tags"}
    assert pins(template) == {"color": "ambiguous"}


def test_an_object_that_the_plan_takes_apart_is_bound_in_parts(routes: Routes) -> None:
    plan = routes({"filters": [{"field": "amount", "operator": ">", "value": 250}]})
    template = generalize(plan, {"amount": {"operator": ">", "operand": 250}})
    bound = bind(template, {"amount": {"operator": ">", "operand": 99}})
    assert bound.plan == routes({"filters": [{"field": "amount", "operator": ">", "value": 99}]})
    others: list[Json] = [
        {"operator": "<", "operand": 99},
        {"operator": ">", "operand": [1, 2]},
        99,
    ]
    for other in others:
        with pytest.raises(BindingError):  # specs: A-4
            bind(template, {"amount": other})


# ── mentions without a parameter ─────────────────────────────────────────────────────────────────


def test_a_mention_that_stands_nowhere_is_pinned_by_its_words(routes: Routes, say: Say) -> None:
    template = generalize(routes({"sort": "x"}), mentions=[say("Fridays", "weekday")])
    assert pins(template) == {"weekday1": "unknown"}
    bind(template, {"weekday1": "fridays"})
    with pytest.raises(BindingError):
        bind(template, {"weekday1": "Mondays"})


def test_a_mention_keeps_the_form_that_the_plan_has(routes: Routes, say: Say) -> None:
    template = generalize(
        routes({"day": "March 11, 2024"}), mentions=[say("March 11, 2024", "date", "2024-03-11")]
    )
    assert template.params == (Parameter("date1", "March 11, 2024", mention="March 11, 2024"),)


def test_mentions_of_given_parameters_carry_them(routes: Routes, say: Say) -> None:
    template = generalize(
        routes({"year": 2024, "limit": 5}),
        [Parameter("year", 2024, mention="2024")],
        [say("five", value=5), say("2024", "year", 2024, name="year")],
    )
    assert template.carriers == ("number1", "year")


def test_a_name_taken_by_a_parameter_is_not_used_again(routes: Routes, say: Say) -> None:
    template = generalize(routes({"a": 44}), {"number_1": 44}, [say("55", value=55)])
    assert template.carriers == ("number2",)


def test_the_same_words_for_two_parameters_hold_them_together(routes: Routes, say: Say) -> None:
    params = [Parameter("rooms", 3, mention="3"), Parameter("stars", 3, mention="3")]
    mentions = [say("3", value=3, name="rooms"), say("3", value=3, name="stars")]
    template = generalize(routes({"rooms": 3, "stars": 3}), params, mentions)
    with pytest.raises(BindingError) as caught:
        bind(template, {"rooms": 2, "stars": 5})
    assert caught.value.reason == "equal"


def test_parameters_that_share_one_mention_follow_each_other(routes: Routes, say: Say) -> None:
    params = [Parameter("ago1", "8", mention="8"), Parameter("ago2", "8", mention="8")]
    template = generalize(
        routes({"ago1": "8", "ago2": "8"}), params, [say("8", value=8, name="ago1")]
    )
    assert template.follows == {"ago2": "ago1"}
    assert bind(template, {"ago1": "5"}).plan == routes({"ago1": "5", "ago2": "5"})


# ── values that hang together ─────────────────────────────────────────────────────────────────────


def test_words_that_repeat_a_value_change_with_it(routes: Routes, say: Say) -> None:
    params = [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace")]
    mentions = [
        say("Ada Lovelace", "customer", name="customer"),
        say("'Call with Ada Lovelace'", "quoted", "Call with Ada Lovelace"),
    ]
    template = generalize(routes({"customer": "Ada Lovelace"}), params, mentions)
    bound = bind(template, {"customer": "Bob Ray", "quoted1": "Call with Bob Ray"})
    assert bound.plan == routes({"customer": "Bob Ray"})
    for title in ("Call with Ada Lovelace", "Meet Bob Ray"):
        with pytest.raises(BindingError) as caught:
            bind(template, {"customer": "Bob Ray", "quoted1": title})
        assert caught.value.reason == "pinned"


def test_a_short_number_in_other_words_is_no_echo(routes: Routes, say: Say) -> None:
    params = [Parameter("days", 5, mention="5")]
    mentions = [say("5", value=5, name="days"), say("'Top 5'", "quoted", "Top 5")]
    template = generalize(routes({"days": 5}), params, mentions)
    assert [pin.why for pin in template.pinned] == ["unknown"]


def test_words_of_their_own_stay_pinned_beside_a_value(routes: Routes, say: Say) -> None:
    params = [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace")]
    mentions = [
        say("Ada Lovelace", "customer", name="customer"),
        say("Hello", "quoted"),
        say("70", value=70),
    ]
    plan = routes({"customer": "Ada Lovelace", "low": 70, "high": 70})
    template = generalize(plan, params, mentions)
    assert {pin.why for pin in template.pinned} == {"unknown", "repeated"}


def test_a_value_that_may_have_made_an_unsaid_one_is_pinned(routes: Routes, say: Say) -> None:
    params = [Parameter("min_age", 40, mention="40"), Parameter("max_age", 49)]
    mentions = [say("40", value=40, name="min_age")]
    template = generalize(routes({"min_age": 40, "max_age": 49}), params, mentions)
    with pytest.raises(BindingError) as caught:
        bind(template, {"min_age": 30, "max_age": 49})
    assert caught.value.reason == "pinned"


def test_a_value_inside_the_words_of_another_is_kin(routes: Routes, say: Say) -> None:
    params = [
        Parameter("address", "5 Main St", mention="5 Main St"),
        Parameter("number", 5, mention="5"),
    ]
    mentions = [say("5 Main St", "address", name="address")]
    template = generalize(routes({"address": "5 Main St", "number": 5}), params, mentions)
    with pytest.raises(BindingError):
        bind(template, {"address": "7 Oak Ave", "number": 5})


def test_an_unsaid_value_of_another_kind_does_not_pin(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="Rome"), Parameter("good_for_kids", "True")]
    template = generalize(
        routes({"city": "Rome", "good_for_kids": "True"}),
        params,
        [say("Rome", "city", name="city")],
    )
    assert template.pinned == ()


def test_the_words_of_a_parameter_find_its_mention(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="rome"), Parameter("year", 2024, mention="2024")]
    mentions = [say("2024", "year", 2024), say("Rome", "place"), say("Rome", "place")]
    template = generalize(routes({"city": "Rome", "year": 2024}), params, mentions)
    assert template.carriers == ("year", "city", "place1")
    assert template.params[0].mention == "Rome"


def test_the_same_words_for_different_values_pin_both(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="RO"), Parameter("country", "IT", mention="ro")]
    mentions = [say("RO", "code", name="city"), say("ro", "code", name="country")]
    template = generalize(routes({"city": "Rome", "country": "IT"}), params, mentions)
    assert {pin.param: pin.why for pin in template.pinned} == {
        "city": "ambiguous",
        "country": "ambiguous",
    }


def test_a_value_that_stands_twice_is_carried_by_both_mentions(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="Rome")]
    mentions = [say("Rome", "city", name="city"), say("Rome", "city", name="city")]
    assert generalize(routes({"city": "Rome"}), params, mentions).carriers == ("city", "city")


# ── what cannot be generalized ───────────────────────────────────────────────────────────────────


def test_a_value_that_is_also_a_path_of_the_plan_is_refused(routes: Routes) -> None:  # specs: A-17
    with pytest.raises(BindingError) as caught:
        generalize(routes({"q": "x"}), {"note": "$.call"})
    assert caught.value.reason == "reference"


def test_a_pinned_value_that_looks_like_a_path_is_data_too(routes: Routes) -> None:  # specs: A-17
    template = generalize(routes({"a": "$.x", "b": "$.x"}), {"q": "$.x"}, [])
    bound = bind(template, {"q": "$.x"})
    assert {("call", "input", "a"), ("call", "input", "b")} <= bound.data


def test_a_doubled_dollar_is_the_escape_of_one(routes: Routes) -> None:
    template = generalize(routes({"q": "$$500"}), {"q": "$500"})
    assert bind(template, {"q": "$900"}).plan == routes({"q": "$900"})


@pytest.mark.parametrize("plan", [{"x": float("nan")}, {"x": {1: 2}}, {"x": object()}, [1], "{}"])
def test_a_plan_that_is_not_json_is_an_invalid_plan(plan: JsonObject) -> None:
    with pytest.raises(InvalidPlan):
        generalize(plan)


def test_the_callers_plan_and_the_template_do_not_share(routes: Routes) -> None:
    plan = routes({"q": "x"})
    template = generalize(plan)
    plan["start_node"] = {}
    assert template.plan == routes({"q": "x"})
