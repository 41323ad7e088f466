"""The engine of the tasks format."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, SemCache
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import ask_user
from semcache.errors import (
    CompensationFailed,
    DeadlineExceeded,
    ExpressionError,
    InputNeeded,
    InvalidPlan,
    InvalidSettings,
    OperationFailed,
    OperationRefused,
    StepLimitExceeded,
)
from semcache.events import Event, NodeFinished
from semcache.execution.retry import Retry, idempotency_key
from semcache.execution.tasks import TasksEngine
from semcache.plans.tasks import TaskPlan
from semcache.ports import Outcome, Planned, PlanRequest
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver
from tests.executing import executed
from tests.orra import ORRA

Execute = Callable[..., Outcome]


def task(name: str, service: str, /, **given: Json) -> JsonObject:
    return {"id": name, "service": service, "input": given}


def plan(*tasks: JsonObject, **constants: Json) -> JsonObject:
    return {"tasks": [{"id": "task0", "input": constants}, *tasks]}


@pytest.fixture
def run(catalog: Catalog, clock: FakeClock, observer: RecordingObserver) -> Execute:
    """Run a plan, given as an object, and return its outcome."""

    def execute(
        body: JsonObject, *operations: Operation, data: Any = frozenset(), **limits: Any
    ) -> Outcome:
        known = catalog
        for operation in operations:
            known = known.with_(operation)
        return executed(
            TasksEngine(),
            TaskPlan.from_dict(body, data),
            known,
            **limits,
            clock=clock,
            observer=observer,
            run="run-1",
        )

    return execute


# The plan of the article ------------------------------------------------------------------------


def services(together: threading.Barrier | None = None) -> Catalog:
    """Return the services of the article; with a barrier, neither ends before both have begun."""

    def answer(key: str) -> Callable[[JsonObject], object]:
        def call(given: JsonObject) -> JsonObject:
            if together is not None:
                together.wait(timeout=10)
            return {"found": given[key]}

        return call

    return Catalog([
        Operation("customer-service", "Customer.", {"type": "object", "required": ["customerId"]},
                  effect="read", call=answer("customerId")),
        Operation("order-system", "Order.", {"type": "object", "required": ["orderId"]},
                  effect="read", call=answer("orderId")),
    ])  # fmt: skip


# specs: D-12
def test_the_two_tasks_of_the_article_run_at_the_same_time_after_task0() -> None:
    observer = RecordingObserver()
    outcome = executed(
        TasksEngine(),
        TaskPlan.from_dict(ORRA),
        services(threading.Barrier(2)),
        observer=observer,
        run="r",
    )
    results: JsonObject = {"task1": {"found": "CUST789"}, "task2": {"found": "ORD456"}}
    task0: Json = {"customerId": "CUST789", "orderId": "ORD456"}
    assert outcome.value == {"answer": results, "results": {"task0": task0, **results}}
    finished = observer.of(NodeFinished)
    assert [(event.run, event.step) for event in finished] == [("r", 1), ("r", 2), ("r", 3)]
    assert finished[0].node == "task0"
    assert {event.operation for event in finished[1:]} == {"customer-service", "order-system"}


class OrraPlanner:
    """Has the plan of the article, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def plan(self, request: PlanRequest) -> Planned:
        self.asked += 1
        return Planned(TaskPlan.from_dict(ORRA), request.params, "orra")


# specs: D-2, D-12
def test_the_plan_of_one_prompt_serves_another_with_its_own_values() -> None:
    planner = OrraPlanner()
    said = {"customerId": "CUST789", "orderId": "ORD456"}
    with SemCache.open(catalog=services(), embedder=HashEmbedder(), clock=FakeClock()) as semcache:
        semcache.planners = (planner,)
        first = semcache.run("Summarize order ORD456 of customer CUST789", params=said)
        second = semcache.run("Summarize order ORD222 of customer CUST111")
    assert [first.tier, second.tier, planner.asked] == ["planned", "template", 1]
    assert second.nodes[0].output == {"customerId": "CUST111", "orderId": "ORD222"}
    assert json.loads(second.text) == {"task1": {"found": "CUST111"}, "task2": {"found": "ORD222"}}
    served = second.plan.to_dict()
    assert served["tasks"][1:] == ORRA["tasks"][1:]  # type: ignore[index]  # lists
    assert served["parallel_groups"] == ORRA["parallel_groups"]


# Scheduling and results -------------------------------------------------------------------------


