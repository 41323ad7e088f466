"""SemCache: a prompt goes in, an answer comes out, and the plan behind it is made once."""

import random
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from semcache.cache.plan_cache import PlanCache
from semcache.cache.warm_up import WarmUp
from semcache.catalog.builtin import NeedsInput
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounding
from semcache.execution.state import State
from semcache.planners.failures import FailureMemory
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.model.grounding import Groundings
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.plan_files import PlanFiles
from semcache.planners.pending_runs import PendingRuns
from semcache.planners.progress import IntentLog
from semcache.planners.questions import Ask, Interview
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.plans.document import ExecutionPlan
from semcache.ports import (
    Clock,
    Embedder,
    Engine,
    Limits,
    Model,
    Normalizer,
    Observer,
    Outcome,
    Planner,
    Selector,
    Verifier,
)
from semcache.process.forks import Closeable
from semcache.process.imports import ensure_imported
from semcache.prompts.redaction import Redact
from semcache.responses.cache import Responses
from semcache.runs.creation import workflow
from semcache.runs.recorder import Runs
from semcache.runs.reflection import Reflection
from semcache.runs.run_context import Here, Open, OpenRun
from semcache.runs.tools import Introspection
from semcache.runs.tree import Node
from semcache.semcache.answer import Answer, Chosen, Job
from semcache.semcache.plan_finder import PlanFinder
from semcache.semcache.plan_runner import Checkpoints, PlanRunner, SuspendedRuns
from semcache.semcache.recovery import Recovery, RunIntents
from semcache.semcache.run_events import RunEvents
from semcache.semcache.stages import Stages
from semcache.settings import Settings, directory_of

P = ParamSpec("P")
T = TypeVar("T")


