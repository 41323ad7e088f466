from typing import Any

import pytest

from semcache.errors import (
    CompensationFailed,
    DeadlineExceeded,
    ExpressionError,
    InputNeeded,
    InvalidInput,
    OperationFailed,
    OperationRefused,
    PlanningError,
    SourceRejected,
    SourceUnavailable,
)
from semcache.plans.codec import adopt
from semcache.semcache.recovery import blame
from tests.calling import calling

PLAN = adopt(calling("count_visits", town="Oslo"), frozenset({("call", "input", "town")}))


def failed(cause: Exception) -> OperationFailed:
    error = OperationFailed("failed", node="call")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "given", "whose"),
    [
        (failed(InvalidInput("no such town")), {"town": "Oslo"}, "values"),
        (failed(ValueError("no such town")), {"town": "Oslo"}, "values"),
        (failed(SourceRejected("no", status=404)), {"town": "Oslo"}, "values"),
        (OperationRefused("breaks its schema", node="call"), {"town": "Oslo"}, "values"),
        (OperationRefused("breaks its schema", node="call"), {"town": None}, "plan"),
        (failed(ValueError("no such town")), {"town": "Bergen"}, "plan"),
        (failed(KeyError("column")), {"town": "Oslo"}, "plan"),
        (ExpressionError("cannot be read", node="call"), None, "plan"),
        (failed(SourceUnavailable("gone")), {"town": "Oslo"}, "passing"),
        (failed(SourceRejected("oops", status=503)), {"town": "Oslo"}, "passing"),
        (DeadlineExceeded("late", node="call"), {"town": "Oslo"}, "passing"),
        (failed(SourceRejected("no", status=401)), {"town": "Oslo"}, "nobody"),
        (failed(SourceRejected("no", status=429)), {"town": "Oslo"}, "nobody"),
        (InputNeeded("who?"), None, "nobody"),
        (CompensationFailed("left half done"), None, "nobody"),
        (PlanningError("no plan"), None, "nobody"),
    ],
)
def test_whose_fault_a_failure_is(error: Exception, given: Any, whose: str) -> None:
    assert blame(error, PLAN, given) == whose


def test_one_is_not_true_and_a_text_is_not_a_number() -> None:
    plan = adopt(calling("count_visits", n=1), frozenset({("call", "input", "n")}))
    error = failed(ValueError("no"))
    assert blame(error, plan, {"n": 1}) == "values"
    assert blame(error, plan, {"n": True}) == "plan"
    assert blame(error, plan, {"n": "1"}) == "plan"
