"""The engine of the program format: instructions, jumps, and variables in between."""

import contextvars
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType
from typing import Self, Unpack

from semcache.canonical import Json, as_object, plain
from semcache.errors import (
    ExecutionError,
    InvalidInput,
    SemCacheError,
    StepLimitExceeded,
)
from semcache.execution.instructions import HANDLERS, Asker, Done
from semcache.execution.plan_run import PlanRun, RunArguments, other_format, to_text
from semcache.execution.state import Sink, State
from semcache.execution.variables import Reader
from semcache.plans.codec import refuse
from semcache.plans.document import ExecutionPlan
from semcache.plans.finding import Finding
from semcache.plans.program import GENERATE, GOALS, Instruction, ProgramPlan, found, goal
from semcache.plans.program_checks import broken_program
from semcache.ports import Model, Outcome

AHEAD = 16
"""Instructions after a call that are looked through for calls to start with it."""


class ProgramRun(PlanRun):
    """One execution of one program."""

    def __init__(
        self,
        plan: ProgramPlan,
        *,
        goal: str,
        model: Model | None,
        workers: int,
        sink: Sink | None,
        state: State | None,
        **given: Unpack[RunArguments],
    ) -> None:
        super().__init__(**given)
        self.instructions = plan.instructions()
        self.by_seq = {step.seq: step.index for step in reversed(self.instructions)}
        self.fingerprint = plan.fingerprint if sink is not None or state is not None else ""
        self.goal = goal
        self.asker = Asker(model, self.observer, self.clock, self.run)
        self.workers = workers
        self.sink = sink
        self.reader = Reader(plan.bound, limit=self.limits.max_output_bytes)
        self.variables: Mapping[str, Json] = MappingProxyType({})
        self.before = 0
        """Steps that were made before this run went on."""
        self.last: int | None = None
        self.index = 0
        self.started: dict[int, Future[Done]] = {}
        self.pool: ThreadPoolExecutor | None = None
        if state is not None:
            self.resume(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)

    def resume(self, state: State) -> None:
        """Go on from `state`; InvalidInput if that cannot be."""
        if state.plan != self.fingerprint:
            raise InvalidInput(
                "the state belongs to another plan; `state.branched(plan)` takes it over"
            )
        if state.following is None:
            raise InvalidInput("the state is the end of its run; nothing is left to resume")
        if state.following not in self.by_seq:
            raise InvalidInput(f"the state goes on at {state.following}, which the plan has not")
        self.index = self.by_seq[state.following]
        self.before = self.steps = state.steps
        self.last = state.executed
        self.variables = MappingProxyType(dict(as_object(plain(state.variables, what="the state"))))

    def outcome(self) -> Outcome:
        """Run to the end and return what came out."""
        while self.goal not in self.variables:
            self.step(self.instruction())
        value = self.variables[self.goal]
        text = value if isinstance(value, str) else to_text(value)
        return Outcome(value, text, tuple(self.nodes))

    @property
    def made(self) -> int:
        """Steps that were made since the start of the program."""
        return self.before + len(self.nodes)

    def instruction(self) -> Instruction:
        """Return the instruction whose turn it is.

        Raises:
            ExecutionError: the program is over and has not set its goal.
            StepLimitExceeded, DeadlineExceeded: the budget allows none more.
        """
        if self.index >= len(self.instructions):
            last = str(self.instructions[-1].seq)
            raise ExecutionError(
                f"the program ended after {last} and never set {self.goal!r}", node=last
            )
        step = self.instructions[self.index]
        node = str(step.seq)
        if self.made >= self.limits.max_steps:
            raise StepLimitExceeded(
                f"the program took {self.limits.max_steps} steps and set no {self.goal!r}; before "
                f"instruction {node}",
                node=node,
            )
        self.budget.check(node, at=f"before instruction {node}", what="program")
        return step

    def step(self, step: Instruction) -> None:
        """Run one instruction, record what it did, and go where it leads."""
        try:
            with self.visit(str(step.seq), step.call) as visit:
                done = self.done(step)
                visit.input, visit.output, visit.seconds = done.given, done.output, done.seconds
        except SemCacheError as error:
            self.checkpoint(f"{type(error).__name__}: {error}")
            raise
        self.last = step.seq
        self.index = step.index + 1 if done.jump is None else self.by_seq[done.jump]
        self.variables = MappingProxyType({**self.variables, **done.sets})
        self.checkpoint("")

    def done(self, step: Instruction) -> Done:
        """Do one instruction, or wait for it if it was started before its turn."""
        if step.call:
            if step.index not in self.started:
                self.start(step)
            if (future := self.started.pop(step.index, None)) is not None:
                return future.result()
        return HANDLERS[step.type](self, step)

    def checkpoint(self, error: str) -> None:
        """Tell where the run stands; after an error that is where it stood."""
        if self.sink is None:
            return
        over = self.goal in self.variables or self.index >= len(self.instructions)
        self.sink(
            State(
                plan=self.fingerprint,
                steps=self.made,
                following=None if over else self.instructions[self.index].seq,
                variables=self.variables,
                executed=self.last,
                error=error,
            )
        )

    # Calls that run at the same time -------------------------------------------------------

    def start(self, first: Instruction) -> None:
        """Start `first` and the calls after it that need not wait, if there are any."""
        group = [first, *self.ahead(first)]
        if len(group) == 1 or self.workers < 2:
            return
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.workers, thread_name_prefix="semcache-program")
        for step in group:
            context = contextvars.copy_context()
            self.started[step.index] = self.pool.submit(context.run, self.timed, step)

    def ahead(self, first: Instruction) -> Iterator[Instruction]:
        """Yield the calls right after `first` whose results cannot depend on their order.

        Only calls that read: a write must not happen before an earlier call has succeeded. None
        beyond an instruction that is no call, that ends the run, or that is beyond the step budget
        or `AHEAD`: a long chain of calls is not read through at each of them.
        """
        if not self.reads(first):
            return
        written = set(first.sets)
        last = first.index + min(self.limits.max_steps - self.made, AHEAD)
        previous = first
        for step in self.instructions[first.index + 1 : last]:
            if not self.reads(step) or self.goal in previous.sets:
                return
            if not written.intersection(self.names(step)) and step.index not in self.started:
                yield step
            written.update(step.sets)
            previous = step

    def reads(self, step: Instruction) -> bool:
        """Return whether an instruction calls what changes nothing."""
        if not step.call:
            return False
        return step.call == GENERATE or self.catalog.get(step.call).effect == "read"

    def names(self, step: Instruction) -> set[str]:
        """Return the variables that an instruction reads."""
        return {variable.name for _, variable in step.variables(self.reader.bound)}

    def timed(self, step: Instruction) -> Done:
        """Do one instruction before its turn, and say how long it took."""
        begun = self.clock.monotonic()
        done = HANDLERS[step.type](self, step)
        seconds = self.clock.monotonic() - begun
        return Done(done.sets, done.jump, done.given, done.output, seconds)

    # What handlers need --------------------------------------------------------------------

    def value(self, step: Instruction, *way: str) -> Json:
        """Return a parameter of `step` with its references replaced; null if it is not there."""
        value = found(step.parameters, way)
        return self.reader.resolved(value, (*step.inside, *way), self.variables, str(step.seq))

    def kept(self, value: Json, step: Instruction) -> Json:
        """Return a value that the program made itself.

        Raises:
            OutputTooLarge, ExecutionError: it is over the bounds, or no JSON.
        """
        node = str(step.seq)
        return self.own(value, what=f"what instruction {node} sets", node=node)


