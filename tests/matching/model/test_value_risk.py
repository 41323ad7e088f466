import math

import pytest

from semcache.matching.model.value_risk import (
    NAMES,
    ValueChange,
    ValuePrior,
    features,
    shipped_values,
)

PLAIN = ValueChange(names=1)


def test_another_name_is_never_less_of_a_risk_than_the_same_one() -> None:
    prior = shipped_values()
    assert prior.risk(ValueChange()) <= prior.risk(PLAIN) < 0.02


@pytest.mark.parametrize(
    ("surer", "riskier"),
    [
        (PLAIN, PLAIN._replace(telling=False)),
        (PLAIN._replace(seen=4, telling=False), PLAIN._replace(telling=False)),
        (PLAIN._replace(group=9), PLAIN),
        (PLAIN._replace(contested=0, repeated=9), PLAIN._replace(contested=4, repeated=9)),
    ],
)
def test_names_seen_entries_that_share_the_plan_and_agreement_lower_the_risk(
    surer: ValueChange, riskier: ValueChange
) -> None:
    assert shipped_values().risk(surer) < shipped_values().risk(riskier)


def test_labels_of_the_tenant_move_the_risk_as_counts_do() -> None:
    prior, change = shipped_values(), PLAIN._replace(telling=False)
    alone = prior.risk(change)
    assert prior.risk(change, (3, 0)) == pytest.approx(2 * alone / 5)
    assert prior.risk(change, (0, 3)) == pytest.approx((2 * alone + 3) / 5)


def test_one_name_behind_words_that_tell_nothing_is_over_the_usual_bound() -> None:
    prior = shipped_values()
    assert prior.risk(PLAIN._replace(telling=False)) > prior.bound(0.0125) > prior.risk(PLAIN)


def test_a_stricter_bound_lets_less_through() -> None:
    bounds = [shipped_values().bound(share) for share in (0.001, 0.01, 0.0125, 0.5)]
    assert bounds == sorted(bounds)
    assert (bounds[0], bounds[-1]) == (0.0, 1.0)


def test_a_prior_is_what_was_written() -> None:
    prior = shipped_values()
    assert ValuePrior.from_json(prior.to_json()) == prior
    assert len(prior.weights) == len(NAMES) == len(features(PLAIN))
    assert all(map(math.isfinite, prior.weights))
