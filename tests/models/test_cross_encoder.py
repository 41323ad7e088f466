"""A cross-encoder says yes over one score, no under another, and nothing between."""

import pytest

from semcache.errors import InvalidSettings, ModelUnavailable
from semcache.models.cross_encoder import CrossEncoderVerifier
from semcache.ports import Verification

ASKED = Verification("revenue by state", "sales by state", {}, {})


class Scores:
    """Gives one score, and remembers the pairs."""

    def __init__(self, score: float) -> None:
        self.score = score
        self.pairs: list[tuple[str, str]] = []

    def predict(self, pair: tuple[str, str], /) -> float:
        self.pairs.append(pair)
        return self.score


@pytest.mark.parametrize(
    ("score", "said"), [(0.95, True), (0.9, True), (0.5, None), (0.2, None), (0.1, False)]
)
def test_scores_become_yes_no_or_nothing(score: float, said: bool | None) -> None:
    scores = Scores(score)
    assert CrossEncoderVerifier(scores, yes=0.9, no=0.2).verify(ASKED) is said
    assert scores.pairs == [("revenue by state", "sales by state")]


@pytest.mark.parametrize(("yes", "no"), [(0.1, 0.9), (float("nan"), 0.1), (0.9, float("-inf"))])
def test_thresholds_that_make_no_sense_are_refused(yes: float, no: float) -> None:
    with pytest.raises(InvalidSettings, match="expected no <= yes"):
        CrossEncoderVerifier(Scores(0.5), yes=yes, no=no)


def test_a_score_that_is_none_is_a_failure() -> None:
    with pytest.raises(ModelUnavailable, match="finite"):
        CrossEncoderVerifier(Scores(float("nan")), yes=0.9, no=0.2).verify(ASKED)


def test_weights_that_are_not_there_are_a_clear_error() -> None:
    verifier = CrossEncoderVerifier("/nowhere/at/all", yes=0.9, no=0.2)
    with pytest.raises(ModelUnavailable, match="'/nowhere/at/all'"):
        verifier.verify(ASKED)