def test_results_flow_from_task_to_task_at_any_depth(run: Execute) -> None:
    body = plan(
        task("last", "echo", got=["$first.who.name", {"all": "$first"}], n="$task0.n"),
        task("first", "echo", who={"name": "Ada"}, price="$$5", euros="$7"),
        n=5,
    )
    outcome = run(body)
    first = {"who": {"name": "Ada"}, "price": "$5", "euros": "$7"}
    assert outcome.value["answer"] == {"got": ["Ada", {"all": first}], "n": 5}  # type: ignore[call-overload, index]  # an object
    assert [node.node for node in outcome.nodes] == ["task0", "first", "last"]
    assert outcome.nodes[2].input == outcome.nodes[2].output


def test_the_text_is_that_of_the_answer_alone(run: Execute) -> None:
    one = run(plan(task("a", "echo", answer="Done."), n=1))
    assert one.text == "Done."
    two = run(plan(task("a", "echo", x=1), task("b", "echo", x=2)))
    assert two.text == '{\n  "a": {\n    "x": 1\n  },\n  "b": {\n    "x": 2\n  }\n}'


def test_bound_values_reach_the_operation_as_they_are(run: Execute) -> None:
    body = plan(task("a", "echo", q="$task0.x", z="$task0.n"), n="$$task0.x", x="seen")
    data = frozenset({("tasks", 1, "input", "q"), ("tasks", 0, "input", "n")})
    assert run(body, data=data).nodes[1].output == {"q": "$task0.x", "z": "$$task0.x"}


def test_a_service_is_called_by_its_name_in_lower_case(run: Execute) -> None:
    assert run(plan(task("a", "ECHO", x=1))).nodes[1].operation == "echo"


@st.composite
def dags(draw: st.DrawFn) -> list[tuple[str, list[str]]]:
    names = [f"t{i}" for i in range(draw(st.integers(1, 12)))]
    needs = [
        draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=4)) if i else []
        for i in range(len(names))
    ]
    return draw(st.permutations(list(zip(names, needs, strict=True))))


@given(dags(), st.integers(1, 4))
@settings(max_examples=60)
def test_any_plan_runs_each_task_once_after_all_that_it_reads(
    dag: list[tuple[str, list[str]]], workers: int
) -> None:
    order: list[str] = []

    def call(given: JsonObject) -> JsonObject:
        order.append(str(given["me"]))
        return {"me": given["me"]}

    tasks = [task(name, "note", me=name, read=[f"${n}.me" for n in needs]) for name, needs in dag]
    executed(
        TasksEngine(workers=workers),
        TaskPlan.from_dict(plan(*tasks)),
        Catalog([Operation("note", "", {}, effect="read", call=call)]),
    )
    assert sorted(order) == sorted(name for name, _ in dag)
    assert all(order.index(n) < order.index(name) for name, needs in dag for n in needs)


# What cannot start ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (plan(task("a", "note", q="$b.x"), task("b", "note", q="$a.x")), "wait for one another"),
        (plan(task("a", "note", q="$a.x")), "wait for one another"),
        (plan(task("a", "note", q="$b.x")), "reads 'b', which is no task"),
        (plan(task("a", "note", q="$task0.x")), "no 'x' in an empty object"),
        (plan(), "no task beside"),
        (plan({"id": "final", "input": {"error": "no"}}), "cannot be met"),
        ({**plan(task("a", "note"), task("b", "note", q="$a.noted")),
          "parallel_groups": [["a", "b"]]}, "'b' reads 'a'"),
    ],
)  # fmt: skip
def test_nothing_is_called_if_the_plan_cannot_run(
    run: Execute, calls: list[JsonObject], body: JsonObject, what: str
) -> None:
    with pytest.raises(InvalidPlan, match=what):
        run(body)
    assert calls == []


def test_an_engine_without_workers_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="workers"):
        TasksEngine(workers=0)


def test_a_plan_longer_than_its_budget_is_not_begun(run: Execute, calls: list[JsonObject]) -> None:
    body = plan(*(task(f"t{i}", "note") for i in range(3)))
    with pytest.raises(StepLimitExceeded, match="has 4 tasks; expected at most 3"):
        run(body, max_steps=3)
    assert calls == []
    assert len(run(body, max_steps=4).nodes) == 4


# What fails on the way --------------------------------------------------------------------------


# specs: D-12
def test_a_field_that_a_result_does_not_have_is_an_error(run: Execute) -> None:
    body = plan(task("a", "echo", x=1), task("b", "note", q="$a.y"))
    with pytest.raises(ExpressionError, match=r"'b' reads '\$a.y', but there is no 'y'") as caught:
        run(body)
    assert caught.value.node == "b"


