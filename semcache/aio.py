"""The same surface for async callers: calls run in worker threads and never block the loop."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    suppress,
)
from contextvars import copy_context
from functools import wraps
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, cast

from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Found
from semcache.errors import StoreUnavailable
from semcache.process.forks import WAITS, ErrorCapture
from semcache.runs.run_context import LOOP
from semcache.semcache import SemCache

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")

WORKERS = 16
"""Calls of one pool that work at once; others wait their turn without blocking the loop."""
WAITING = 512
"""Calls beside them that wait for a model or an embedder, each on a thread; if more do, they count
among those that work."""


def awaited(
    method: Callable[Concatenate[B, P], T],
) -> Callable[Concatenate["_Door", P], Coroutine[Any, Any, T]]:
    """Return `method` of what is behind a door as one of the door: same parameters, awaited."""

    @wraps(method)
    async def call(door: "_Door", /, *args: P.args, **kwargs: P.kwargs) -> T:
        behind = cast("B", door._behind)  # noqa: SLF001 - the door's own
        return await door.in_worker(method, behind, *args, **kwargs)

    return call


class _Pool:
    """Threads for calls. A call that is about to wait lets another begin in its place.

    So hits go on their way whatever misses wait for.
    """

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers + WAITING, thread_name_prefix="semcache")
        self._changed = threading.Condition()
        self._free = workers
        self._away = 0
        self._open = 0
        self._closed = False
        self._queued: deque[Callable[[], None]] = deque()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Return the result to come of `call`.

        Raises:
            StoreUnavailable: the pool was closed.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._closed:
                raise StoreUnavailable("the cache was closed; open it again")
            self._open += 1
            self._queued.append(lambda: self._run(future, call))
        self._next()
        return future

    def _next(self, *, freed: int = 0) -> None:
        """Begin with what is queued, as far as there is room."""
        with self._changed:
            self._free += freed
            while self._free > 0 and self._queued:
                self._free -= 1
                self._threads.submit(self._queued.popleft())

    def _run(self, future: Future[T], call: Callable[[], T]) -> None:
        state: Literal["works", "waits", "done"] = "works"

        def wait() -> None:
            nonlocal state
            with self._changed:
                # "done": the call left a thread behind, which has its context.
                if state != "works" or self._away >= WAITING:
                    return
                state = "waits"
                self._away += 1
            self._next(freed=1)

        if future.set_running_or_notify_cancel():
            WAITS.set(wait)
            caught = ErrorCapture()
            with caught:
                future.set_result(call())
            if caught.error is not None:
                future.set_exception(caught.error)
        with self._changed:
            waited, state = state == "waits", "done"
            self._away -= waited
            self._open -= 1
            self._changed.notify_all()
        self._next(freed=not waited)

    def close(self) -> None:
        """Refuse further calls and return when all are done."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._open)
        self._threads.shutdown()


