import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.canonical import Json, JsonObject
from semcache.explore.score import (
    Share,
    exact_upper,
    is_right,
    plan_shape,
    plan_text,
    wilson_upper,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_plans_are_equal_by_number_and_without_case() -> None:
    assert plan_text({"a": 1.0, "b": "X "}) == plan_text({"b": "x", "a": 1})
    assert plan_text({"a": 1}) != plan_text({"a": "1"})
    assert plan_text([True]) != plan_text([1])


def test_long_numbers_are_told_apart_by_their_last_digit() -> None:
    assert plan_text(1234567) != plan_text(1234568)


@settings(max_examples=100)
@given(JSON)
def test_a_plan_is_equal_to_itself_with_its_keys_in_another_order(value: Json) -> None:
    plan: JsonObject = {"b": value, "a": 1}
    assert plan_text(plan) == plan_text({"a": 1.0, "b": value})


def test_where_no_plan_may_be_served_none_is_right() -> None:
    assert is_right({}, {})
    assert not is_right({}, None)


def test_a_shape_names_a_value_as_its_key_says_else_by_the_first_parameter() -> None:
    params = [Parameter("low", 5), Parameter("high", 5)]
    assert plan_shape({"high": 5, "x": [5, 6]}, params) == {
        "high": {"param": "high"},
        "x": [{"param": "low"}, 6],
    }


def test_the_wilson_bound_is_the_textbook_value() -> None:
    assert wilson_upper(0, 100) == pytest.approx(0.02635, abs=1e-4)
    assert wilson_upper(5, 100) == pytest.approx(0.09914, abs=1e-3)
    assert wilson_upper(0, 0) == 0


def test_the_exact_bound_is_the_rule_of_three_and_never_below_the_share() -> None:
    assert exact_upper(0, 299, 0.95) == pytest.approx(0.01, abs=1e-4)
    assert exact_upper(0, 298, 0.95) > 0.01
    assert exact_upper(3, 3, 0.95) == exact_upper(0, 0, 0.95) == 1


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 2), (3, 10), (9, 10), (17, 400), (160, 400)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_at_the_upper_end_as_few_are_as_unlikely_as_it_says(
    count: int, of: int, confidence: float
) -> None:
    share = exact_upper(count, of, confidence)
    chance = sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count + 1))
    assert chance == pytest.approx(1 - confidence, rel=1e-9)


def test_the_upper_end_of_a_large_sample_is_found_too() -> None:
    assert exact_upper(1000, 100_000, 0.95) == pytest.approx(0.0105332, abs=1e-7)


@settings(max_examples=100)
@given(st.integers(1, 100).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_bounds_enclose_the_share_and_the_exact_one_grows_with_the_count(
    pair: tuple[int, int],
) -> None:
    count, of = pair
    share = Share(count, of)
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.value <= exact_upper(count, of, 0.95) + 1e-9
    if count:
        assert exact_upper(count - 1, of, 0.95) <= exact_upper(count, of, 0.95)


def test_a_share_of_nothing_says_nothing() -> None:
    share = Share(0, 0)
    assert (share.value, share.low, share.high) == (0, 0, 1)


def test_the_shape_of_a_plan_is_seen_inside_texts_that_spell_json() -> None:
    def shape(order: str) -> object:
        arguments = f'{{"order_id": "{order}", "limit": 5}}'
        return plan_shape({"function": {"arguments": arguments}}, [Parameter("order", order)])

    assert shape("ORD-17") == shape("ORD-99")
    assert plan_shape('{"x": ', [Parameter("order", "x")]) == '{"x": '
    assert plan_shape({"as": '["a"]'}, [Parameter("list", '["a"]')]) == {"as": {"param": "list"}}
