"""The trainer's calibration: scores mean the same however a prompt is asked."""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.matching.evidence import Evidence
from semcache.matching.features import NAMES
from semcache.matching.risk import Model

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def trainer() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module("train_prior")


def hits(rng: np.random.Generator, *, too_high: float) -> list[tuple[float, bool]]:
    """Return hits whose true log odds are their scores less `too_high`."""
    scores = rng.uniform(1, 5, 40_000)
    right = rng.random(len(scores)) < 1 / (1 + np.exp(-(scores - too_high)))
    return [(float(z), bool(r)) for z, r in zip(scores, right, strict=True)]


@pytest.mark.parametrize("too_high", [-0.5, 0.0, 0.8])
def test_scores_that_are_too_high_where_values_are_given_are_found_out(
    trainer: ModuleType, too_high: float
) -> None:
    rng = np.random.default_rng(7)
    found = trainer.handicap(hits(rng, too_high=0), hits(rng, too_high=too_high))
    assert found == pytest.approx(too_high, abs=0.15)


@given(st.floats(-3, 3), st.lists(st.floats(-2, 2), min_size=len(NAMES), max_size=len(NAMES)))
def test_a_handicap_lowers_only_scores_where_values_are_given(
    trainer: ModuleType, by: float, values: list[float]
) -> None:
    at = NAMES.index("given")
    for is_given in (0.0, 1.0):
        values[at] = is_given
        before = Model(trainer.first(), Evidence()).score(values)
        after = Model(trainer.handicapped(trainer.first(), by), Evidence()).score(values)
        assert math.isclose(before - after, by * is_given, abs_tol=1e-9)


def test_the_table_counts_hits_at_each_score_or_over(trainer: ModuleType) -> None:
    steps = trainer.table([(5.0, True), (4.0, False), (3.0, True), (2.0, False)])
    assert {(s.score, s.hits, s.wrong) for s in steps} >= {(5.0, 1, 0), (4.0, 2, 1), (3.0, 3, 1)}
    assert [s.score for s in steps] == sorted((s.score for s in steps), reverse=True)
