"""Healing: a plan is run, and where reflection is on, run again or made anew if it fails."""

from collections.abc import Callable
from dataclasses import dataclass

from semcache.answering.choosing import Choosing
from semcache.answering.conducting import Conducting
from semcache.answering.goals import Goals
from semcache.answering.job import Chosen, Job
from semcache.answering.stages import Stages
from semcache.answering.suspending import Suspending
from semcache.answering.telling import Telling
from semcache.cache.found import Hit
from semcache.canonical import Json
from semcache.catalog.builtin import NeedsInput
from semcache.errors import ExecutionError, ExpressionError, OperationRefused, StepLimitExceeded
from semcache.planners.blame import blame
from semcache.planners.failures import FailureMemory
from semcache.planners.progress import Progress
from semcache.planners.questions import Interview
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Outcome
from semcache.runs.here import here
from semcache.runs.redaction import kept, redacted_json
from semcache.runs.reflection import Attempt, Failed, Reflection, Verdict

_FAULTS = (ExpressionError, StepLimitExceeded, OperationRefused)
"""What a plan does that is not the plan of its prompt; an operation may fail for any reason."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What running a plan came to."""

    came: Outcome | NeedsInput
    chosen: Chosen
    """The plan that ran last: another one than was chosen, where that failed."""
    intents: IntentGraph | None


class Healing:
    """Runs chosen plans. Safe from several threads."""

    def __init__(
        self,
        stages: Stages,
        choosing: Choosing,
        conducting: Conducting,
        *,
        suspending: Suspending,
        goals: Goals,
        telling: Telling,
        failures: FailureMemory,
        reflection: Reflection,
    ) -> None:
        self._stages = stages
        self._cache = stages.cache
        self._choosing = choosing
        self._conducting = conducting
        self._suspending = suspending
        self._goals = goals
        self._telling = telling
        self._failures = failures
        self._reflection = reflection

    def run(self, job: Job, chosen: Chosen, interview: Interview) -> Ran:
        """Run the plan; where reflection is on, again or another one, if the first one fails."""
        current, known = chosen, set[int]()
        progress = Progress(None, self._telling.emit)

        def work(attempt: Attempt) -> Outcome | NeedsInput:
            nonlocal current, progress
            if attempt.verdict is not None and attempt.verdict.decision == "plan":
                current = self._replanned(job, current, attempt)
            progress = Progress(self._goals.of_plan(job, current), self._telling.emit)
            try:
                return self._executed(job, current, interview, progress)
            finally:
                self._goals.keep(job, current, progress.graph)

        def judge(failed: Failed) -> Verdict:
            if id(failed.error) in known:
                return Verdict(retry=False, reason="The plan was made anew, and is the same")
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
        home = standing.home if standing is not None else self._telling.runs
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
        again = self._choosing.again(job, broken.found, str(attempt.error))
        if attempt.error is not None and again.plan.to_dict() == broken.plan.to_dict():
            raise attempt.error
        return again

    def _executed(
        self, job: Job, chosen: Chosen, interview: Interview, progress: Progress
    ) -> Outcome | NeedsInput:
        allow = job.allow_writes is not False
        catalog = self._stages.catalog
        try:
            with self._telling.timed("execute", job):
                came = self._conducting.conduct(
                    chosen.plan,
                    interview,
                    progress,
                    catalog=catalog,
                    run=job.run,
                    allow_writes=allow,
                )
        except _FAULTS:
            if allow and isinstance(chosen.found, Hit):
                self._cache.judged(chosen.found, right=False)
            raise
        if not isinstance(came, Outcome):
            progress.suspended(came)
            return self._suspending.keep(job, chosen, interview, came, catalog=catalog)
        with self._cache.guarded(job.tenant):
            self._failures.succeeded(job.tenant, chosen.key)
        return came


def _judged(
    failed: Failed, plan: ExecutionPlan, given: Json, shown: Callable[[Json], Json]
) -> Verdict:
    """Return what comes of a plan that failed."""
    match blame(failed.error, plan, given, shown=shown):
        case "values":
            reason = f"The values will not do: {failed.error}"
            return Verdict(retry=False, reason=reason, decision="values")
        case "passing":
            again = failed.fault != "timeout" or failed.attempt < 2
            reason = "It may pass: tried again" if again else "Too late again"
            return Verdict(retry=again, reason=reason, decision="passing")
        case "plan":
            reason = f"The plan is at fault and is made anew: {failed.error}"
            return Verdict(retry=True, reason=reason, decision="plan")
        case "nobody":
            return Verdict(retry=False, reason=f"Not for another try: {failed.fault}")