def test_a_task_that_never_returns_is_given_up(run: Execute, clock: FakeClock) -> None:
    with pytest.raises(DeadlineExceeded, match=r"'hang' gave no answer within 0.01 s"):
        run(plan(task("a", "hang"), task("b", "echo")), call_timeout_s=0.01)
    assert clock.sleeps == [1, 2]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["$a", "$b.x", "$zz.x", "5"])),
                max_size=4))  # fmt: skip
@settings(max_examples=60)
def test_any_plan_ends(pairs: list[tuple[str, str]]) -> None:
    body = plan(*(task(name, "note", q=text) for name, text in pairs))
    try:
        outcome = executed(
            TasksEngine(),
            TaskPlan.from_dict(body),
            Catalog([Operation("note", "", {}, effect="read", call=lambda _: {"x": 1})]),
        )
    except InvalidPlan as error:
        assert error.findings  # noqa: PT017 - one of two ways to end
    else:
        assert len(outcome.nodes) == len(pairs) + 1


# Trying again -----------------------------------------------------------------------------------


def flaky(failures: int, **more: Any) -> tuple[Operation, list[JsonObject]]:
    """Return an operation that fails so many times, and the inputs it was called with."""
    asked: list[JsonObject] = []

    def call(given: JsonObject) -> JsonObject:
        asked.append(given)
        if len(asked) <= failures:
            raise ConnectionError("try later")
        return {"tries": len(asked)}

    return Operation("flaky", "", {}, call=call, **more), asked


def test_a_read_is_tried_again_after_waits_that_double(
    run: Execute, clock: FakeClock, observer: RecordingObserver
) -> None:
    operation, _ = flaky(2, effect="read")
    assert run(plan(task("a", "flaky")), operation).text == '{\n  "tries": 3\n}'
    assert clock.sleeps == [1, 2]
    finished = [(event.step, event.error) for event in observer.of(NodeFinished)]
    assert finished == [(1, ""), (2, "OperationFailed"), (3, "OperationFailed"), (4, "")]


def test_after_three_attempts_the_plan_fails(run: Execute) -> None:
    operation, asked = flaky(9, effect="read")
    with pytest.raises(OperationFailed, match="try later"):
        run(plan(task("a", "flaky")), operation)
    assert len(asked) == 3


def test_a_write_is_never_tried_again_without_an_idempotency_key(run: Execute) -> None:
    operation, asked = flaky(1)
    with pytest.raises(OperationFailed):
        run(plan(task("a", "flaky", n=1)), operation)
    assert asked == [{"n": 1}]


def test_a_write_with_a_key_gets_the_same_one_at_each_attempt(run: Execute) -> None:
    operation, asked = flaky(2, idempotency_key="key")
    run(plan(task("a", "flaky", n=1)), operation)
    key = idempotency_key("run-1", "a", {"n": 1})
    assert asked == [{"n": 1, "key": key}] * 3


def test_two_runs_without_a_name_have_different_keys(catalog: Catalog) -> None:
    operation, asked = flaky(0, idempotency_key="key")
    for _ in range(2):
        executed(
            TasksEngine(),
            TaskPlan.from_dict(plan(task("a", "flaky", n=1))),
            catalog.with_(operation),
        )
    assert asked[0]["key"] != asked[1]["key"]


def test_there_is_no_waiting_beyond_the_deadline(run: Execute, clock: FakeClock) -> None:
    operation, asked = flaky(9, effect="read")
    with pytest.raises(OperationFailed):
        run(plan(task("a", "flaky")), operation, timeout_s=2.5)
    assert clock.sleeps == [1]
    assert len(asked) == 2


def test_others_go_on_while_a_task_waits_for_its_next_attempt(catalog: Catalog) -> None:
    operation, _ = flaky(1, effect="read")
    outcome = executed(
        TasksEngine(workers=1, retry=Retry(first_s=5)),
        TaskPlan.from_dict(plan(task("a", "flaky"), task("b", "note"), task("c", "note", q="$b"))),
        catalog.with_(operation),
    )
    assert [node.node for node in outcome.nodes] == ["task0", "b", "c", "a"]


# Undoing ----------------------------------------------------------------------------------------


class Bank:
    """Operations that can be undone, and what was done with them."""

    def __init__(self) -> None:
        self.log: list[JsonObject] = []
        self.broken: set[str] = set()

    def operations(self) -> tuple[Operation, ...]:
        """Return `pay`, undone by `refund`, and `refund`."""
        return (
            Operation("pay", "", {}, call=self.pay, compensation="refund"),
            Operation("refund", "", {}, call=self._refund),
        )

    def pay(self, given: JsonObject) -> JsonObject:
        self.log.append({"paid": given["to"]})
        return {"id": f"P-{given['to']}"}

    def _refund(self, given: JsonObject) -> None:
        if given["output"] in [{"id": name} for name in self.broken]:
            raise ConnectionError("bank closed")
        self.log.append(given)