class _Door:
    """Worker threads over something that closes: what both classes below are."""

    def __init__(self, behind: PlanCache | SemCache, workers: int) -> None:
        self._behind = behind
        # A pool of its own, so that a burst here cannot starve the loop's default one.
        self._pool = _Pool(workers)

    async def close(self) -> None:
        """Wait for what runs, flush and release; calling it twice is fine."""
        await asyncio.to_thread(self._end)

    async def in_worker(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` returns, run in a worker with the caller's context variables.

        Each method is such a call; others are for work with what is behind this.

        Raises:
            StoreUnavailable: this was closed.
        """
        context = copy_context()
        context.run(LOOP.set, asyncio.get_running_loop())

        def call() -> T:
            context.run(WAITS.set, WAITS.get())
            return context.run(function, *args, **kwargs)

        return await asyncio.wrap_future(self._pool.submit(call))

    @asynccontextmanager
    async def held(self, manager: AbstractContextManager[T]) -> AsyncIterator[T]:
        """Enter and leave `manager` on one thread of its own, however long the block takes.

        In the pool, callers that wait for one another would fill it until nobody can go on.
        """
        loop, entered = asyncio.get_running_loop(), asyncio.Event()
        inside, leave = list[T](), SimpleQueue[BaseException | None]()

        # One call holds from beginning to end: a lock whose call is gone counts as free.
        def hold() -> None:
            with manager as given:
                inside.append(given)
                loop.call_soon_threadsafe(entered.set)
                error = leave.get()
                if error is not None:
                    raise error

        held = asyncio.ensure_future(self._apart(hold))
        held.add_done_callback(lambda _: entered.set())
        try:
            await entered.wait()
            if not inside:
                await held  # raises the error of the holder that it waited for
            yield inside[0]
        except BaseException as error:
            leave.put(error)
            with suppress(type(error)):
                await held
            raise
        leave.put(None)
        await held

    async def _apart(self, function: Callable[[], object]) -> None:
        """Return when `function` has, on a thread of its own."""
        loop, done, caught = asyncio.get_running_loop(), asyncio.Event(), ErrorCapture()

        def run() -> None:
            with caught:
                function()
            loop.call_soon_threadsafe(done.set)

        Thread(target=copy_context().run, args=(run,), name="semcache-wait", daemon=True).start()
        await done.wait()
        if caught.error is not None:
            raise caught.error

    def _end(self) -> None:
        self._pool.close()
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
    """A `PlanCache` for async callers, call by call. Closing it closes the cache."""

    def __init__(self, cache: PlanCache, *, workers: int = WORKERS) -> None:
        super().__init__(cache, workers)
        self.cache = cache
        """The cache behind it."""

    warm_up = awaited(PlanCache.warm_up)
    begin_warm_up = awaited(PlanCache.begin_warm_up)
    embed_anew = awaited(PlanCache.embed_anew)
    resume_embedding = awaited(PlanCache.resume_embedding)
    lookup = awaited(PlanCache.lookup)
    options = awaited(PlanCache.options)
    filled = awaited(PlanCache.filled)
    choices_needed = awaited(PlanCache.choices_needed)
    take = awaited(PlanCache.take)
    example = awaited(PlanCache.example)
    selects = awaited(PlanCache.selects)
    count = awaited(PlanCache.count)
    store = awaited(PlanCache.store)
    feedback = awaited(PlanCache.feedback)
    audit = awaited(PlanCache.audit)
    judged = awaited(PlanCache.judged)
    verified = awaited(PlanCache.verified)
    invalidate = awaited(PlanCache.invalidate)
    remove_expired = awaited(PlanCache.remove_expired)
    clear = awaited(PlanCache.clear)
    entries = awaited(PlanCache.entries)
    tenants = awaited(PlanCache.tenants)
    stats = awaited(PlanCache.stats)
    export = awaited(PlanCache.export)
    import_ = awaited(PlanCache.import_)
    evidence = awaited(PlanCache.evidence)
    export_evidence = awaited(PlanCache.export_evidence)
    import_evidence = awaited(PlanCache.import_evidence)
    learned = awaited(PlanCache.learned)
    redacted = awaited(PlanCache.redacted)
    flush = awaited(PlanCache.flush)

    def planning(self, found: Found) -> AbstractAsyncContextManager[bool]:
        """Hold the making of a plan for what was looked up; see `PlanCache.planning`.

        Of equal callers one is inside at a time; the others wait without blocking the loop.
        """
        return self.held(self.cache.planning(found))


class AsyncSemCache(_Door):
    """A `SemCache` for async callers, call by call. Closing it closes the cache."""

    def __init__(self, semcache: SemCache, *, workers: int = WORKERS) -> None:
        super().__init__(semcache, workers)
        self.semcache = semcache
        """The SemCache behind it."""

    normalize = awaited(SemCache.normalize)
    ground = awaited(SemCache.ground)
    warm_up = awaited(SemCache.warm_up)
    begin_warm_up = awaited(SemCache.begin_warm_up)
    lookup = awaited(SemCache.lookup)
    create = awaited(SemCache.create)
    decompose = awaited(SemCache.decompose)
    resume_planning = awaited(SemCache.resume_planning)
    store = awaited(SemCache.store)
    execute = awaited(SemCache.execute)
    run = awaited(SemCache.run)
    answer = awaited(SemCache.answer)
    checkpoints = awaited(SemCache.checkpoints)
    resume = awaited(SemCache.resume)
    intents = awaited(SemCache.intents)
