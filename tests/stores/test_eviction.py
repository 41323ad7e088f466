from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from semcache.ports import Use
from semcache.stores.eviction import HALF_LIFE_S, replaced, unused, used
from semcache.testing import make_record

RECORD = make_record("a", created_s=0.0)


def test_two_uses_a_half_life_ago_are_worth_one_now() -> None:
    idle = Use(0, 0.0, -1e12)  # worth nothing
    then = used(idle, RECORD, 2, 0.0)
    now = used(idle, RECORD, 1, HALF_LIFE_S)
    assert abs(then.worth - now.worth) < 1e-3


def test_twice_the_seconds_and_half_the_bytes_are_worth_the_same_more() -> None:
    dear = replace(RECORD, cost_s=2.0)
    small = replace(RECORD, body='"' + "x" * 3 + '"', vector=None)  # 5 bytes
    large = replace(RECORD, body='"' + "x" * 8 + '"', vector=None)  # 10 bytes
    assert abs(unused(dear).worth - unused(RECORD).worth - HALF_LIFE_S) < 1e-6
    assert abs(unused(small).worth - unused(large).worth - HALF_LIFE_S) < 1e-6


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=8), st.integers(1, 1000))
def test_the_order_in_which_uses_are_counted_makes_no_difference(
    times: list[float], count: int
) -> None:
    there = back = unused(RECORD)
    for now_s in times:
        there = used(there, RECORD, count, now_s)
    for now_s in reversed(times):
        back = used(back, RECORD, count, now_s)
    assert (there.count, there.last_s) == (back.count, back.last_s)
    assert abs(there.worth - back.worth) < 1.0


@given(st.floats(-1e9, 1e9), st.integers(1, 1000), st.floats(0, 1e4), st.integers(0, 10_000))
def test_a_use_never_makes_a_record_worth_less(
    now_s: float, count: int, cost_s: float, size: int
) -> None:
    record = replace(RECORD, cost_s=cost_s, body='"' + "x" * size + '"')
    before = unused(record)
    assert used(before, record, count, now_s).worth >= before.worth
    assert replaced(before, record).worth >= before.worth
