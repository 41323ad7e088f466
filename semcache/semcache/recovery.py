"""A plan that fails is run again or made anew, where reflection is on; its intents are followed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from semcache.cache.result import Hit
from semcache.canonical import Json, leaves
from semcache.catalog.builtin import NeedsInput
from semcache.errors import (
    CompensationFailed,
    ExecutionError,
    ExpressionError,
    InvalidPlan,
    OperationRefused,
    StepLimitExceeded,
)
from semcache.planners.failures import FailureMemory
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.progress import IntentLog, Progress, fresh
from semcache.planners.questions import Interview
from semcache.planners.steps.intents import serves
from semcache.plans.document import ExecutionPlan, WrittenPlan
from semcache.ports import Outcome
from semcache.runs.attempts import HOPELESS, causes, fault_of
from semcache.runs.redaction import kept, redacted_json
from semcache.runs.reflection import Attempt, Failed, Reflection, RetryVerdict
from semcache.runs.run_context import here
from semcache.semcache.answer import Chosen, Job
from semcache.semcache.plan_finder import PlanFinder
from semcache.semcache.plan_runner import PlanRunner, SuspendedRuns
from semcache.semcache.run_events import RunEvents
from semcache.semcache.stages import Stages


class RunIntents:
    """The intents of runs and plans; without a log none are kept. Safe from several threads."""

    def __init__(self, log: IntentLog | None, stages: Stages) -> None:
        self._log = log
        self._stages = stages

    def of_run(self, run: str, tenant: str) -> IntentGraph | None:
        """Return the intents of a run; None if there are none, or they cannot be read now."""
        with self._stages.cache.guarded(tenant):
            return self.kept(run, tenant)
        return None

    def kept(self, run: str, tenant: str) -> IntentGraph | None:
        """Return the intents of a run; None if there are none.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        return None if self._log is None else self._log.get(tenant, run)

    def of_plan(self, job: Job, chosen: Chosen) -> IntentGraph | None:
        """Return the intents of a plan, as they were kept when it was made; None if it has none."""
        if chosen.graph is not None or self._log is None or not chosen.entry:
            return chosen.graph
        if not serves(chosen.plan):
            return None
        kept = self.of_run(chosen.entry, job.tenant)
        return None if kept is None else fresh(kept, chosen.plan, job.prompt)

    def keep(self, job: Job, chosen: Chosen, graph: IntentGraph | None) -> None:
        """Keep the intents of a run, of a new plan also for its later runs; and learn from them."""
        if graph is None or self._log is None:
            return
        with self._stages.cache.guarded(job.tenant):
            if chosen.planned:
                self._log.keep(job.tenant, job.run, graph)
                if chosen.entry:
                    self._log.keep(job.tenant, chosen.entry, graph)
            if chosen.planned or graph.goal.status == "failed":
                self._log.learn(job.tenant, graph, self._stages.catalog)


_FAULTS = (ExpressionError, StepLimitExceeded, OperationRefused)
"""What a plan does that is not the plan of its prompt; an operation may fail for any reason."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What running a plan came to."""

    came: Outcome | NeedsInput
    chosen: Chosen
    """The plan that ran last: another one than was chosen, where that failed."""
    intents: IntentGraph | None


