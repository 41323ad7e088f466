"""What the engines of all formats promise alike."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from semcache import Catalog
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    DeadlineExceeded,
    ExecutionError,
    InvalidPlan,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
)
from semcache.events import NodeFinished
from semcache.execution.program import ProgramEngine
from semcache.execution.retry import Retry
from semcache.execution.routes import RoutesEngine
from semcache.execution.tasks import TasksEngine
from semcache.plans.codec import adopt
from semcache.plans.document import DocumentPlan, ExecutionPlan
from semcache.ports import Outcome
from semcache.testing import FakeClock, RecordingObserver
from tests.executing import executed
from tests.plans.programs import step

Calls = tuple[str, JsonObject]
Run = Callable[..., Outcome]


def routes(*calls: Calls) -> JsonObject:
    nodes: JsonObject = {
        f"{i}": {"operation": name, "input": given, "route": f"{i + 1}"}
        for i, (name, given) in enumerate(calls, 1)
    }
    return {"start_node": {"route": "1"}, **nodes, f"{len(calls) + 1}": {"completed": True}}


def tasks(*calls: Calls) -> JsonObject:
    listed: list[Json] = [{"id": "task0", "input": {"none": None}}]
    for i, (name, given) in enumerate(calls, 1):
        after = f"$t{i - 1}" if i > 1 else "$task0.none"
        listed.append({"id": f"t{i}", "service": name, "input": {**given, "after": after}})
    return {"tasks": listed}


def program(*calls: Calls) -> JsonObject:
    steps: list[Json] = [
        step(i, "calling", tool_name=name, tool_params=given)
        for i, (name, given) in enumerate(calls, 1)
    ]
    return {"instructions": [*steps, step(len(calls) + 1, "assign", final_answer=1)]}


FORMATS: Mapping[str, tuple[Any, Callable[..., JsonObject], str]] = {
    "routes": (RoutesEngine(), routes, "1"),
    "tasks": (TasksEngine(retry=Retry(attempts=1)), tasks, "t1"),
    "program": (ProgramEngine(workers=1), program, "1"),
}
"""Format → its engine, a plan that makes some calls one after the other, and the first one's node.
"""


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(kind: str, catalog: Catalog, clock: FakeClock, observer: RecordingObserver) -> Run:
    """Run a plan, or one that makes these calls one after the other."""
    engine, spelled, _ = FORMATS[kind]

    def execute(*calls: Any, plan: ExecutionPlan | None = None, **limits: Any) -> Outcome:
        made = plan or adopt(spelled(*calls))
        return executed(
            engine, made, catalog, clock=clock, observer=observer, run="run-1", **limits
        )

    return execute


def test_a_plan_of_another_format_is_refused(run: Run, kind: str) -> None:
    with pytest.raises(InvalidPlan, match=f"'document'; this engine runs '{kind}'"):
        run(plan=DocumentPlan({}))


# specs: A-11
@pytest.mark.parametrize(
    ("second", "told"),
    [
        (("nothere", {}), "no operation is named 'nothere'"),
        (("note", {"year": "{{params.year}}"}), "no value was bound"),
    ],
)
def test_nothing_is_called_of_a_plan_that_cannot_run(
    run: Run, calls: list[JsonObject], second: Calls, told: str, observer: RecordingObserver
) -> None:
    with pytest.raises(InvalidPlan, match=told) as raised:
        run(("note", {}), second)
    assert raised.value.findings
    assert (calls, observer.events) == ([], [])


# specs: A-11, C-11
@pytest.mark.parametrize(
    "failure",
    [
        ("fail", OperationFailed, "'fail' failed: LookupError: no such row"),
        ("leave", OperationFailed, "SystemExit"),
        ("unjson", OperationFailed, "the output of operation 'unjson'"),
        ("not_a_number", OperationFailed, "the output of operation 'not_a_number'"),
        ("circle", OperationFailed, "the output of operation 'circle'"),
        ("endless_integer", OperationFailed, "the output of operation 'endless_integer'"),
        ("strict", OperationRefused, "'limit' is a required property"),
        ("described", OperationRefused, "has no code behind it"),
        ("write", OperationRefused, "'write' writes, and writes are not allowed"),
        ("hang", DeadlineExceeded, r"'hang' gave no answer within 0\.01 s"),
        ("much", OutputTooLarge, "the output of operation 'much' is over 1,000"),
    ],
    ids=lambda failure: failure[0],
)
def test_a_call_that_fails_ends_the_plan_and_is_reported_with_its_node(
    run: Run, kind: str, observer: RecordingObserver, failure: tuple[str, type[Exception], str]
) -> None:
    name, error, told = failure
    limits = {"allow_writes": False, "call_timeout_s": 0.01 if name == "hang" else 60}
    with pytest.raises(error, match=told) as raised:
        run((name, {"bytes": 1000}), ("note", {}), max_output_bytes=1000, **limits)
    last, node = observer.of(NodeFinished)[-1], FORMATS[kind][2]
    assert isinstance(raised.value, ExecutionError)
    assert raised.value.node == node
    assert last == replace(last, run="run-1", node=node, operation=name, error=error.__name__)


def test_what_an_operation_raised_is_kept_as_the_cause(run: Run) -> None:
    with pytest.raises(OperationFailed) as raised:
        run(("fail", {}))
    assert isinstance(raised.value.__cause__, LookupError)


def test_a_write_that_is_allowed_is_called(run: Run, calls: list[JsonObject]) -> None:
    run(("write", {}))
    assert len(calls) == 1


def test_no_node_starts_after_the_deadline(run: Run, calls: list[JsonObject]) -> None:
    run(("wait", {"seconds": 59}))
    with pytest.raises(DeadlineExceeded, match="no answer after 60 s; before"):
        run(("wait", {"seconds": 61}), ("note", {}))
    assert calls == []


def test_the_context_of_the_caller_reaches_the_operations(
    run: Run, calls: list[JsonObject]
) -> None:
    run(("thread", {}), ("thread", {}))
    assert [given["thread"] for given in calls] == ["semcache-operation"] * 2
    assert threading.current_thread().name != "semcache-operation"
