"""The engine of the tasks format: each task as soon as what it reads is there, in parallel."""

import contextlib
import contextvars
import logging
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from itertools import count
from typing import Unpack

from semcache.canonical import Json, JsonObject, Pointer, as_object
from semcache.catalog.operation import Operation
from semcache.errors import (
    CompensationFailed,
    ExecutionError,
    ExpressionError,
    InputNeeded,
    InvalidSettings,
    SemCacheError,
    StepLimitExceeded,
)
from semcache.execution.call import bounded, call
from semcache.execution.plan_run import PlanRun, RunArguments, other_format
from semcache.execution.retry import Retry, idempotency_key
from semcache.plans.codec import refuse
from semcache.plans.document import ExecutionPlan, filled
from semcache.plans.paths import literal
from semcache.plans.task_checks import broken_tasks, constants
from semcache.plans.tasks import CONSTANTS, Task, TaskPlan, is_reference, parse, spelled_tasks, walk
from semcache.ports import NodeResult, Outcome

log = logging.getLogger(__name__)


class TasksEngine:
    """Runs plans in the tasks format. Holds no state between runs; safe from several threads."""

    def __init__(self, *, workers: int = 8, retry: Retry | None = None) -> None:
        """Keep what is asked for.

        Args:
            workers: Tasks of one plan that run at the same time, at most.
            retry: How failed calls are tried again; None: three attempts, 1 and 2 s apart.

        Raises:
            InvalidSettings: there are no workers.
        """
        if workers < 1:
            raise InvalidSettings(f"workers is {workers!r}; expected 1 or more")
        self._workers = workers
        self._retry = retry or Retry()

    def execute(self, plan: ExecutionPlan, **given: Unpack[RunArguments]) -> Outcome:
        """Run a plan with its values already bound, and return its answer and all results.

        The value is `{"answer": …, "results": {task: …}}`. The answer is the result of the task
        that no other task reads, or an object of those results if there are several. Each task is
        a step; each attempt is reported, the failed ones with the class of their error.

        Nothing is called if the plan is malformed, cyclic, too long, calls an unknown operation, or
        has an unbound placeholder. When a task fails for good, no other is started; those that run
        are waited for; then what is done is undone, the last first, where the operation names its
        compensation. Undoing has call timeouts, but no deadline.

        Raises:
            InvalidPlan: the plan is malformed; it carries all findings.
            CompensationFailed: the plan stopped, and not all of it could be undone.
            ExecutionError: an operation failed or was refused, or a limit was reached; the error
                names the task.
        """
        if not isinstance(plan, TaskPlan):
            raise other_format(plan, TaskPlan.format)
        plan = spelled_tasks(plan, given["catalog"])
        refuse(broken_tasks(plan, given["catalog"]))
        execution = _Run(plan, self._retry, **given)
        with ThreadPoolExecutor(self._workers, thread_name_prefix="semcache-task") as pool:
            return execution.outcome(pool, self._workers)


@dataclass(frozen=True, slots=True)
class _Job:
    """One attempt at one task."""

    task: Task
    given: JsonObject
    attempt: int
    """1 for the first."""
    started: float


@dataclass(frozen=True, slots=True)
class _Delayed:
    """A task that failed and is to be tried again."""

    due_s: float
    """By the monotonic clock."""
    job: _Job


