"""What a tenant's own samples open, how seldom they do wrongly, and how soon they close it."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.model.bound import (
    MOST,
    OWN,
    STEP,
    STEPS,
    WITHHELD,
    TenantBound,
    bet,
    certified_share,
    is_full,
    is_withheld,
    opens,
    right_factor,
)
from semcache.matching.samples import Sample

SHIPPED, BOUND = 3.5, 0.02
JUST_UNDER = SHIPPED - 0.1


def opened(samples: list[Sample], bound: float = BOUND) -> float:
    return SHIPPED - TenantBound(SHIPPED, bound, samples).cutoff


def run(seed: int, count: int, wrong: float) -> list[Sample]:
    chance = random.Random(seed)
    return [Sample(JUST_UNDER, chance.random() >= wrong) for _ in range(count)]


def ever_opened(samples: list[Sample]) -> bool:
    bound = TenantBound(SHIPPED, BOUND)
    for sample in samples:
        bound.take(sample)
        if bound.cutoff < SHIPPED:
            return True
    return False


def test_where_as_much_is_wrong_as_the_bound_allows_one_tenant_in_twenty_is_ever_opened() -> None:
    wrongly = sum(ever_opened(run(seed, 800, BOUND)) for seed in range(400))
    assert wrongly <= 400 * 0.05 + 2 * math.sqrt(400 * 0.05 * 0.95)


def test_a_risk_that_comes_and_goes_opens_no_more_often() -> None:
    # Each label is wrong with nothing or with twice the bound, by how the last ones were: what is
    # bounded is the average of those chances, however they depend on what came before.
    wrongly = 0
    for seed in range(300):
        chance, bound, last, total = random.Random(seed), TenantBound(SHIPPED, BOUND), True, 0.0
        for count in range(1, 601):
            wrong = 2 * BOUND if last else 0.0
            total, last = total + wrong, chance.random() >= wrong
            bound.take(Sample(JUST_UNDER, last))
            if bound.cutoff < SHIPPED and total / count >= BOUND:
                wrongly += 1
                break
    assert wrongly <= 300 * 0.05 + 2 * math.sqrt(300 * 0.05 * 0.95)


def test_a_tenant_without_wrong_samples_is_opened_after_four_times_one_by_the_bound() -> None:
    wanted = math.ceil(math.log(20) / math.log(right_factor(BOUND)))
    assert 3 / BOUND < wanted < 4.1 / BOUND
    assert opened([Sample(JUST_UNDER, True)] * (wanted - 1)) == 0
    assert opened([Sample(JUST_UNDER, True)] * wanted) == STEP


@given(st.integers(200, 2000))
@settings(max_examples=20, deadline=None)
def test_two_wrong_samples_in_a_row_close_what_any_number_opened(count: int) -> None:
    samples = [Sample(JUST_UNDER, True)] * count
    assert opened(samples) == STEP
    assert opened([*samples, *[Sample(JUST_UNDER, False)] * 2]) == 0


@given(st.floats(0.001, 0.3), st.integers(0, 3))
def test_two_wrong_choices_close_what_any_number_of_right_ones_opened(
    bound: float, wrong: int
) -> None:
    right = 0
    while not is_full(right, wrong, bound):  # as long as right ones are counted
        right += 1
    assert opens(right, wrong, bound)
    assert not opens(right, wrong + 2, bound)


def test_a_step_opens_after_those_above_it_and_with_samples_of_its_own() -> None:
    many = [Sample(SHIPPED - 0.4, True)] * 300
    assert opened(many) == STEP
    below = [Sample(SHIPPED - 1.4, True)] * OWN
    assert opened([*many, *below]) == STEP, "there are none of the step between"
    between = [Sample(SHIPPED - 0.9, True)] * OWN
    assert opened([*many, *between[1:], *below]) == STEP
    assert opened([*many, *between, *below]) == 3 * STEP


def test_audits_of_hits_over_the_cutoff_count_but_open_nothing_alone() -> None:
    audits = [Sample(SHIPPED + 1, True)] * 500
    assert opened(audits) == 0
    assert opened([*audits, *[Sample(JUST_UNDER, True)] * OWN]) == STEP
    wrong = [Sample(SHIPPED + 1, False)] * 2
    assert opened([*audits, *[Sample(JUST_UNDER, True)] * OWN, *wrong]) == 0


def test_where_nothing_may_be_served_samples_open_nothing() -> None:
    assert TenantBound(math.inf, BOUND, [Sample(9.0, True)] * 2000).cutoff == math.inf


@given(st.lists(st.tuples(st.floats(-5, 9), st.booleans()), max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_more_is_opened_than_the_steps_there_are(drawn: list[tuple[float, bool]]) -> None:
    samples = [Sample(*each) for each in drawn]
    bound = TenantBound(SHIPPED, 0.2, samples)
    assert SHIPPED - STEPS * STEP <= bound.cutoff <= SHIPPED
    one_by_one = TenantBound(SHIPPED, 0.2)
    for sample in samples:
        one_by_one.take(sample)
    assert one_by_one.cutoff == bound.cutoff


@given(st.floats(0.001, 0.3), st.floats(1e-6, MOST))
def test_a_bet_is_fair_at_the_bound(share: float, capital: float) -> None:
    factor = right_factor(share)
    expected = (1 - share) * capital * factor + share * bet(capital, factor, right=False)
    assert expected == pytest.approx(capital)
    assert bet(capital, factor, right=True) <= MOST


def test_the_share_that_samples_certify_falls_with_right_ones_and_rises_with_wrong_ones() -> None:
    assert certified_share([]) is None
    few, many = certified_share([True] * 50), certified_share([True] * 800)
    assert few is not None
    assert many is not None
    assert many < 0.006 < few < 0.1
    worse = certified_share([True] * 800 + [False] * 3)
    assert worse is not None
    assert worse > many
    assert certified_share([False] * 5) == 1.0


@given(st.floats(0.005, 0.3), st.lists(st.booleans(), max_size=400))
@settings(max_examples=60, deadline=None)
def test_what_is_open_is_certified_under_the_bound(bound: float, rights: list[bool]) -> None:
    if opened([Sample(JUST_UNDER, right) for right in rights], bound):
        share = certified_share(rights)
        assert share is not None
        assert share <= bound + 1e-4


def test_about_one_prompt_in_five_is_withheld_and_always_the_same_ones() -> None:
    prompts = [f"sales of region {number}" for number in range(5000)]
    withheld = [prompt for prompt in prompts if is_withheld(prompt)]
    assert abs(len(withheld) - 5000 / WITHHELD) < 100
    assert withheld == [prompt for prompt in prompts if is_withheld(prompt)]
