"""Threads in which a door does its calls: a share for each tenant, quick ones apart from slow."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Literal, TypeAlias, TypeVar

import anyio

from semcache.canonical import Json
from semcache.errors import Busy, DeadlineExceeded
from semcache.server.arguments import Pool
from semcache.server.calls import Calls
from semcache.server.tokens import Holder

SHARE = 8
"""Calls of one pool that a tenant may have at work: `ask`, which may plan for seconds, has a share
of its own, so that it delays neither another tenant nor the tenant's own lookups."""
WAITING = 64
"""Calls of a tenant that may wait for that; further ones are refused."""

T = TypeVar("T")
Share: TypeAlias = Pool | Literal["hit"]
"""`hit`: asks whose plan is there."""


class Pools:
    """A share of the threads for each tenant and pool. One event loop uses it."""

    def __init__(self, calls: Calls, *, deadline_s: float | None = None) -> None:
        """Do `calls`; `deadline_s`: seconds within which each is answered, None: whenever."""
        self.calls = calls
        """What is done."""
        self._deadline_s = deadline_s
        self._limiters: dict[tuple[str, Share], anyio.CapacityLimiter] = {}
        self._under_way: Counter[tuple[str, Share]] = Counter()
        """Calls that wait or are at work."""

    async def call(self, name: str, arguments: Mapping[str, object], holder: Holder) -> Json:
        """Return what a call gives its caller.

        Raises:
            Busy: too many calls of the tenant wait already.
            DeadlineExceeded: there is no answer in time.
            SemCacheError: what `Calls.call` raises.
        """
        work = partial(self.calls.call, name, arguments, tenant=holder.tenant, rights=holder.rights)
        return await self._in_time(self._sorted(name, arguments, holder, work))

    async def run(self, tenant: str, pool: Share, work: Callable[[], T]) -> T:
        """Return what `work` gives, in a thread of the tenant's share of the pool.

        Raises:
            Busy, DeadlineExceeded: as `call`.
        """
        return await self._in_time(self._run(tenant, pool, work))

    async def _sorted(
        self,
        name: str,
        arguments: Mapping[str, object],
        holder: Holder,
        work: Callable[[], Json],
    ) -> Json:
        pool: Share = self.calls.pool(name)
        if name == "ask" and "ask" in holder.rights:
            # An ask whose plan is there must not wait for those that plan. Looking is cheap beside
            # what is then done, and should the plan be gone by then, a slow one is among the quick.
            look = partial(self.calls.hits, name, arguments, tenant=holder.tenant)
            pool = "hit" if await self._run(holder.tenant, "read", look) else "ask"
        return await self._run(holder.tenant, pool, work)

    async def _in_time(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._deadline_s) as limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise DeadlineExceeded(
                f"there was no answer within {self._deadline_s:g} s; what has begun goes on, and a "
                "plan that comes of it is stored: ask again later"
            ) from error

    async def _run(self, tenant: str, pool: Share, work: Callable[[], T]) -> T:
        share = (tenant, pool)
        limiter = self._limiters.setdefault(share, anyio.CapacityLimiter(SHARE))
        # Counted here: a burst is over the limit before the limiter hears of the first of it.
        if self._under_way[share] >= SHARE + WAITING:
            raise Busy(f"{WAITING} calls of yours wait already; ask again later")
        begun = False

        def begin() -> T:
            nonlocal begun
            begun = True
            return work()

        # A task of its own, which keeps its place in the share until the thread is done: a thread
        # cannot be stopped, and one that nobody waits for any more would be beyond the limit.
        task = asyncio.ensure_future(anyio.to_thread.run_sync(begin, limiter=limiter))
        self._under_way[share] += 1
        task.add_done_callback(lambda _: self._under_way.subtract([share]))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if begun:
                task.add_done_callback(_let_go)
            else:
                task.cancel()
            raise


def _let_go(task: "asyncio.Future[T]") -> None:
    """Take note of how a task ended that nobody waits for, or asyncio would complain."""
    if not task.cancelled():
        task.exception()
