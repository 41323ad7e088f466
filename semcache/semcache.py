"""SemCache: a prompt goes in, an answer comes out, and the plan behind it is made once."""

import logging
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from semcache.binding.bind import bind
from semcache.binding.generalize import generalize
from semcache.cache.found import Found, Hit, Miss
from semcache.cache.plan_cache import PlanCache
from semcache.cache.responses import Responses
from semcache.cache.writer import Stored
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import NeedsInput, Question
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounded, Grounding
from semcache.errors import (
    BindingError,
    ExecutionError,
    ExpressionError,
    InputNeeded,
    InvalidPlan,
    InvalidPrompt,
    ModelError,
    NormalizationError,
    NotActionable,
    OperationRefused,
    PlanningError,
    Referred,
    SemCacheError,
    StepLimitExceeded,
)
from semcache.events import Event, Phase, PhaseFinished
from semcache.planners.blame import blame
from semcache.planners.failures import Failure, FailureMemory
from semcache.planners.grounding import Groundings
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.intents import serves
from semcache.planners.progress import IntentLog, Progress, fresh
from semcache.planners.questions import Ask, Interview, asks, conduct
from semcache.planners.waiting import Suspended, Waiting
from semcache.plans.codec import adopt, decode
from semcache.plans.plan import ExecutionPlan
from semcache.ports import (
    Clock,
    Embedder,
    Engine,
    Limits,
    Model,
    NodeResult,
    Normalizer,
    Observer,
    Outcome,
    Planned,
    Planner,
    PlanRequest,
    Verifier,
)
from semcache.prompts.parameter import by_name
from semcache.prompts.redaction import Redact
from semcache.prompts.schema import PromptSchema
from semcache.prompts.text import check_prompt
from semcache.reflection import Attempt, Failed, Reflection, Verdict
from semcache.runs.creation import workflow
from semcache.runs.here import Here, Open, OpenRun, here
from semcache.runs.here import node as open_node
from semcache.runs.node import Node
from semcache.runs.recorder import Runs
from semcache.runs.redacted import redacted_event, redacted_json
from semcache.runs.redaction import kept
from semcache.runs.tools import Introspection
from semcache.runs.tree import Run
from semcache.settings import Settings

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

REPLAN_AFTER = 2
"""Failures in a row after which a cached plan is made anew: one may be the values' fault."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run gives."""

    text: str
    """The answer for a person."""
    value: Json
    """The answer as the plan gave it."""
    found: Found
    """What the lookup found: a hit, or the miss that led to planning."""
    plan: ExecutionPlan
    """The plan that was executed, values bound."""
    run: Run = field(repr=False)
    """The run as a tree: print it, or look at `run.id` and its nodes."""
    planned: bool
    """Whether a planner was asked."""
    seconds: float
    """Seconds from the call to the answer."""
    nodes: tuple[NodeResult, ...] = field(default=(), repr=False)
    """What each node did, in order."""
    intents: IntentGraph | None = field(default=None, repr=False)
    """The goal, its steps and how far each came; None if the plan names no intents."""
    needs: NeedsInput | None = None
    """What a person must be asked before there is a value: `text` has the questions, `value` is
    None, and `SemCache.answer` goes on. None: the run came to its end."""

    @property
    def tier(self) -> str:
        """Where the plan came from: `template`, `schema`, `semantic`, or `planned`."""
        return self.found.tier if isinstance(self.found, Hit) else "planned"

    def to_dict(self) -> JsonObject:
        """Return the answer as JSON."""
        return {
            "text": self.text,
            "value": self.value,
            "tier": self.tier,
            "planned": self.planned,
            "run": self.run.id,
            "milliseconds": round(self.seconds * 1000, 3),
            "found": self.found.to_dict(),
            "plan": self.plan.to_dict(),
            "intents": None if self.intents is None else self.intents.to_json(),
            "needs": None if self.needs is None else self.needs.to_json(),
        }


