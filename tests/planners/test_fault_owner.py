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

BODY: dict[str, Any] = {
    "start_node": {"route": "count"},
    "count": {"operation": "count_visits", "input": {"town": "Oslo"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.count"}},
}
PLAN = adopt(BODY, frozenset({("count", "input", "town")}))


def failed(cause: Exception) -> OperationFailed:
    error = OperationFailed("failed", node="count")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "given", "whose"),
    [
        (failed(InvalidInput("no such town")), {"town": "Oslo"}, "values"),
        (failed(ValueError("no such town")), {"town": "Oslo"}, "values"),
        (failed(SourceRejected("no", status=404)), {"town": "Oslo"}, "values"),
        (OperationRefused("breaks its schema", node="count"), {"town": "Oslo"}, "values"),
        (OperationRefused("breaks its schema", node="count"), {"town": None}, "plan"),
        (failed(ValueError("no such town")), {"town": "Bergen"}, "plan"),
        (failed(KeyError("column")), {"town": "Oslo"}, "plan"),
        (ExpressionError("cannot be read", node="count"), None, "plan"),
        (failed(SourceUnavailable("gone")), {"town": "Oslo"}, "passing"),
        (failed(SourceRejected("oops", status=503)), {"town": "Oslo"}, "passing"),
        (DeadlineExceeded("late", node="count"), {"town": "Oslo"}, "passing"),
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
    plan = adopt(
        {**BODY, "count": {**BODY["count"], "input": {"n": 1}}},
        frozenset({("count", "input", "n")}),
    )
    error = failed(ValueError("no"))
    assert blame(error, plan, {"n": 1}) == "values"
    assert blame(error, plan, {"n": True}) == "plan"
    assert blame(error, plan, {"n": "1"}) == "plan"