def test_what_was_done_is_undone_the_last_first(run: Execute, observer: RecordingObserver) -> None:
    bank = Bank()
    body = plan(
        task("a", "pay", to="x"),
        task("b", "pay", to="y", after="$a.id"),
        task("c", "fail", after="$b.id"),
    )
    with pytest.raises(OperationFailed, match="no such row"):
        run(body, *bank.operations())
    assert bank.log == [
        {"paid": "x"},
        {"paid": "y"},
        {"input": {"to": "y", "after": "P-x"}, "output": {"id": "P-y"}},
        {"input": {"to": "x"}, "output": {"id": "P-x"}},
    ]
    undone = [e.node for e in observer.of(NodeFinished) if e.operation == "refund"]
    assert undone == ["b", "a"]


def test_what_could_not_be_undone_is_told_and_the_rest_is_undone(run: Execute) -> None:
    bank = Bank()
    bank.broken.add("P-y")
    body = plan(
        task("a", "pay", to="x"), task("b", "pay", to="y", q="$a.id"), task("c", "fail", q="$b.id")
    )
    with pytest.raises(CompensationFailed, match=r"no such row.*not undone: 'b' by 'refund'") as it:
        run(body, *bank.operations())
    assert it.value.node == "c"
    assert isinstance(it.value.__cause__, OperationFailed)
    assert bank.log[-1] == {"input": {"to": "x"}, "output": {"id": "P-x"}}


def test_a_task_that_runs_beside_the_failing_one_is_waited_for_and_undone() -> None:
    bank, failed = Bank(), threading.Event()

    def slow(given: JsonObject) -> JsonObject:
        assert failed.wait(10)
        return bank.pay(given)

    def refuse(_: JsonObject) -> None:
        raise OperationRefused("no")

    def hear(event: Event) -> None:
        if isinstance(event, NodeFinished) and event.error:
            failed.set()

    pay, refund = bank.operations()
    tasks = [task("a", "pay", to="x"), task("b", "refuse"), task("c", "pay", to="$a.id")]
    with pytest.raises(OperationRefused):
        executed(
            TasksEngine(),
            TaskPlan.from_dict(plan(*tasks)),
            Catalog([replace(pay, call=slow), refund, Operation("refuse", "", {}, call=refuse)]),
            observer=hear,
        )
    assert bank.log == [{"paid": "x"}, {"input": {"to": "x"}, "output": {"id": "P-x"}}]


def test_undoing_is_tried_again_where_it_takes_a_key(run: Execute, clock: FakeClock) -> None:
    undo, asked = flaky(2, idempotency_key="key")
    pay = replace(Bank().operations()[0], compensation="flaky")
    with pytest.raises(OperationFailed):
        run(plan(task("a", "pay", to="x"), task("b", "write_fails", q="$a")), pay, undo,
            Operation("write_fails", "", {}, call=flaky(9)[0].call))  # fmt: skip
    assert len({str(given["key"]) for given in asked}) == 1
    assert len(asked) == 3
    assert clock.sleeps == [1, 2]


def test_the_deadline_of_the_plan_does_not_keep_it_from_undoing(run: Execute) -> None:
    bank = Bank()
    body = plan(
        task("a", "pay", to="x"),
        task("b", "wait", seconds=90, q="$a.id"),
        task("c", "note", q="$b"),
    )
    with pytest.raises(DeadlineExceeded):
        run(body, *bank.operations())
    assert len(bank.log) == 2


def test_a_plan_that_waits_for_an_answer_is_neither_tried_again_nor_undone() -> None:
    undone: list[JsonObject] = []
    catalog = Catalog(
        [
            Operation(
                "order", "Order.", {"type": "object"}, call=lambda _: 1, compensation="cancel"
            ),
            Operation("cancel", "Cancel.", {"type": "object"}, call=undone.append),
        ]
    ).with_builtins([ask_user()])
    plan = TaskPlan.from_dict(
        {
            "tasks": [
                {"id": "task0", "input": {}},
                {"id": "task1", "service": "order", "input": {}},
                {"id": "task2", "service": "ask_user", "input": {"topic": "page size"}},
            ]
        }
    )
    clock = FakeClock()
    with pytest.raises(InputNeeded) as raised:
        executed(TasksEngine(), plan, catalog, clock=clock, observer=lambda _: None)
    assert raised.value.node == "task2"
    assert undone == []
    assert clock.now() == FakeClock().now()
