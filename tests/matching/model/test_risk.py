import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.evidence import Evidence, Tally
from semcache.matching.model.features import NAMES
from semcache.matching.model.risk import (
    Prior,
    RiskModel,
    Step,
    cutoff,
    probability_wrong,
    score_key,
    shipped,
)

SIZE = len(NAMES)


def steps_of(*steps: tuple[float, int, int]) -> tuple[Step, ...]:
    return tuple(Step(*step) for step in steps)


def prior() -> Prior:
    return Prior(
        np.zeros(SIZE), np.ones(SIZE), np.zeros(SIZE + 1), np.ones(SIZE + 1),
        (),
    )  # fmt: skip


def test_the_shipped_prior_fits_the_features_and_can_keep_one_in_a_hundred() -> None:
    steps = shipped().steps
    assert math.isfinite(cutoff(steps, 0.01, Tally()))
    assert cutoff(steps, 0.05, Tally()) <= cutoff(steps, 0.01, Tally())


def test_the_cutoff_is_the_lowest_score_that_is_tested_safe() -> None:
    steps = steps_of(
        (5.0, 100, 0), (4.0, 1000, 2), (3.0, 2000, 9), (2.0, 3000, 60), (1.0, 9000, 60)
    )
    assert cutoff(steps, 0.01, Tally()) == 3.0
    assert cutoff(steps, 0.05, Tally()) == 1.0


def test_too_few_hits_prove_nothing() -> None:
    assert cutoff(steps_of((5.0, 100, 0), (4.0, 200, 0)), 0.01, Tally()) == math.inf
    assert cutoff(steps_of((5.0, 100, 0), (4.0, 300, 0)), 0.01, Tally()) == 4.0


@settings(max_examples=50)
@given(st.integers(0, 40), st.integers(300, 4000), st.sampled_from([0.005, 0.01, 0.02, 0.05]))
def test_what_passes_has_fewer_wrong_than_the_bound(wrong: int, hits: int, bound: float) -> None:
    if cutoff(steps_of((3.0, hits, wrong)), bound, Tally()) < math.inf:
        assert wrong / hits < bound


def test_a_tenants_own_wrong_hits_raise_its_cutoff_and_right_ones_never_lower_it() -> None:
    steps = steps_of((3.0, 3000, 9))
    record = Tally()
    for _ in range(20):
        record.add(score_key(6.0), same=True)
    assert cutoff(steps, 0.01, record) == 3.0
    for _ in range(3):
        record.add(score_key(3.6), same=False)
    assert cutoff(steps, 0.01, record) > 3.6


def test_labels_move_the_score_of_what_is_like_them() -> None:
    values = [1.0] * SIZE
    evidence = Evidence()
    before = RiskModel(prior(), evidence).score(values)
    for _ in range(10):
        evidence.shift(RiskModel(prior(), evidence).step(values, same=True))
    assert RiskModel(prior(), evidence).score(values) > before + 1


def test_a_word_that_labels_found_harmless_leaves_the_blame_to_the_words_beside_it() -> None:
    values = [0.0] * SIZE
    evidence = Evidence()
    for _ in range(6):
        evidence.shift(RiskModel(prior(), evidence).step(values, ["+kindly"], same=True))
        keys = ["+kindly", "+returned"]
        evidence.shift(RiskModel(prior(), evidence).step(values, keys, same=False))
    model = RiskModel(prior(), evidence)
    assert model.score(values, ["+kindly"]) > 0 > model.score(values, ["+returned"])
    assert model.score(values, ["+never labeled"]) == model.score(values)


def test_what_two_processes_learned_of_words_adds_up() -> None:
    values = [0.5] * SIZE
    step = RiskModel(prior(), Evidence()).step(values, ["-gone", "~f"], same=False)
    once, twice = Evidence(), Evidence()
    once.shift(step)
    twice.merge(once)
    twice.merge(once)
    keys = ["-gone", "~f"]
    alone, both = (RiskModel(prior(), each).score(values, keys) for each in (once, twice))
    assert both < alone < RiskModel(prior(), Evidence()).score(values, keys)


@settings(max_examples=50)
@given(st.lists(st.floats(-1e12, 1e12), min_size=SIZE, max_size=SIZE), st.booleans())
def test_strange_features_keep_scores_finite(values: list[float], same: bool) -> None:
    model = RiskModel(shipped(), Evidence())
    assert math.isfinite(model.score(values))
    precision, pull, _ = model.step(values, same=same)
    assert np.isfinite(precision).all()
    assert np.isfinite(pull).all()


def test_the_probability_falls_with_the_score() -> None:
    assert probability_wrong(-800.0) > probability_wrong(0.0) == 0.5 > probability_wrong(800.0)


def test_a_prior_comes_back_from_json_and_one_for_other_features_is_refused() -> None:
    doc = json.loads(json.dumps(shipped().to_json()))
    assert Prior.from_json(doc).to_json() == shipped().to_json()
    with pytest.raises(ValueError, match="train it again"):
        Prior.from_json({**doc, "names": ["other"]})


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.floats(-9, 9), min_size=SIZE, max_size=SIZE), min_size=1, max_size=5),
)
def test_a_candidate_scores_the_same_alone_and_among_others(rows: list[list[float]]) -> None:
    model = RiskModel(shipped(), Evidence())
    assert model.scores(rows, [()] * len(rows)) == [model.score(row) for row in rows]
