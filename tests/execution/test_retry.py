"""Trying a failed call again."""

import pytest

from semcache import Operation, SemCacheError
from semcache.canonical import digest
from semcache.errors import (
    DeadlineExceeded,
    InvalidSettings,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
)
from semcache.execution.retry import Retry, idempotency_key

READ = Operation("find", "", {}, effect="read")
WRITE = Operation("pay", "", {})
SAFE_WRITE = Operation("order", "", {}, idempotency_key="key")


def test_each_wait_doubles_up_to_the_longest() -> None:
    retry = Retry(attempts=9, first_s=2, longest_s=30)
    assert [retry.wait_s(n) for n in range(1, 7)] == [2, 4, 8, 16, 30, 30]
    assert retry.wait_s(5000) == 30


@pytest.mark.parametrize(
    ("operation", "error", "again"),
    [
        (READ, OperationFailed("x"), True),
        (READ, DeadlineExceeded("x"), True),
        (READ, OperationRefused("x"), False),
        (READ, OutputTooLarge("x"), False),
        (WRITE, OperationFailed("x"), False),
        (WRITE, DeadlineExceeded("x"), False),
        (SAFE_WRITE, DeadlineExceeded("x"), True),
    ],
)
def test_a_write_is_tried_again_only_with_an_idempotency_key(
    operation: Operation, error: SemCacheError, *, again: bool
) -> None:
    assert Retry().allows(operation, error, 1) is again
    assert not Retry().allows(operation, error, 3)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"first_s": -1}, {"first_s": 5, "longest_s": 4}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidSettings, match="expected"):
        Retry(**wrong)


def test_a_key_is_that_of_the_run_the_task_and_the_input_in_any_order() -> None:
    key = idempotency_key("run", "task1", {"a": 1, "b": 2})
    assert key == idempotency_key("run", "task1", {"b": 2, "a": 1})
    assert key == digest(["run", "task1", {"a": 1, "b": 2}])
    others = [("run2", "task1", 1), ("run", "task2", 1), ("run", "task1", 2)]
    assert key not in [idempotency_key(run, node, {"a": a, "b": 2}) for run, node, a in others]