class Recovery:
    """Runs chosen plans. Safe from several threads."""

    def __init__(
        self,
        stages: Stages,
        finder: PlanFinder,
        runner: PlanRunner,
        *,
        suspended: SuspendedRuns,
        intents: RunIntents,
        events: RunEvents,
        failures: FailureMemory,
        reflection: Reflection,
    ) -> None:
        self._stages = stages
        self._cache = stages.cache
        self._finder = finder
        self._runner = runner
        self._suspended = suspended
        self._intents = intents
        self._events = events
        self._failures = failures
        self._reflection = reflection

    def run(self, job: Job, chosen: Chosen, interview: Interview) -> Ran:
        """Run the plan; where reflection is on, again or another one, if the first one fails."""
        current, known = chosen, set[int]()
        progress = Progress(None, self._events.emit)

        def work(attempt: Attempt) -> Outcome | NeedsInput:
            nonlocal current, progress
            if attempt.verdict is not None and attempt.verdict.decision == "plan":
                current = self._replanned(job, current, attempt)
            progress = Progress(self._intents.of_plan(job, current), self._events.emit)
            try:
                return self._executed(job, current, interview, progress)
            finally:
                self._intents.keep(job, current, progress.graph)

        def judge(failed: Failed) -> RetryVerdict:
            if id(failed.error) in known:
                return RetryVerdict(retry=False, reason="The plan was made anew, and is the same")
            known.add(id(failed.error))
            return _judged(failed, current.plan, self._given(job, failed), self._shown)

        try:
            came = self._reflection.step("execute", work, level="run", judge=judge)
        except ExecutionError as error:
            said = self._cache.redacted(str(error), prompt=job.prompt, params=job.params)
            with self._cache.guarded(job.tenant):
                self._failures.failed(job.tenant, current.key, said)
            raise
        return Ran(came, current, progress.graph)

    def _given(self, job: Job, failed: Failed) -> Json:
        """Return what the operation that failed was called with, as far as the tree has it."""
        name = failed.error.node if isinstance(failed.error, ExecutionError) else ""
        standing = here()
        home = standing.home if standing is not None else self._events.runs
        called = home.view(job.run, tenant=job.tenant).named(name) if name else ()
        return called[-1].input if called else None

    def _shown(self, value: Json) -> Json:
        """Return `value` as run trees have it."""
        redact = self._cache.redact
        return kept(value if redact is None else redacted_json(value, redact))

    def _replanned(self, job: Job, broken: Chosen, attempt: Attempt) -> Chosen:
        """Return a new plan in the place of one that failed, which is taken back.

        A semantic hit is vetoed for the prompt, and any other plan is removed.

        Raises:
            ExecutionError: the new plan is the one that failed.
            PlanningError: there is no other plan.
        """
        if isinstance(broken.found, Hit) and not broken.planned:
            self._cache.feedback(broken.found, right=False)
        elif broken.entry:
            self._cache.invalidate(tenant=job.tenant, id=broken.entry)
        again = self._finder.again(job, broken.found, str(attempt.error))
        if attempt.error is not None and again.plan.to_dict() == broken.plan.to_dict():
            raise attempt.error
        return again

    def _executed(
        self, job: Job, chosen: Chosen, interview: Interview, progress: Progress
    ) -> Outcome | NeedsInput:
        allow = job.allow_writes is not False
        catalog = self._stages.catalog
        try:
            with self._events.timed("execute", job):
                came = self._runner.conduct(
                    chosen.plan,
                    interview,
                    progress,
                    catalog=catalog,
                    run=job.run,
                    allow_writes=allow,
                    sink=self._runner.sink(chosen.plan, job, self._cache),
                )
        except _FAULTS:
            if allow and isinstance(chosen.found, Hit):
                self._cache.judged(chosen.found, right=False)
            raise
        if not isinstance(came, Outcome):
            progress.suspended(came)
            return self._suspended.keep(job, chosen, interview, came, catalog=catalog)
        with self._cache.guarded(job.tenant):
            self._failures.succeeded(job.tenant, chosen.key)
        return came


def _judged(
    failed: Failed, plan: ExecutionPlan, given: Json, shown: Callable[[Json], Json]
) -> RetryVerdict:
    """Return what comes of a plan that failed."""
    match blame(failed.error, plan, given, shown=shown):
        case "values":
            reason = f"The values will not do: {failed.error}"
            return RetryVerdict(retry=False, reason=reason, decision="values")
        case "passing":
            again = failed.fault != "timeout" or failed.attempt < 2
            reason = "It may pass: tried again" if again else "Too late again"
            return RetryVerdict(retry=again, reason=reason, decision="passing")
        case "plan":
            reason = f"The plan is at fault and is made anew: {failed.error}"
            return RetryVerdict(retry=True, reason=reason, decision="plan")
        case "nobody":
            return RetryVerdict(retry=False, reason=f"Not for another try: {failed.fault}")


# Whose fault it is that a plan failed: the plan's, the values', or nobody's for long.

Blame = Literal["plan", "values", "passing", "nobody"]
"""`plan`: another plan may do it. `values`: the caller's own values will not do. `passing`: the
same plan may well work in a moment. `nobody`: none of these; the caller decides."""


def blame(
    error: Exception,
    plan: ExecutionPlan,
    given: Json,
    *,
    shown: Callable[[Json], Json] = lambda value: value,
) -> Blame:
    """Return whose fault `error` is; `given` is what the operation that failed was called with.

    `shown`: what became of a value before it stood in `given`, where some of it is redacted.

    Told by types and statuses. An operation that did not take a value is the value's fault only if
    it was one of the prompt's that it was given: what the plan itself made up is the plan's.
    """
    fault = fault_of(error)
    if fault in HOPELESS or isinstance(error, CompensationFailed):
        return "nobody"
    if fault in {"timeout", "passing"}:
        return "passing"
    if not isinstance(error, ExecutionError | InvalidPlan):
        return "nobody"
    about_values = fault == "input" or any(
        isinstance(cause, ValueError | OperationRefused) for cause in causes(error)
    )
    if (
        about_values
        and not isinstance(error, InvalidPlan)
        and not set(_scalars(given)).isdisjoint(_bound(plan, shown))
    ):
        return "values"
    return "plan"


def _bound(plan: ExecutionPlan, shown: Callable[[Json], Json]) -> Iterator[tuple[str, Json]]:
    """Yield the scalars of the prompt that stand in the plan."""
    if not isinstance(plan, WrittenPlan):
        return
    body = plan.to_dict()
    for pointer in plan.data:
        part: Json = body
        for step in pointer:
            if isinstance(part, dict):
                part = part[str(step)]
            elif isinstance(part, list):
                part = part[int(step)]
        yield from _scalars(shown(part))


def _scalars(value: Json) -> Iterator[tuple[str, Json]]:
    """Yield the leaves of a value with their types: 1 is not true."""
    for _, leaf in leaves(value):
        if isinstance(leaf, str | int | float):
            yield type(leaf).__name__, leaf