class SemCache(Stages, Closeable):
    """Prompts to answers. `run` is `normalize`, `lookup`, `create`, `store` and `execute` in order.

    Safe from several threads. `open` wires the parts that ship; the constructor takes any.
    """

    def __init__(
        self,
        *,
        cache: PlanCache,
        catalog: Catalog,
        normalizers: Sequence[Normalizer],
        planners: Sequence[Planner],
        engines: Mapping[str, Engine],
        failures: FailureMemory,
        clock: Clock,
        limits: Limits,
        responses: Responses | None = None,
        groundings: Groundings | None = None,
        selector: Selector | None = None,
        plan_files: PlanFiles | None = None,
        steps: ModularPlanner | None = None,
        ask: Ask | None = None,
        waiting: PendingRuns | None = None,
        runs: Runs | None = None,
        intents: IntentLog | None = None,
        checkpoints: Checkpoints | None = None,
        reflection: Reflection | None = None,
        closing: Sequence[Callable[[], None]] = (),
        chance: Callable[[], float] | None = None,
    ) -> None:
        """Take the parts. `chance` gives numbers in [0, 1); None: others in each process."""
        runs = runs or Runs()
        events = RunEvents(cache, runs, clock)
        runner = PlanRunner(engines, limits, clock=clock, ask=ask, checkpoints=checkpoints)
        super().__init__(
            cache,
            catalog,
            runner,
            events,
            normalizers=normalizers,
            planners=planners,
            groundings=groundings,
            plan_files=plan_files,
            steps=steps,
        )
        self.responses = responses
        """What the model answered, by what it was asked; None: nothing is remembered."""
        self.runs = runs
        """The latest runs of each tenant, as trees."""
        self.reflection = reflection or Reflection(clock=clock, enabled=False)
        """What looks at plans that fail, and its history."""
        self.introspection = Introspection(has=None if responses is None else responses.has)
        """The tools by which agents look at the run that they stand in, and ask for others."""
        self._clock = clock
        self._closing = tuple(closing)
        self._finder = PlanFinder(
            self,
            events,
            failures,
            selector=selector,
            models_read=any(isinstance(one, ModelNormalizer) for one in normalizers),
            clock=clock,
            chance=chance or random.SystemRandom().random,
        )
        self._suspended = SuspendedRuns(waiting)
        self._intents = RunIntents(intents, self)
        self._recovery = Recovery(
            self,
            self._finder,
            runner,
            suspended=self._suspended,
            intents=self._intents,
            events=events,
            failures=failures,
            reflection=self.reflection,
        )

    @classmethod
    def open(
        cls,
        directory: str | Path | None = None,
        *,
        catalog: Catalog,
        settings: Settings | None = None,
        model: Model | None = None,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
        responses: Responses | None = None,
        groundings: Sequence[Grounding] = (),
        ask: Ask | None = None,
        redact: Redact | None = None,
        verifier: Verifier | None = None,
    ) -> "SemCache":
        """Return a SemCache over `catalog`, its cache kept in `directory` or in memory (None).

        Without a model (here or in `settings`) it runs on rules and the catalog: prompts that they
        cannot settle raise `PlanningError`. No model is loaded until one is needed.
        What the normalizer and the planner ask a model is remembered in `responses`, which the
        caller closes; None: beside the plans, unless `settings.response_cache` is off.
        Of `groundings`, the use case nearest to a prompt is shown to the planner, and its plan
        serves no prompt that is another use case, or none.
        What a plan asks a person is asked through `ask`, which gets a `Question` and returns the
        answer; None: such a run comes back with `Answer.needs`, and `answer` goes on with it.
        `redact`: see `PlanCache.open`; models and operations are given the prompt as it is, and
        what a model answers to a prompt with something to hide is not remembered. `verifier`: see
        there too; `settings` say when it is asked.

        Raises:
            InvalidSettings, ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt: it
                cannot be opened; nothing was changed.
        """
        ensure_imported("semcache.wiring.semcache")
        from semcache.wiring.semcache import open_semcache  # noqa: PLC0415 - wiring stands right

        return open_semcache(
            directory=directory_of(directory),
            catalog=catalog,
            settings=settings or Settings(),
            model=model,
            embedder=embedder,
            clock=clock,
            observer=observer,
            responses=responses,
            groundings=groundings,
            ask=ask,
            redact=redact,
            verifier=verifier,
        )

    def warm_up(self, *, tenants: Collection[str] | None = None) -> WarmUp:
        """Load what the first prompts would load; see `PlanCache.warm_up`."""
        return self.cache.warm_up(tenants=tenants)

    def begin_warm_up(self, *, tenants: Collection[str] | None = None) -> None:
        """Do as `warm_up` on a thread of its own; see `PlanCache.begin_warm_up`."""
        self.cache.begin_warm_up(tenants=tenants)

    # Run -----------------------------------------------------------------------------------

    def run(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        allow_writes: bool | None = None,
        threshold: float | None = None,
        answers: Mapping[str, object] | None = None,
    ) -> Answer:
        """Answer `prompt` from the cache, or learn a plan for it first.

        `params`: values that the caller holds already, by name. `allow_writes`: whether operations
        with effect `write` may run; None: yes, but not from a semantic hit. `threshold`: a stricter
        threshold for this prompt. `answers`: what a person has said already, by topic; what a plan
        asks beside it is asked through `ask`, or comes back as `Answer.needs`.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
            InvalidSettings: `threshold` is under the configured one.
            NotActionable, PlanningError, PlanSuspended: there is no plan for it.
            ModelError: a model was needed and cannot answer.
            ExecutionError: the plan stopped.
        """
        job = Job(prompt, tenant, params, allow_writes, threshold, uuid.uuid4().hex)
        start = self._clock.monotonic()
        with self._events.opened(job) as opened:
            chosen = self._finder.choose(job)
            return self._answered(job, chosen, Interview(answers), start, opened)

    def answer(
        self, needs: NeedsInput | str, answers: Mapping[str, object], *, tenant: str = "default"
    ) -> Answer:
        """Go on with a run that waits for answers, and return what comes of it.

        `needs`: what the run came back with, or its token (then with the `tenant`). `answers`: what
        the person said, by topic; of questions left open the run comes back again. What it had
        called before is not called again. `Answer.found` is what the cache has for the prompt now.

        Raises:
            InvalidParameter: nobody waits under that token, an answer will not do, or one is for
                nothing that was asked; the run still waits.
            StoreUnavailable: what waits cannot be read.
            ExecutionError: the plan stopped.
        """
        start = self._clock.monotonic()
        token = needs if isinstance(needs, str) else needs.token
        tenant = tenant if isinstance(needs, str) else needs.tenant
        held, interview = self._suspended.take(tenant, token, answers, catalog=self.catalog)
        job = Job(held.prompt, tenant, None, held.allow_writes, None, held.run)
        with self._events.opened(job) as opened:
            found = self.lookup(held.prompt, tenant=tenant, run=held.run)
            graph = self._intents.of_run(held.run, tenant)
            chosen = Chosen(found, held.plan, planned=held.planned, key=held.key, graph=graph)
            return self._answered(job, chosen, interview, start, opened)

    def checkpoints(self, run: str, *, tenant: str = "default") -> tuple[State, ...]:
        """Return where the program of a run stood after each step, in order; empty if unknown.

        Kept for seven days; the last one tells the error of a step that failed.
        `semcache.execution.state.difference` compares two.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        known = self._runner.checkpoints
        return () if known is None else known.states(tenant, run)

    def resume(
        self,
        run: str,
        *,
        tenant: str = "default",
        checkpoint: int = -1,
        plan: Mapping[str, object] | str | ExecutionPlan | None = None,
        allow_writes: bool = True,
    ) -> Outcome:
        """Go on with the program of a run from one of its checkpoints, as a run of its own.

        `checkpoint`: its place in `checkpoints`; the last by default. `plan`: an edited program
        that has the instruction which is next there; None: the same. The checkpoints of the first
        run stay as they are.

        Raises:
            InvalidInput: there is no such checkpoint, it is the end, or the plan does not fit.
            InvalidPlan, ExecutionError: as `execute`.
            StoreUnavailable: the checkpoints cannot be read.
        """
        job = Job(run, tenant, None, allow_writes, None, run)
        with self._events.open(f"resumed {run}", tenant=tenant) as opened:
            return self._runner.resume(
                job,
                checkpoint,
                plan,
                cache=self.cache,
                catalog=self.catalog,
                observer=self._events.emit,
                run=opened.id,
            )

    def intents(self, run: str, *, tenant: str = "default") -> IntentGraph | None:
        """Return the intents of a run whose plan was made by steps; None if there are none.

        `why` of it leads from an operation back to the goal. Kept for 30 days after planning.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        return self._intents.kept(run, tenant)

    def _answered(
        self, job: Job, chosen: Chosen, interview: Interview, start: float, opened: Open
    ) -> Answer:
        """Run the plan and return the answer, or what must be asked first."""
        ran = self._recovery.run(job, chosen, interview)
        came, chosen = ran.came, ran.chosen
        answer = Answer(
            text=came.text,
            value=came.value if isinstance(came, Outcome) else None,
            found=chosen.found,
            plan=chosen.plan,
            run=(opened.home or self.runs).view(job.run, tenant=job.tenant),
            planned=chosen.planned,
            seconds=self._clock.monotonic() - start,
            nodes=came.nodes if isinstance(came, Outcome) else (),
            intents=ran.intents,
            needs=came if isinstance(came, NeedsInput) else None,
        )
        opened.note(tier=answer.tier, planned=answer.planned)
        opened.gave(answer.text)
        return answer

    def standing(self, at: Node, *, tenant: str) -> Here:
        """Return where code would stand that runs in the node `at`, for tools called outside."""
        return self._events.standing(at, tenant=tenant)

    def open_run(self, name: str, *, tenant: str = "default") -> OpenRun:
        """Return a run to open by `with`, whose tree holds what is run inside."""
        return self._events.open(name, tenant=tenant)

    def workflow(
        self, name: str, work: Callable[P, T], *, tenant: str = "default"
    ) -> Callable[P, T]:
        """Return `work` as a run of its own, whose tree holds what it runs; see `creation`."""
        return workflow(
            name, work, runs=self.runs, clock=self._clock, emit=self._events.emit, tenant=tenant
        )

    # Closeable -------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush and release files; calling it twice is fine."""
        self.cache.close()
        for close in self._closing:
            close()