class _Run(PlanRun):
    """One execution of one plan; everything but the calls happens on the caller's thread."""

    def __init__(self, plan: TaskPlan, retry: Retry, **given: Unpack[RunArguments]) -> None:
        super().__init__(**given)
        self.plan = plan
        self.retry = retry
        # Keys must differ between runs: the same order may well be placed again tomorrow.
        self.identity = self.run or uuid.uuid4().hex
        self.tasks = {task.id: task for task in plan.tasks}
        self.needed = plan.reads()
        self.results: JsonObject = {}
        """What each task gave, those that did."""
        self.order = TopologicalSorter(self.needed)
        self.order.prepare()
        self.ready: deque[str] = deque()
        self.running: dict[Future[Json], _Job] = {}
        self.delayed: list[_Delayed] = []

    def outcome(self, pool: ThreadPoolExecutor, workers: int) -> Outcome:
        self.check_steps()
        self.keep_constants()
        try:
            while self.order.is_active():
                self.start(pool, workers)
                self.collect()
        except SemCacheError as error:
            self.settle()
            if not isinstance(error, InputNeeded):  # it goes on from here once that is answered
                self.undo(error)
            raise
        answer = self.answer()
        return self.ended({"answer": answer, "results": self.results}, answer)

    def check_steps(self) -> None:
        if len(self.tasks) > self.limits.max_steps:
            raise StepLimitExceeded(
                f"the plan has {len(self.tasks)} tasks; expected at most {self.limits.max_steps}"
            )

    def keep_constants(self) -> None:
        with self.visit(CONSTANTS, "") as visit:
            values = constants(self.tasks[CONSTANTS], self.plan.data)
            what = f"the input of {CONSTANTS!r}"
            visit.output = bounded(values, self.limits, what=what, node=CONSTANTS)
            self.results[CONSTANTS] = visit.output

    def answer(self) -> Json:
        """Return the result that no task reads, or all of them by task."""
        read = {other for others in self.needed.values() for other in others}
        last = [name for name in self.needed if name not in read]
        if len(last) == 1:
            return self.results[last[0]]
        return {name: self.results[name] for name in last}

    # Starting ---------------------------------------------------------------------------------

    def start(self, pool: ThreadPoolExecutor, workers: int) -> None:
        """Start what is ready or due again, as far as there are workers."""
        now, later = self.clock.monotonic(), []
        for delayed in self.delayed:
            if delayed.due_s <= now and len(self.running) < workers:
                job = delayed.job
                self.submit(pool, job.task, job.given, job.attempt + 1)
            else:
                later.append(delayed)
        self.delayed = later
        self.ready += self.order.get_ready()
        names = [
            self.ready.popleft() for _ in range(min(workers - len(self.running), len(self.ready)))
        ]
        # What runs alone needs no thread of the pool, which would double the cost of the call.
        alone = len(names) == 1 and not self.running and not self.delayed
        for name in names:
            task = self.tasks[name]
            self.submit(None if alone else pool, task, self.input(task), 1)

    def input(self, task: Task) -> JsonObject:
        """Return the input of `task` with what its references lead to.

        Raises:
            ExpressionError: a result has no such part; the error names the task.
        """

        def read(text: str, _: Pointer) -> Json:
            path = parse(text) if is_reference(text) else None
            if path is None:
                return literal(text)
            try:
                return walk(self.results[path.task], path.steps)
            except LookupError as error:
                what = f"task {task.id!r} reads {text!r}, but {error.args[0]}"
                raise ExpressionError(what, node=task.id) from error

        return as_object(filled(task.input, task.at, self.plan.data, read))

    def submit(
        self, pool: ThreadPoolExecutor | None, task: Task, given: JsonObject, attempt: int
    ) -> None:
        """Let a task run in `pool`, or run it here and now."""
        self.budget.check(task.id, at=f"before {task.id!r}")
        job = _Job(task, given, attempt, self.clock.monotonic())
        if pool is None:
            self.running[_ended(partial(self.call, job))] = job
        else:
            self.running[pool.submit(contextvars.copy_context().run, self.call, job)] = job

    def call(self, job: _Job) -> Json:
        """Return what the operation of a task gives; on a thread of the pool."""
        operation, node = self.catalog.get(job.task.service), job.task.id
        return self.called(operation, job.given, node, key=self.key(operation, job.given, node))

    def key(self, operation: Operation, given: JsonObject, node: str) -> str:
        """Return the key of a piece of work; empty for an operation that takes none."""
        return idempotency_key(self.identity, node, given) if operation.idempotency_key else ""

    # Collecting -------------------------------------------------------------------------------

    def collect(self) -> None:
        """Wait until a task ended or one is due again, and keep what ended."""
        next_s = min((delayed.due_s for delayed in self.delayed), default=None)
        pause = None if next_s is None else max(next_s - self.clock.monotonic(), 0)
        if not self.running:
            self.clock.sleep(pause or 0)
            return
        # A hint to wake up: the clock alone says when a task is due.
        done, _ = wait(self.running, pause, FIRST_COMPLETED)
        for future in [future for future in self.running if future in done]:
            self.finish(future)

    def finish(self, future: Future[Json]) -> None:
        """Keep the result of a task, or plan its next attempt.

        Raises:
            SemCacheError: it failed for good.
        """
        job = self.running.pop(future)
        task = job.task
        try:
            with self.visit(task.id, task.service, started=job.started) as visit:
                visit.input, visit.output = job.given, future.result()
        except SemCacheError as error:
            self.delay(job, error)
            return
        self.results[task.id] = visit.output
        self.order.done(task.id)

    def delay(self, job: _Job, error: SemCacheError) -> None:
        wait_s = self.retry.wait_s(job.attempt)
        operation = self.catalog.get(job.task.service)
        if not self.retry.allows(operation, error, job.attempt) or wait_s >= self.budget.left_s():
            raise error
        what = type(error).__name__  # its message may quote the values of a prompt
        log.info("task %r is tried again in %g s: %s", job.task.id, wait_s, what)
        self.delayed.append(_Delayed(self.clock.monotonic() + wait_s, job))

    # Undoing ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait for what still runs: what it does may have to be undone. It ends by its timeouts."""
        wait(self.running)
        for future in list(self.running):
            with contextlib.suppress(SemCacheError):  # reported; the first failure is the reason
                self.finish(future)

    def undo(self, error: SemCacheError) -> None:
        """Undo the nodes whose operation names its compensation, the one that ended last first.

        Raises:
            CompensationFailed: not all could be undone, which keeps none of the others from it.
        """
        left = []
        for node in reversed(tuple(self.nodes)):
            name = self.catalog.get(node.operation).compensation if node.operation else None
            if name is None:
                continue
            log.warning("node %r is undone by operation %r", node.node, name)
            try:
                self.undo_node(node, name)
            except SemCacheError as failure:
                left.append(f"{node.node!r} by {name!r}: {failure}")
        if left:
            raise CompensationFailed(
                f"{error}; and not undone: {'; '.join(left)}",
                node=error.node if isinstance(error, ExecutionError) else "",
            ) from error

    def undo_node(self, node: NodeResult, name: str) -> None:
        given: JsonObject = {"input": node.input, "output": node.output}
        for failures in count(1):
            try:
                self.undo_once(name, given, node.node)
            except ExecutionError as error:
                if not self.retry.allows(self.catalog.get(name), error, failures):
                    raise
                self.clock.sleep(self.retry.wait_s(failures))
            else:
                return

    def undo_once(self, name: str, given: JsonObject, node: str) -> None:
        """Call the operation `name`, which undoes `node`, and report it."""
        # It is given an input and an output, each of which may be as large as one may be.
        limits = replace(self.limits, max_output_bytes=2 * self.limits.max_output_bytes + 100)
        operation, place = self.catalog.get(name), f"{node}/undo"
        with self.visit(node, name):
            call(
                operation,
                given,
                catalog=self.catalog,
                limits=limits,
                timeout_s=self.limits.call_timeout_s,
                node=place,
                key=self.key(operation, given, place),
            )


def _ended(work: Callable[[], Json]) -> Future[Json]:
    """Return what `work` gives or raises, as a future that has ended."""
    future: Future[Json] = Future()
    try:
        future.set_result(work())
    except SemCacheError as error:
        future.set_exception(error)
    return future
