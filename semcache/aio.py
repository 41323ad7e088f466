"""The same surface for async callers: calls run in worker threads and never block the loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from semcache.answering.answer import Answer
from semcache.binding.volatile import Ignore
from semcache.cache.corrections import Judgment, Removed
from semcache.cache.entry import Entry
from semcache.cache.found import Found, Hit
from semcache.cache.plan_cache import PlanCache
from semcache.cache.statistics import Statistics
from semcache.cache.writer import Stored
from semcache.catalog.builtin import NeedsInput
from semcache.catalog.grounding import Grounded
from semcache.errors import StoreUnavailable
from semcache.matching.evidence import Evidence
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.plans.codec import PlanSource
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Outcome, Planned
from semcache.prompts.learned import LearnedValues
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema
from semcache.runs.here import LOOP
from semcache.semcache import SemCache

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 16
"""Threads of one pool; calls beyond that wait their turn without blocking the loop."""


class _Door:
    """Worker threads over something that closes: what both classes below are."""

    def __init__(self, behind: PlanCache | SemCache, workers: int) -> None:
        self._behind = behind
        # A pool of its own, so that a burst here cannot starve the loop's default one.
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="semcache")

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` returns, run in a worker with the caller's context variables.

        Raises:
            StoreUnavailable: this was closed.
        """
        loop, context = asyncio.get_running_loop(), copy_context()
        context.run(LOOP.set, loop)
        try:
            running = loop.run_in_executor(
                self._pool, partial(context.run, function, *args, **kwargs)
            )
        except RuntimeError as error:
            raise StoreUnavailable("the cache was closed; open it again") from error
        return await running

    async def close(self) -> None:
        """Wait for what runs, flush and release; calling it twice is fine."""
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._pool.shutdown()
        self._behind.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncPlanCache(_Door):
    """A `PlanCache` for async callers. Closeable it closes the cache."""

    def __init__(self, cache: PlanCache, *, workers: int = WORKERS) -> None:
        super().__init__(cache, workers)
        self.cache = cache
        """The cache behind it."""

    async def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return a hit or a miss; see `PlanCache.lookup`."""
        return await self._call(
            self.cache.lookup,
            prompt,
            tenant=tenant,
            params=params,
            schema=schema,
            grounding=grounding,
            threshold=threshold,
            run=run,
            what_if=what_if,
        )

    async def store(
        self,
        prompt: str,
        plan: PlanSource,
        *,
        params: Mapping[str, object] | Sequence[Parameter] | None = None,
        tenant: str = "default",
        schema: PromptSchema | None = None,
        grounding: str = "",
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
        ignore: Ignore = (),
    ) -> Stored:
        """Keep a plan; see `PlanCache.store`."""
        return await self._call(
            self.cache.store,
            prompt,
            plan,
            params=params,
            tenant=tenant,
            schema=schema,
            grounding=grounding,
            tags=tags,
            planner=planner,
            cost_s=cost_s,
            ignore=ignore,
        )

    async def feedback(self, found: Found, *, right: bool) -> Judgment:
        """Take a caller's word on a hit; see `PlanCache.feedback`."""
        return await self._call(self.cache.feedback, found, right=right)

    async def audit(self, hit: Hit, plan: PlanSource) -> bool:
        """Take in the plan made for a prompt although it hit; see `PlanCache.audit`."""
        return await self._call(self.cache.audit, hit, plan)

    async def judged(self, hit: Hit, *, right: bool) -> None:
        """Let the risk model know how a hit turned out; see `PlanCache.judged`."""
        await self._call(self.cache.judged, hit, right=right)

    async def verified(self) -> None:
        """Return once the verifier has seen what waits for it; see `PlanCache.verified`."""
        await self._call(self.cache.verified)

    async def invalidate(
        self,
        *,
        tenant: str = "default",
        id: str | None = None,  # noqa: A002 - the word of the entry
        tag: str | None = None,
        operation: str | None = None,
        key: str | None = None,
    ) -> Removed:
        """Remove what is named; see `PlanCache.invalidate`."""
        return await self._call(
            self.cache.invalidate, tenant=tenant, id=id, tag=tag, operation=operation, key=key
        )

    async def remove_expired(self, *, tenant: str = "default") -> int:
        """Remove expired entries; see `PlanCache.remove_expired`."""
        return await self._call(self.cache.remove_expired, tenant=tenant)

    async def clear(self, *, tenant: str | None = None) -> Removed:
        """Remove everything; see `PlanCache.clear`."""
        return await self._call(self.cache.clear, tenant=tenant)

    async def entries(self, *, tenant: str = "default") -> tuple[Entry, ...]:
        """Return the tenant's entries; see `PlanCache.entries`."""
        return await self._call(self.cache.entries, tenant=tenant)

    async def tenants(self) -> tuple[str, ...]:
        """Return the tenants that have entries; see `PlanCache.tenants`."""
        return await self._call(self.cache.tenants)

    async def stats(self, *, tenant: str = "default") -> Statistics:
        """Return the tenant's counts; see `PlanCache.stats`."""
        return await self._call(self.cache.stats, tenant=tenant)

    async def export(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's entries to a file; see `PlanCache.export`."""
        return await self._call(self.cache.export, path, tenant=tenant)

    async def import_(self, path: str | Path, *, tenant: str = "default") -> int:
        """Keep the entries of a file; see `PlanCache.import_`."""
        return await self._call(self.cache.import_, path, tenant=tenant)

    async def evidence(self, *, tenant: str = "default") -> Evidence:
        """Return what the tenant's labels said; see `PlanCache.evidence`."""
        return await self._call(self.cache.evidence, tenant=tenant)

    async def export_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's evidence to a file; see `PlanCache.export_evidence`."""
        return await self._call(self.cache.export_evidence, path, tenant=tenant)

    async def import_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Add the evidence of a file; see `PlanCache.import_evidence`."""
        return await self._call(self.cache.import_evidence, path, tenant=tenant)

    async def learned(self, *, tenant: str = "default") -> LearnedValues:
        """Return the values that the tenant's plans taught; see `PlanCache.learned`."""
        return await self._call(self.cache.learned, tenant=tenant)

    async def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return a text as it may be written down; see `PlanCache.redacted`."""
        return await self._call(self.cache.redacted, text, prompt=prompt, params=params)

    async def flush(self) -> None:
        """Write counts that are kept in memory; see `PlanCache.flush`."""
        await self._call(self.cache.flush)


class AsyncSemCache(_Door):
    """A `SemCache` for async callers. Closeable it closes the cache."""

    def __init__(self, semcache: SemCache, *, workers: int = WORKERS) -> None:
        super().__init__(semcache, workers)
        self.semcache = semcache
        """The SemCache behind it."""

    async def normalize(
        self, prompt: str, *, params: Mapping[str, object] | None = None
    ) -> PromptSchema | None:
        """Return the schema of a prompt; see `SemCache.normalize`."""
        return await self._call(self.semcache.normalize, prompt, params=params)

    async def ground(self, prompt: str) -> Grounded | None:
        """Return the use case that a prompt is; see `SemCache.ground`."""
        return await self._call(self.semcache.ground, prompt)

    async def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return a hit or a miss; see `SemCache.lookup`."""
        return await self._call(
            self.semcache.lookup,
            prompt,
            tenant=tenant,
            params=params,
            schema=schema,
            threshold=threshold,
            run=run,
            what_if=what_if,
        )

    async def create(
        self,
        prompt: str,
        schema: PromptSchema | None = None,
        *,
        params: Mapping[str, object] | None = None,
        failure: str = "",
        tenant: str = "default",
    ) -> Planned:
        """Return a new plan; see `SemCache.create`."""
        return await self._call(
            self.semcache.create, prompt, schema, params=params, failure=failure, tenant=tenant
        )

    async def store(
        self,
        prompt: str,
        planned: Planned,
        *,
        tenant: str = "default",
        schema: PromptSchema | None = None,
        cost_s: float | None = None,
    ) -> Stored:
        """Keep a new plan; see `SemCache.store`."""
        return await self._call(
            self.semcache.store, prompt, planned, tenant=tenant, schema=schema, cost_s=cost_s
        )

    async def execute(
        self,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        run: str = "",
        allow_writes: bool = True,
        answers: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Run a bound plan; see `SemCache.execute`."""
        return await self._call(
            self.semcache.execute, plan, run=run, allow_writes=allow_writes, answers=answers
        )

    async def run(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        allow_writes: bool | None = None,
        threshold: float | None = None,
        answers: Mapping[str, object] | None = None,
    ) -> Answer:
        """Answer a prompt; see `SemCache.run`."""
        return await self._call(
            self.semcache.run,
            prompt,
            tenant=tenant,
            params=params,
            allow_writes=allow_writes,
            threshold=threshold,
            answers=answers,
        )

    async def answer(
        self, needs: NeedsInput | str, answers: Mapping[str, object], *, tenant: str = "default"
    ) -> Answer:
        """Go on with a run that waits for answers; see `SemCache.answer`."""
        return await self._call(self.semcache.answer, needs, answers, tenant=tenant)

    async def intents(self, run: str, *, tenant: str = "default") -> IntentGraph | None:
        """Return the intents of a run; see `SemCache.intents`."""
        return await self._call(self.semcache.intents, run, tenant=tenant)
