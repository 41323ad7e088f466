"""The engine of its format runs a plan; programs keep checkpoints, and who asks a person waits."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from semcache.cache.plan_cache import PlanCache
from semcache.canonical import as_object, dumps, plain
from semcache.catalog.builtin import NeedsInput, Question
from semcache.catalog.catalog import Catalog
from semcache.errors import InputNeeded, InvalidInput, InvalidPlan
from semcache.execution.program import ProgramEngine
from semcache.execution.state import Sink, State
from semcache.planners.note_store import NoteStore
from semcache.planners.pending_runs import PendingRuns, Suspended, pointers
from semcache.planners.questions import Ask, Interview, asks, conduct
from semcache.plans.codec import adopt, decode
from semcache.plans.document import ExecutionPlan
from semcache.plans.program import ProgramPlan
from semcache.ports import Clock, Engine, Limits, Observer, Outcome, PlanStore
from semcache.semcache.answer import Chosen, Job

log = logging.getLogger(__name__)

KEPT = 2_000
"""Checkpoints of a tenant; the oldest make room. A program of the usual step budget makes 100."""
KEPT_S = 7 * 24 * 3600.0
MAX_BYTES = 2**20
"""Bytes of one checkpoint; what holds more (a table that was read) is not kept."""


class Checkpoints:
    """The states of programs, by tenant and run, in the notes of a store. Safe from threads."""

    def __init__(self, store: PlanStore, clock: Clock) -> None:
        self._kept = NoteStore(store, clock, "checkpoints", most=KEPT, ttl_s=KEPT_S)

    def sink(
        self,
        tenant: str,
        run: str,
        plan: ProgramPlan,
        guarded: Callable[[str], AbstractContextManager[None]],
    ) -> Sink:
        """Return what keeps the states of a run as they come; a store that fails stops nothing."""
        place = plain([list(at) for at in sorted(plan.data, key=repr)])
        begun = False

        def keep(state: State) -> None:
            nonlocal begun
            told = state.to_json()
            if len(dumps(told)) > MAX_BYTES:
                log.info("a checkpoint of over %d bytes was not kept", MAX_BYTES)
                return
            with guarded(tenant):
                if not begun:
                    self._kept.put(tenant, run, {"plan": plan.to_dict(), "data": place})
                    begun = True
                self._kept.put(tenant, _name(run, state), told)

        return keep

    def states(self, tenant: str, run: str) -> tuple[State, ...]:
        """Return where the program of a run stood after each step, in order; empty if unknown.

        The last one has the error, if a step failed.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        names = sorted(n for n in self._kept.names(tenant) if n.startswith(f"{run}/"))
        found = (self._kept.get(tenant, name) for name in names)
        return tuple(State.from_json(told) for told in found if told is not None)

    def plan(self, tenant: str, run: str) -> ProgramPlan:
        """Return the program of a run, its values bound.

        Raises:
            InvalidInput: no checkpoint of it is kept.
            StoreUnavailable: it cannot be read.
        """
        told = self._kept.get(tenant, run)
        plan: ExecutionPlan | None = None
        if told is not None:
            plan = adopt(as_object(told.get("plan")), pointers(told.get("data")))
        if not isinstance(plan, ProgramPlan):
            raise InvalidInput(
                f"no checkpoints are kept of the run {run[:40]!r}: it ran no program, is another "
                "tenant's, or was too long ago"
            )
        return plan


def start_of(state: State, plan: ProgramPlan) -> State:
    """Return the state to go on from with `plan`, which may be an edited one.

    Raises:
        InvalidInput: the plan has no such next instruction.
    """
    same = state.plan == plan.fingerprint
    return replace(state, error="") if same else state.branched(plan)


def _name(run: str, state: State) -> str:
    # After its step, and apart from it the failure of the next one.
    return f"{run}/{state.steps:06d}{'-failed' if state.error else ''}"


# Running, and waiting.


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