class ProgramEngine:
    """Runs plans in the program format. Holds no state between runs; safe from several threads.

    Satisfies `ports.Engine`; `execute` also resumes and tells where a run stands.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        workers: int = 3,
        goals: Sequence[str] = GOALS,
    ) -> None:
        """Keep what is needed for a run.

        Args:
            model: Answers `llm_generate` and decides conditions; None: programs with either are
                refused.
            workers: Calls that may run at the same time; 1 for one after the other.
            goals: Variables that end a run when set: the first that the program sets anywhere.
        """
        self._model = model
        self._workers = workers
        self._goals = tuple(goals)

    def execute(
        self,
        plan: ExecutionPlan,
        *,
        state: State | None = None,
        sink: Sink | None = None,
        **given: Unpack[RunArguments],
    ) -> Outcome:
        """Run a plan with its values already bound, and return its final answer.

        Nothing is called if the plan is malformed. Every visit of an instruction evaluates it
        afresh and counts as a step. Calls that follow one another, only read, and need none of
        each other's results run at the same time; results are recorded in the program's order.

        Args:
            plan: A program.
            state: Where to go on from, of the same plan (`State.branched` for an edited one); None
                for the start.
            sink: Is given the state after each step, and with its error one that failed.
            given: As for every engine; of the limits, steps made before `state` count.

        Raises:
            InvalidPlan: the plan is malformed (it carries all findings), or asks a model and there
                is none.
            InvalidInput: `state` belongs to another plan or is at its end.
            ExecutionError: an instruction failed, a limit was reached, or the program ended with
                no final answer; the error names the instruction by its `seq_no`.
        """
        if not isinstance(plan, ProgramPlan):
            raise other_format(plan, ProgramPlan.format)
        known = () if state is None else tuple(state.variables)
        refuse(broken_program(plan, given["catalog"], goals=self._goals, known=known))
        refuse(tuple(_without_model(plan)) if self._model is None else ())
        execution = ProgramRun(
            plan,
            goal=goal(plan.instructions(), self._goals),
            model=self._model,
            workers=self._workers,
            sink=sink,
            state=state,
            **given,
        )
        with execution:
            return execution.outcome()


def _without_model(plan: ProgramPlan) -> Iterator[Finding]:
    for step in plan.instructions():
        if step.conditional or step.call == GENERATE:
            at = f"/{step.at[0]}/{step.index}"
            what = f"is {step.type!r}, which asks a model, and the engine has none; give it one"
            yield Finding(at, what, "operation")
