"""The trainer's calibration: scores mean the same however a prompt is asked."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.matching.evidence import Evidence
from semcache.matching.model.features import NAMES
from semcache.matching.model.risk import RiskModel


@pytest.fixture(scope="module")
def trainer(script: Any) -> Any:
    return script("train_prior")


def hits(rng: np.random.Generator, *, too_high: float) -> list[tuple[float, bool]]:
    """Return hits whose true log odds are their scores less `too_high`."""
    scores = rng.uniform(1, 5, 40_000)
    right = rng.random(len(scores)) < 1 / (1 + np.exp(-(scores - too_high)))
    return [(float(z), bool(r)) for z, r in zip(scores, right, strict=True)]


@pytest.mark.parametrize("too_high", [-0.5, 0.0, 0.8])
def test_scores_that_are_too_high_where_values_are_given_are_found_out(
    trainer: Any, too_high: float
) -> None:
    rng = np.random.default_rng(7)
    found = trainer.handicap(hits(rng, too_high=0), hits(rng, too_high=too_high))
    assert found == pytest.approx(too_high, abs=0.15)


@given(st.floats(-3, 3), st.lists(st.floats(-2, 2), min_size=len(NAMES), max_size=len(NAMES)))
def test_a_handicap_lowers_only_scores_where_values_are_given(
    trainer: Any, by: float, values: list[float]
) -> None:
    at = NAMES.index("given")
    for is_given in (0.0, 1.0):
        values[at] = is_given
        before = RiskModel(trainer.first(), Evidence()).score(values)
        after = RiskModel(trainer.handicapped(trainer.first(), by), Evidence()).score(values)
        assert math.isclose(before - after, by * is_given, abs_tol=1e-9)


def test_the_table_counts_hits_at_each_score_or_over(trainer: Any) -> None:
    hits = [(5.0, True), (4.0, False), (3.0, True), (2.0, False)]
    steps = trainer.table(hits, lowest=3.0)
    assert {(s.score, s.hits, s.wrong) for s in steps} >= {(5.0, 1, 0), (4.0, 2, 1), (3.0, 3, 1)}
    assert [s.score for s in steps] == sorted((s.score for s in steps), reverse=True)


@pytest.mark.parametrize("less", [-0.5, 0.0, 0.3])
def test_each_step_is_of_the_nearest_replay_that_served_all_of_it_both_ways(
    trainer: Any, less: float
) -> None:
    near, far = trainer.SERVED_FROM
    text, given = [(near, True)] * 3, [(near, True)] * 5
    lower = [*text, (far, False)], [*given, (far, False)]
    both, alone, beside = trainer.tables([(text, given), lower], less)
    valid = [near + max(0.0, -less), far + max(0.0, -less)]  # both ways were served from there
    for step in both:
        assert step.score >= valid[1]
        assert step.wrong == 0 or step.score < valid[0]
    assert both[-1].wrong == (2 if less == 0 else 1)
    for step, one, other in zip(both, alone, beside, strict=True):
        assert (step.hits, step.wrong) == (one.hits + other.hits, one.wrong + other.wrong)
