"""The engine of the program format: instructions, jumps, and variables in between."""

from collections.abc import Iterator, Sequence

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPlan
from semcache.execution.asking import Asker
from semcache.execution.program_run import Run
from semcache.execution.state import Sink, State
from semcache.plans.checks import refuse
from semcache.plans.finding import Finding
from semcache.plans.plan import ExecutionPlan
from semcache.plans.program import GENERATE, GOALS, ProgramPlan, goal
from semcache.plans.program_checks import broken_program
from semcache.ports import Clock, Limits, Model, Observer, Outcome


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
        catalog: Catalog,
        limits: Limits,
        clock: Clock,
        observer: Observer,
        run: str = "",
        state: State | None = None,
        sink: Sink | None = None,
    ) -> Outcome:
        """Run a plan with its values already bound, and return its final answer.

        Nothing is called if the plan is malformed. Every visit of an instruction evaluates it
        afresh and counts as a step. Calls that follow one another, only read, and need none of
        each other's results run at the same time; results are recorded in the program's order.

        Args:
            plan: A program.
            catalog: What it may call.
            limits: What it may use; steps made before `state` count.
            clock: Times it.
            observer: Hears of each instruction and of each call of the model.
            run: Id for the events.
            state: Where to go on from, of the same plan (`State.branched` for an edited one); None
                for the start.
            sink: Is given the state after each step, and with its error one that failed.

        Raises:
            InvalidPlan: the plan is malformed (it carries all findings), or asks a model and there
                is none.
            InvalidInput: `state` belongs to another plan or is at its end.
            ExecutionError: an instruction failed, a limit was reached, or the program ended with
                no final answer; the error names the instruction by its `seq_no`.
        """
        if not isinstance(plan, ProgramPlan):
            raise InvalidPlan(
                f"the plan has the format {plan.format!r}; this engine runs {ProgramPlan.format!r}"
            )
        known = () if state is None else tuple(state.variables)
        refuse(broken_program(plan, catalog, goals=self._goals, known=known))
        asker = Asker(self._model, observer, clock, run)
        refuse(tuple(_without_model(plan)) if self._model is None else ())
        execution = Run(
            plan,
            goal=goal(plan.instructions(), self._goals),
            catalog=catalog,
            limits=limits,
            clock=clock,
            observer=observer,
            run=run,
            asker=asker,
            workers=self._workers,
            sink=sink,
            state=state,
        )
        with execution:
            return execution.outcome()


def _without_model(plan: ProgramPlan) -> Iterator[Finding]:
    for step in plan.instructions():
        if step.conditional or step.call == GENERATE:
            at = f"/{step.at[0]}/{step.index}"
            what = f"is {step.type!r}, which asks a model, and the engine has none; give it one"
            yield Finding(at, what, "operation")
