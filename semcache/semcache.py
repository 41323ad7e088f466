"""SemCache: a prompt goes in, an answer comes out, and the plan behind it is made once."""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from semcache.binding.bind import bind
from semcache.binding.generalize import generalize
from semcache.cache.flight import Flights
from semcache.cache.found import Found, Hit, Miss
from semcache.cache.plan_cache import PlanCache, Stored
from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.errors import (
    ExecutionError,
    InvalidPlan,
    NormalizationError,
    PlanningError,
    SemCacheError,
)
from semcache.events import Phase, PhaseFinished
from semcache.planners.failures import Failure, FailureMemory
from semcache.plans.codec import adopt
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
)
from semcache.prompts.parameter import by_name
from semcache.prompts.schema import PromptSchema
from semcache.settings import Settings

log = logging.getLogger(__name__)

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
    run: str
    """Id of the run."""
    planned: bool
    """Whether a planner was asked."""
    seconds: float
    """Seconds from the call to the answer."""
    nodes: tuple[NodeResult, ...] = field(default=(), repr=False)
    """What each node did, in order."""

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
            "run": self.run,
            "milliseconds": round(self.seconds * 1000, 3),
            "found": self.found.to_dict(),
            "plan": self.plan.to_dict(),
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
    ) -> None:
        self.cache = cache
        """The plan cache behind it."""
        self.catalog = catalog
        """What plans may call."""
        self._normalizers = tuple(normalizers)
        self._planners = tuple(planners)
        self._engines = dict(engines)
        self._failures = failures
        self._clock = clock
        self._limits = limits
        self._flights = Flights()

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
    ) -> "SemCache":
        """Return a SemCache over `catalog`, its cache kept in `directory` or in memory (None).

        Without a model (here or in `settings`) it runs on rules and the catalog: prompts that they
        cannot settle raise `PlanningError`. No model is loaded until one is needed.

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
        )

    # The five operations -------------------------------------------------------------------

    def normalize(
        self, prompt: str, *, params: Mapping[str, object] | None = None
    ) -> PromptSchema | None:
        """Return the schema of `prompt` in the catalog's words, or None if no normalizer can tell.

        Normalizers are asked in turn, rules first, until one gives a complete schema; else the
        last partial one comes back.

        Raises:
            ModelError: the model behind a normalizer cannot answer.
        """
        best: PromptSchema | None = None
        for normalizer in self._normalizers:
            try:
                schema = normalizer.normalize(prompt, catalog=self.catalog, params=by_name(params))
            except NormalizationError as error:
                log.info("no schema from %s: %s", type(normalizer).__name__, error)
                continue
            if not schema.partial:
                return schema
            best = schema
        return best

    def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        run: str = "",
    ) -> Found:
        """Return what the cache has for `prompt`; see `PlanCache.lookup`."""
        return self.cache.lookup(prompt, tenant=tenant, params=params, schema=schema, run=run)

    def create(
        self,
        prompt: str,
        schema: PromptSchema | None = None,
        *,
        params: Mapping[str, object] | None = None,
        failure: str = "",
    ) -> Planned:
        """Return a new plan for `prompt` from the first planner that can make one.

        Raises:
            NotActionable: the catalog cannot do what was asked.
            PlanningError: no planner could make a valid plan.
            ModelError: the model behind the last planner cannot answer.
        """
        given = by_name(params) or (schema.parameters() if schema is not None else ())
        request = PlanRequest(
            prompt=prompt, schema=schema, catalog=self.catalog, params=given, failure=failure
        )
        refusals: list[PlanningError] = []
        for planner in self._planners:
            try:
                return planner.plan(request)
            except PlanningError as error:
                refusals.append(error)
        raise refusals[-1] if refusals else PlanningError("there is no planner; give SemCache one")

    def store(
        self,
        prompt: str,
        planned: Planned,
        *,
        tenant: str = "default",
        schema: PromptSchema | None = None,
    ) -> Stored:
        """Keep a new plan for prompts like this one; see `PlanCache.store`."""
        return self.cache.store(
            prompt,
            planned.plan,
            params=planned.params,
            tenant=tenant,
            schema=schema,
            planner=planned.planner,
        )

    def execute(self, plan: ExecutionPlan, *, run: str = "", allow_writes: bool = True) -> Outcome:
        """Run a bound plan and return what came out.

        Raises:
            InvalidPlan: the plan is malformed, or no engine runs its format.
            ExecutionError: an operation failed or was refused, or a limit was reached.
        """
        return self._engine(plan).execute(
            plan,
            catalog=self.catalog,
            limits=self._limited(allow_writes=allow_writes),
            clock=self._clock,
            observer=self.cache.emit,
            run=run,
        )

    # Run -----------------------------------------------------------------------------------

    def run(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        allow_writes: bool | None = None,
    ) -> Answer:
        """Answer `prompt` from the cache, or learn a plan for it first.

        `params`: values that the caller holds already, by name. `allow_writes`: whether operations
        with effect `write` may run; None: yes, but not from a semantic hit.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
            NotActionable, PlanningError, PlanSuspended: there is no plan for it.
            ModelError: a model was needed and cannot answer.
            ExecutionError: the plan stopped.
        """
        start = self._clock.monotonic()
        job = _Job(prompt, tenant, params, allow_writes, uuid.uuid4().hex)
        found = self._look(job)
        key = found.trace.template or prompt
        failure = self._failure(tenant, key)
        broken = failure is not None and failure.attempts >= REPLAN_AFTER
        if isinstance(found, Hit) and not broken:
            plan, planned = found.plan, False
        else:
            found, plan, planned = self._learn(job, found, key)
        outcome = self._executed(job, plan, key)
        return Answer(
            text=outcome.text,
            value=outcome.value,
            found=found,
            plan=plan,
            run=job.run,
            planned=planned,
            seconds=self._clock.monotonic() - start,
            nodes=outcome.nodes,
        )

    def _look(self, job: "_Job", schema: PromptSchema | None = None) -> Found:
        """Return what the cache has, but no semantic hit that writes without the caller's leave."""
        found = self.lookup(
            job.prompt, tenant=job.tenant, params=job.params, schema=schema, run=job.run
        )
        if not isinstance(found, Hit) or found.tier != "semantic" or job.allow_writes is not None:
            return found
        writing = [n for n in found.plan.operations() if self.catalog.get(n).effect == "write"]
        if not writing or self.cache.settings.writes_from_semantic:
            return found
        log.info("a semantic hit calls %s, which writes: planned afresh", writing[0])
        return Miss("writes", None, found.trace)

    def _learn(self, job: "_Job", found: Found, key: str) -> tuple[Found, ExecutionPlan, bool]:
        """Plan the prompt, once for all callers that ask the same with other values meanwhile."""
        with self._flights.enter(f"{job.tenant}\0{key}") as waited:
            if waited and isinstance(found, Miss):
                found = self._look(job)
                if isinstance(found, Hit):
                    return found, found.plan, False
            failure = self._failure(job.tenant, key, check=True)
            with self._timed("normalize", job):
                schema = self.normalize(job.prompt, params=job.params)
            if isinstance(found, Miss) and schema is not None and _is_news(schema, found):
                again = self._look(job, schema)
                if isinstance(again, Hit) and again.tier == "schema":
                    return again, again.plan, False
            said = failure.last_error if failure is not None else ""
            return _missed(found), self._make(job, schema, said), True

    def _make(self, job: "_Job", schema: PromptSchema | None, failure: str) -> ExecutionPlan:
        """Plan, store, and bind the prompt's own values, whether storing worked or not."""
        with self._timed("plan", job):
            planned = self.create(job.prompt, schema, params=job.params, failure=failure)
        with self._timed("store", job):
            self.store(job.prompt, planned, tenant=job.tenant, schema=schema)
        with self._timed("bind", job):
            template = generalize(planned.plan.to_dict(), planned.params)
            own = bind(template, {p.name: p.value for p in planned.params})
            return adopt(own.plan, own.data)

    def _executed(self, job: "_Job", plan: ExecutionPlan, key: str) -> Outcome:
        try:
            with self._timed("execute", job):
                outcome = self.execute(
                    plan, run=job.run, allow_writes=job.allow_writes is not False
                )
        except ExecutionError as error:
            with self.cache.guarded(job.tenant):
                self._failures.failed(job.tenant, key, str(error))
            raise
        with self.cache.guarded(job.tenant):
            self._failures.succeeded(job.tenant, key)
        return outcome

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
            yield
        except SemCacheError as error:
            failed = type(error).__name__
            raise
        finally:
            took = self._clock.monotonic() - start
            self.cache.emit(
                PhaseFinished(
                    tenant=job.tenant, run=job.run, phase=phase, seconds=took, error=failed
                )
            )

    # Closing -------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush and release files; calling it twice is fine."""
        self.cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of `run`."""

    prompt: str
    tenant: str
    params: Mapping[str, object] | None
    allow_writes: bool | None
    run: str


def _is_news(schema: PromptSchema, found: Miss) -> bool:
    """Return whether the schema says more than the one that the lookup had from the rules."""
    had_complete = bool(found.trace.key) and not found.trace.unexplained
    return not schema.partial and not had_complete


def _missed(found: Found) -> Found:
    return found if isinstance(found, Miss) else Miss("failed", None, found.trace)
