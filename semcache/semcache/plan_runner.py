"""The plan of a run is run by the engine of its format; a run that a person must answer waits."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from semcache.cache.plan_cache import PlanCache
from semcache.catalog.builtin import NeedsInput, Question
from semcache.catalog.catalog import Catalog
from semcache.errors import InputNeeded, InvalidInput, InvalidPlan
from semcache.execution.program import ProgramEngine
from semcache.execution.state import Sink, State
from semcache.planners.pending_runs import PendingRuns, Suspended
from semcache.planners.questions import Ask, Interview, asks, conduct
from semcache.plans.codec import decode
from semcache.plans.plan import ExecutionPlan
from semcache.plans.program.document import ProgramPlan
from semcache.ports import Clock, Engine, Limits, Observer, Outcome
from semcache.semcache.answer import Chosen, Job
from semcache.semcache.checkpoints import Checkpoints, start_of


class PlanRunner:
    """Runs plans. Safe from several threads."""

    def __init__(
        self,
        engines: Mapping[str, Engine],
        limits: Limits,
        *,
        clock: Clock,
        ask: Ask | None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.checkpoints = checkpoints
        """Where programs stood; None: that is not kept."""
        self._engines = dict(engines)
        self._limits = limits
        self._clock = clock
        self._ask = ask

    def conduct(
        self,
        plan: ExecutionPlan,
        interview: Interview,
        observer: Observer,
        *,
        catalog: Catalog,
        run: str,
        allow_writes: bool,
        sink: Sink | None = None,
        state: State | None = None,
    ) -> Outcome | tuple[Question, ...]:
        """Run a plan; return what came out, or the questions that nobody is there to answer.

        `sink` is given where a program stands after each step, `state` is where it goes on from.
        """
        engine = self._engine(plan)
        limits = replace(self._limits, allow_writes=allow_writes and self._limits.allow_writes)
        work = engine.execute
        if isinstance(engine, ProgramEngine):
            work = partial(engine.execute, sink=sink, state=state)

        def execute(catalog: Catalog) -> Outcome:
            return work(
                plan,
                catalog=catalog,
                limits=limits,
                clock=self._clock,
                observer=observer,
                run=run,
            )

        if not asks(plan):
            return execute(catalog)
        return conduct(plan, interview, catalog=catalog, execute=execute, ask=self._ask)

    def sink(self, plan: ExecutionPlan, job: Job, cache: PlanCache) -> Sink | None:
        """Return what keeps where the program of a run stands; None for what is no program."""
        if self.checkpoints is None or not isinstance(plan, ProgramPlan):
            return None
        return self.checkpoints.sink(job.tenant, job.run, plan, cache.guarded)

    def resume(
        self,
        job: Job,
        checkpoint: int,
        plan: Mapping[str, object] | str | ExecutionPlan | None,
        *,
        cache: PlanCache,
        catalog: Catalog,
        observer: Observer,
        run: str,
    ) -> Outcome:
        """Go on with the program of a run from one of its checkpoints; see `SemCache.resume`."""
        if self.checkpoints is None:
            raise InvalidInput("this SemCache keeps no checkpoints; open it with some")
        program = self.checkpoints.plan(job.tenant, job.run) if plan is None else decode(plan)
        states = self.checkpoints.states(job.tenant, job.run)
        if not isinstance(program, ProgramPlan):
            raise InvalidInput(f"the plan has the format {program.format!r}; expected a program")
        if not -len(states) <= checkpoint < len(states):
            raise InvalidInput(
                f"checkpoint is {checkpoint}; the run {job.run[:40]!r} has {len(states)} of them"
            )
        came = self.conduct(
            program,
            Interview(None),
            observer,
            catalog=catalog,
            run=run,
            allow_writes=job.allow_writes is not False,
            sink=self.sink(program, replace(job, run=run), cache),
            state=start_of(states[checkpoint], program),
        )
        if isinstance(came, Outcome):
            return came
        raise InputNeeded("the program asks a person; give `ask` when the cache is opened")

    def _engine(self, plan: ExecutionPlan) -> Engine:
        engine = self._engines.get(plan.format)
        if engine is None:
            known = ", ".join(sorted(self._engines)) or "none"
            raise InvalidPlan(f"no engine runs plans of the format {plan.format!r}; known: {known}")
        return engine


class SuspendedRuns:
    """Keeps runs that wait for answers. Safe from several threads."""

    def __init__(self, waiting: PendingRuns | None) -> None:
        self._waiting = waiting

    def keep(
        self,
        job: Job,
        chosen: Chosen,
        interview: Interview,
        questions: tuple[Question, ...],
        *,
        catalog: Catalog,
    ) -> NeedsInput:
        """Keep a run; return what a person must be asked.

        Raises:
            InputNeeded: no runs are kept here.
        """
        held = Suspended(
            prompt=job.prompt,
            run=job.run,
            plan=chosen.plan,
            key=chosen.key,
            planned=chosen.planned,
            allow_writes=job.allow_writes is not False,
            questions=tuple(question.given for question in questions),
            answers=interview.answers,
            made=interview.made(catalog),
        )
        return self._kept().keep(job.tenant, held, questions)

    def take(
        self, tenant: str, token: str, answers: Mapping[str, object], *, catalog: Catalog
    ) -> tuple[Suspended, Interview]:
        """Return the run that waits under a token, which no longer does, and what was said in it.

        Raises:
            InvalidParameter: nobody waits under it, or an answer will not do; it still waits.
            StoreUnavailable: what waits cannot be read.
            InputNeeded: no runs are kept here.
        """
        waiting = self._kept()
        held = waiting.get(tenant, token)
        interview = Interview(answers, answers=held.answers, made=held.made)
        interview.check(held.questions, catalog)
        waiting.take(tenant, token)
        return held, interview

    def _kept(self) -> PendingRuns:
        if self._waiting is None:
            raise InputNeeded(
                "the plan asks a person, and this SemCache keeps no runs that wait; give it an "
                "`ask`, or a `waiting`"
            )
        return self._waiting