class SemCache:
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
        ask: Ask | None = None,
        waiting: Waiting | None = None,
        runs: Runs | None = None,
        intents: IntentLog | None = None,
        reflection: Reflection | None = None,
        closing: Sequence[Callable[[], None]] = (),
        chance: Callable[[], float] | None = None,
    ) -> None:
        """Take the parts. `chance` gives numbers in [0, 1); None: seeded alike in each process."""
        self.cache = cache
        """The plan cache behind it."""
        self.responses = responses
        """What the model answered, by what it was asked; None: nothing is remembered."""
        self.catalog = catalog
        """What plans may call."""
        self.runs = runs or Runs()
        """The latest runs of each tenant, as trees."""
        self.reflection = reflection or Reflection(clock=clock, enabled=False)
        """What looks at plans that fail, and its history."""
        self.introspection = Introspection(has=None if responses is None else responses.has)
        """The tools by which agents look at the run that they stand in, and ask for others."""
        self._normalizers = tuple(normalizers)
        self._planners = tuple(planners)
        self._engines = dict(engines)
        self._failures = failures
        self._clock = clock
        self._limits = limits
        self._groundings = groundings
        self._ask = ask
        self._waiting = waiting
        self._intents = intents
        self._closing = tuple(closing)
        self._random = chance or random.Random(0).random  # noqa: S311 - a sample, not a secret

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
        from semcache.wiring import open_semcache  # noqa: PLC0415 - wiring stands right of us

        return open_semcache(
            directory=None if directory is None else Path(directory),
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

    # The five operations -------------------------------------------------------------------

    def normalize(
        self, prompt: str, *, params: Mapping[str, object] | None = None
    ) -> PromptSchema | None:
        """Return the schema of `prompt` in the catalog's words, or None if no normalizer can tell.

        Normalizers are asked in turn, rules first, until one gives a complete schema; else the
        last partial one comes back.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
            ModelError: the model behind a normalizer cannot answer.
        """
        text = check_prompt(prompt, max_chars=self.cache.settings.max_prompt_chars)
        given = by_name(params)
        best: PromptSchema | None = None
        for normalizer in self._normalizers:
            try:
                schema = normalizer.normalize(text, catalog=self.catalog, params=given)
            except (NormalizationError, InvalidPrompt) as error:  # a normalizer may take less text
                said = self.cache.redacted(str(error), prompt=text, params=params)
                log.info("no schema from %s: %s", type(normalizer).__name__, said)
                continue
            if not schema.partial:
                return schema
            best = schema
        return best

    def ground(self, prompt: str) -> Grounded | None:
        """Return the use case that `prompt` is found to be, or None; no match is not a failure.

        Raises:
            InvalidPrompt: the prompt cannot be used.
            EmbeddingError: there are groundings, and the embedder cannot answer.
        """
        if self._groundings is None:
            return None
        text = check_prompt(prompt, max_chars=self.cache.settings.max_prompt_chars)
        return self._groundings.match(self.cache.redacted(text, prompt=text))

    def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        threshold: float | None = None,
        run: str = "",
    ) -> Found:
        """Return what the cache has for `prompt`; see `PlanCache.lookup`."""
        return self.cache.lookup(
            prompt,
            tenant=tenant,
            params=params,
            schema=schema,
            grounding=_identity(self.ground(prompt)),
            threshold=threshold,
            run=run,
        )

    def create(
        self,
        prompt: str,
        schema: PromptSchema | None = None,
        *,
        params: Mapping[str, object] | None = None,
        failure: str = "",
        tenant: str = "default",
    ) -> Planned:
        """Return a new plan for `prompt` from the first planner that can make one.

        What each of the others said is in the message of the error.

        Raises:
            NotActionable: the catalog cannot do what was asked.
            Referred: a person must say which operation is meant, or a value.
            PlanningError: no planner could make a valid plan.
            ModelError: the model behind the last planner cannot answer.
        """
        own = by_name(params)
        given = own or (schema.parameters() if schema is not None else ())
        request = PlanRequest(
            prompt=prompt,
            schema=schema,
            catalog=self.catalog,
            params=given,
            params_read=not own,
            failure=failure,
            grounding=self.ground(prompt),
            tenant=tenant,
        )
        refusals: list[PlanningError] = []
        for planner in self._planners:
            try:
                return planner.plan(request)
            except PlanningError as error:
                refusals.append(error)
        raise _refused(refusals)

    def store(
        self,
        prompt: str,
        planned: Planned,
        *,
        tenant: str = "default",
        schema: PromptSchema | None = None,
        cost_s: float | None = None,
    ) -> Stored:
        """Keep a new plan for prompts like this one; see `PlanCache.store`."""
        return self.cache.store(
            prompt,
            planned.plan,
            params=planned.params,
            tenant=tenant,
            schema=schema,
            grounding=_identity(self.ground(prompt)),
            planner=planned.planner,
            cost_s=cost_s,
        )

    def execute(
        self,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        run: str = "",
        allow_writes: bool = True,
        answers: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Run a bound plan and return what came out.

        `plan`: a JSON object, its text, or a plan of any format. `answers`: what a person said, by
        the topic that the plan asks for.

        Raises:
            InvalidPlan: the plan is malformed, or no engine runs its format.
            InvalidParameter: an answer will not do.
            InputNeeded: the plan asks what nobody answers.
            ExecutionError: an operation failed or was refused, or a limit was reached.
        """
        decoded = decode(plan)
        came = self._conducted(
            decoded, Interview(answers), self._emit, run=run, allow_writes=allow_writes
        )
        if isinstance(came, Outcome):
            return came
        asked = ", ".join(repr(question.topic) for question in came)
        raise InputNeeded(
            f"the plan asks for {asked}; give `answers`, or an `ask` when the cache is opened"
        )

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
        job = _Job(prompt, tenant, params, allow_writes, threshold, uuid.uuid4().hex)
        start = self._clock.monotonic()
        with self._opened(job) as opened:
            return self._finished(job, self._choose(job), Interview(answers), start, opened)

    def _choose(self, job: "_Job") -> "_Chosen":
        """Return the plan to run: a hit that did not fail of late, else a new one."""
        found = self._look(job)
        failure = self._failure(job.tenant, _failing_key(found))
        broken = failure is not None and failure.attempts >= REPLAN_AFTER
        if not isinstance(found, Hit) or broken:
            return self._learn(job, found)
        return self._explored(job, found) if self._explores(found) else _Chosen.of(found)

    def _explores(self, hit: Hit) -> bool:
        share = self.cache.settings.explore
        return hit.tier == "semantic" and share > 0 and self._random() < share

    def _explored(self, job: "_Job", hit: Hit) -> "_Chosen":
        """Plan a prompt that hit all the same, so that labels come from hits too."""
        try:
            chosen = self._learn(job, Miss("explored", None, hit.trace))
        except (PlanningError, ModelError) as error:
            said = self.cache.redacted(str(error), prompt=job.prompt, params=job.params)
            log.info("a hit was not explored: %s", said)
            return _Chosen.of(hit)
        if chosen.planned:
            self.cache.audit(hit, chosen.plan)
        return chosen

    def _opened(self, job: "_Job") -> OpenRun:
        given = None if job.params is None else {"params": job.params}
        return OpenRun(
            job.prompt,
            home=self.runs,
            emit=self._emit,
            clock=self._clock,
            tenant=job.tenant,
            id=job.run,
            given=given,
        )

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
        held = _waiting(self._waiting).get(tenant, token)
        interview = Interview(answers, answers=held.answers, made=held.made)
        interview.check(held.questions, self.catalog)
        _waiting(self._waiting).take(tenant, token)
        job = _Job(held.prompt, tenant, None, held.allow_writes, None, held.run)
        with self._opened(job) as opened:
            found = self.lookup(held.prompt, tenant=tenant, run=held.run)
            graph = None
            with self.cache.guarded(tenant):
                graph = self._intents.get(tenant, held.run) if self._intents is not None else None
            chosen = _Chosen(found, held.plan, planned=held.planned, key=held.key, graph=graph)
            return self._finished(job, chosen, interview, start, opened)

    def intents(self, run: str, *, tenant: str = "default") -> IntentGraph | None:
        """Return the intents of a run whose plan was made by steps; None if there are none.

        `why` of it leads from an operation back to the goal. Kept for 30 days after planning.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        return None if self._intents is None else self._intents.get(tenant, run)

    def _finished(
        self, job: "_Job", chosen: "_Chosen", interview: Interview, start: float, opened: Open
    ) -> Answer:
        """Run the plan and return the answer, or what must be asked first."""
        came, chosen, intents = self._healed(job, chosen, interview)
        needs = came if isinstance(came, NeedsInput) else None
        answer = Answer(
            text=came.text,
            value=came.value if isinstance(came, Outcome) else None,
            found=chosen.found,
            plan=chosen.plan,
            run=(opened.home or self.runs).view(job.run, tenant=job.tenant),
            planned=chosen.planned,
            seconds=self._clock.monotonic() - start,
            nodes=came.nodes if isinstance(came, Outcome) else (),
            intents=intents,
            needs=needs,
        )
        opened.note(tier=answer.tier, planned=answer.planned)
        opened.gave(answer.text)
        return answer

    def _graph(self, job: "_Job", chosen: "_Chosen") -> IntentGraph | None:
        """Return the intents of a plan, as they were kept when it was made; None if it has none."""
        if chosen.graph is not None or self._intents is None or not chosen.entry:
            return chosen.graph
        if not serves(chosen.plan):
            return None
        with self.cache.guarded(job.tenant):
            kept = self._intents.get(job.tenant, chosen.entry)
            return None if kept is None else fresh(kept, chosen.plan, job.prompt)
        return None

    def _kept(self, job: "_Job", chosen: "_Chosen", graph: IntentGraph | None) -> None:
        """Keep the intents of a run, of a new plan also for its later runs; and learn from them."""
        if graph is None or self._intents is None:
            return
        with self.cache.guarded(job.tenant):
            if chosen.planned:
                self._intents.keep(job.tenant, job.run, graph)
                if chosen.entry:
                    self._intents.keep(job.tenant, chosen.entry, graph)
            if chosen.planned or graph.goal.status == "failed":
                self._intents.learn(job.tenant, graph, self.catalog)

    def _look(self, job: "_Job", schema: PromptSchema | None = None) -> Found:
        """Return what the cache has, but no semantic hit that writes without the caller's leave."""
        with open_node("lookup") as opened:
            found = self.lookup(
                job.prompt,
                tenant=job.tenant,
                params=job.params,
                schema=schema,
                threshold=job.threshold,
                run=job.run,
            )
            opened.note(**_said(found))
        if not isinstance(found, Hit) or found.tier != "semantic" or job.allow_writes is not None:
            return found
        writing = [n for n in found.plan.operations() if self.catalog.get(n).effect == "write"]
        if not writing or self.cache.settings.writes_from_semantic:
            return found
        log.info("a semantic hit calls %s, which writes: planned afresh", writing[0])
        return Miss("writes", None, found.trace)

    def _learn(self, job: "_Job", found: Found) -> "_Chosen":
        """Plan the prompt, once for all callers that ask the same with other values meanwhile."""
        with self.cache.planning(found) as again:
            if again and isinstance(found, Miss):
                found = self._look(job)
                if isinstance(found, Hit):
                    return _Chosen.of(found)
            failure = self._failure(job.tenant, _failing_key(found), check=True)
            with self._timed("normalize", job):
                schema = self.normalize(job.prompt, params=job.params)
            if isinstance(found, Miss) and schema is not None and _is_news(schema, found):
                by_schema = self._look(job, schema)
                if isinstance(by_schema, Hit) and by_schema.tier == "schema":
                    return _Chosen.of(by_schema)
            said = failure.last_error if failure is not None else ""
            return self._make(job, found, schema, said)

    def _make(
        self, job: "_Job", found: Found, schema: PromptSchema | None, failure: str
    ) -> "_Chosen":
        """Plan, store, and bind the prompt's own values, whether storing worked or not."""
        start = self._clock.monotonic()
        with self._timed("plan", job):
            planned = self.create(
                job.prompt, schema, params=job.params, failure=failure, tenant=job.tenant
            )
        cost_s = self._clock.monotonic() - start
        try:
            with self._timed("store", job):
                stored = self.store(
                    job.prompt, planned, tenant=job.tenant, schema=schema, cost_s=cost_s
                )
            with self._timed("bind", job):
                plan = self._bound(planned)
        except BindingError as error:
            what = f"the plan made for {job.prompt[:80]!r} cannot take its values: {error}"
            raise PlanningError(what) from error
        key = _entry_key(stored.key, stored.id) if stored else _failing_key(_missed(found))
        entry = stored.id if stored else ""
        graph = None if planned.intents is None else IntentGraph.from_json(planned.intents)
        return _Chosen(_missed(found), plan, planned=True, key=key, entry=entry, graph=graph)

    def _bound(self, planned: Planned) -> ExecutionPlan:
        # With the schemas, as the cache does it: "2024" is 2024 where an integer is wanted.
        schemas = {operation.name: operation.input_schema for operation in self.catalog}
        template = generalize(planned.plan.to_dict(), planned.params, schemas=schemas)
        own = bind(template, {p.name: p.value for p in planned.params})
        return adopt(own.plan, own.data)

    def _healed(
        self, job: "_Job", chosen: "_Chosen", interview: Interview
    ) -> tuple[Outcome | NeedsInput, "_Chosen", IntentGraph | None]:
        """Run the plan; where reflection is on, again or another one, if the first one fails."""
        current, known = chosen, set[int]()
        progress = Progress(None, self._emit)

        def work(attempt: Attempt) -> Outcome | NeedsInput:
            nonlocal current, progress
            if attempt.verdict is not None and attempt.verdict.decision == "plan":
                current = self._replanned(job, current, attempt)
            progress = Progress(self._graph(job, current), self._emit)
            try:
                return self._executed(job, current, interview, progress)
            finally:
                self._kept(job, current, progress.graph)

        def judge(failed: Failed) -> Verdict:
            if id(failed.error) in known:
                return Verdict(retry=False, reason="The plan was made anew, and is the same")
            known.add(id(failed.error))
            return _judged(failed, current.plan, self._given(job, failed), self._shown)

        try:
            came = self.reflection.step("execute", work, level="run", judge=judge)
        except ExecutionError as error:
            said = self.cache.redacted(str(error), prompt=job.prompt, params=job.params)
            with self.cache.guarded(job.tenant):
                self._failures.failed(job.tenant, current.key, said)
            raise
        return came, current, progress.graph

    def _given(self, job: "_Job", failed: Failed) -> Json:
        """Return what the operation that failed was called with, as far as the tree has it."""
        name = failed.error.node if isinstance(failed.error, ExecutionError) else ""
        standing = here()
        home = standing.home if standing is not None else self.runs
        called = home.view(job.run, tenant=job.tenant).named(name) if name else ()
        return called[-1].input if called else None

    def _shown(self, value: Json) -> Json:
        """Return `value` as run trees have it."""
        redact = self.cache.redact
        return kept(value if redact is None else redacted_json(value, redact))

    def _replanned(self, job: "_Job", broken: "_Chosen", attempt: Attempt) -> "_Chosen":
        """Return a new plan in the place of one that failed, which is taken back.

        A semantic hit is vetoed for the prompt, and any other plan is removed.

        Raises:
            ExecutionError: the new plan is the one that failed.
            PlanningError: there is no other plan.
        """
        if isinstance(broken.found, Hit) and not broken.planned:
            self.cache.feedback(broken.found, right=False)
        elif broken.entry:
            self.cache.invalidate(tenant=job.tenant, id=broken.entry)
        with self._timed("normalize", job):
            schema = self.normalize(job.prompt, params=job.params)
        again = self._make(job, broken.found, schema, str(attempt.error))
        if attempt.error is not None and again.plan.to_dict() == broken.plan.to_dict():
            raise attempt.error
        return again

    def _executed(
        self, job: "_Job", chosen: "_Chosen", interview: Interview, progress: Progress
    ) -> Outcome | NeedsInput:
        allow = job.allow_writes is not False
        try:
            with self._timed("execute", job):
                came = self._conducted(
                    chosen.plan, interview, progress, run=job.run, allow_writes=allow
                )
        except _FAULTS:
            if allow and isinstance(chosen.found, Hit):
                self.cache.judged(chosen.found, right=False)
            raise
        if not isinstance(came, Outcome):
            progress.suspended(came)
            return self._suspended(job, chosen, interview, came)
        with self.cache.guarded(job.tenant):
            self._failures.succeeded(job.tenant, chosen.key)
        return came

    def _conducted(
        self,
        plan: ExecutionPlan,
        interview: Interview,
        observer: Observer,
        *,
        run: str,
        allow_writes: bool,
    ) -> Outcome | tuple[Question, ...]:
        """Run a plan; return what came out, or the questions that nobody is there to answer."""
        engine = self._engine(plan)

        def execute(catalog: Catalog) -> Outcome:
            return engine.execute(
                plan,
                catalog=catalog,
                limits=self._limited(allow_writes=allow_writes),
                clock=self._clock,
                observer=observer,
                run=run,
            )

        if not asks(plan):
            return execute(self.catalog)
        return conduct(plan, interview, catalog=self.catalog, execute=execute, ask=self._ask)

    def _suspended(
        self,
        job: "_Job",
        chosen: "_Chosen",
        interview: Interview,
        questions: tuple[Question, ...],
    ) -> NeedsInput:
        """Keep a run that waits for answers."""
        held = Suspended(
            prompt=job.prompt,
            run=job.run,
            plan=chosen.plan,
            key=chosen.key,
            planned=chosen.planned,
            allow_writes=job.allow_writes is not False,
            questions=tuple(question.given for question in questions),
            answers=interview.answers,
            made=interview.made(self.catalog),
        )
        return _waiting(self._waiting).keep(job.tenant, held, questions)

    def _failure(self, tenant: str, key: str, *, check: bool = False) -> Failure | None:
        """Return how the plan failed lately; `check` raises if it is suspended."""
        failure = None
        with self.cache.guarded(tenant):
            failure = self._failures.get(tenant, key)
            if failure is not None and check:
                self._failures.check(tenant, key)
        return failure

    def _limited(self, *, allow_writes: bool) -> Limits:
        return replace(self._limits, allow_writes=allow_writes and self._limits.allow_writes)

    def _engine(self, plan: ExecutionPlan) -> Engine:
        engine = self._engines.get(plan.format)
        if engine is None:
            known = ", ".join(sorted(self._engines)) or "none"
            raise InvalidPlan(f"no engine runs plans of the format {plan.format!r}; known: {known}")
        return engine

    @contextmanager
    def _timed(self, phase: Phase, job: "_Job") -> Iterator[None]:
        start, failed = self._clock.monotonic(), ""
        try:
            if phase == "execute":  # its attempts are nodes already
                yield
            else:
                with open_node(phase):
                    yield
        except SemCacheError as error:
            failed = type(error).__name__
            raise
        finally:
            took = self._clock.monotonic() - start
            self._emit(
                PhaseFinished(
                    tenant=job.tenant, run=job.run, phase=phase, seconds=took, error=failed
                )
            )

    def _emit(self, event: Event) -> None:
        if self.cache.redact is not None:
            event = redacted_event(event, self.cache.redact)
        self.runs(event)
        self.cache.emit(event)

    def standing(self, at: Node, *, tenant: str) -> Here:
        """Return where code would stand that runs in the node `at`, for tools called outside."""
        above = sum(node.kind == "run" for node in (at, *at.above()))
        root = next((node for node in reversed(tuple(at.above()))), at)
        return Here(
            tree=root.id,
            run=at.run,
            node=at.id,
            tenant=tenant,
            depth=at.depth,
            runs=above,
            home=self.runs,
            emit=self._emit,
            clock=self._clock,
            writes=[],
        )

    def open_run(self, name: str, *, tenant: str = "default") -> OpenRun:
        """Return a run to open by `with`, whose tree holds what is run inside."""
        return OpenRun(name, home=self.runs, emit=self._emit, clock=self._clock, tenant=tenant)

    def workflow(
        self, name: str, work: Callable[P, T], *, tenant: str = "default"
    ) -> Callable[P, T]:
        """Return `work` as a run of its own, whose tree holds what it runs; see `creation`."""
        return workflow(
            name, work, runs=self.runs, clock=self._clock, emit=self._emit, tenant=tenant
        )

    # Closing -------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush and release files; calling it twice is fine."""
        self.cache.close()
        for close in self._closing:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_FAULTS = (ExpressionError, StepLimitExceeded, OperationRefused)
"""What a plan does that is not the plan of its prompt; an operation may fail for any reason."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of `run`."""

    prompt: str
    tenant: str
    params: Mapping[str, object] | None
    allow_writes: bool | None
    threshold: float | None
    run: str


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The plan that a run executes, and how it was come by."""

    found: Found
    plan: ExecutionPlan
    planned: bool
    key: str
    """What its failures are remembered by."""
    entry: str = ""
    """Id of the entry that has it; empty if none does."""
    graph: IntentGraph | None = None
    """The intents that it serves, if they are at hand."""

    @classmethod
    def of(cls, hit: Hit) -> "_Chosen":
        return cls(hit, hit.plan, planned=False, key=_failing_key(hit), entry=hit.entry)


def _refused(refusals: Sequence[PlanningError]) -> PlanningError:
    """Return what all planners said as one error, of the kind that helps the caller most."""
    if len(refusals) < 2:
        return refusals[0] if refusals else PlanningError("there is no planner; give SemCache one")
    said = "; ".join(dict.fromkeys(map(str, refusals)))
    for one in reversed(refusals):
        if isinstance(one, Referred):
            return Referred(said, questions=one.questions)
    unable = any(isinstance(one, NotActionable) for one in refusals)
    return NotActionable(said) if unable else PlanningError(said)


def _waiting(waiting: Waiting | None) -> Waiting:
    if waiting is None:
        raise InputNeeded(
            "the plan asks a person, and this SemCache keeps no runs that wait; give it an `ask`, "
            "or a `waiting`"
        )
    return waiting


def _failing_key(found: Found) -> str:
    """Return what failures are remembered by: the entry, or the prompt where there is none.

    Not the template text: the first plan for a prompt teaches values, and so changes it.
    """
    if isinstance(found, Hit):
        return _entry_key(found.key, found.entry)
    return found.trace.template or found.trace.prompt


def _entry_key(label: str, entry: str) -> str:
    return f"{label} ({entry[:12]})"


def _is_news(schema: PromptSchema, found: Miss) -> bool:
    """Return whether the schema says more than the one that the lookup had from the rules."""
    had_complete = bool(found.trace.key) and not found.trace.unexplained
    return not schema.partial and not had_complete


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


def _said(found: Found) -> JsonObject:
    """Return what a lookup came to, for its node."""
    if isinstance(found, Hit):
        return {"tier": found.tier, "key": found.key}
    return {"reason": found.reason}


def _identity(grounded: Grounded | None) -> str:
    return "" if grounded is None else grounded.identity


def _missed(found: Found) -> Found:
    return found if isinstance(found, Miss) else Miss("failed", None, found.trace)
