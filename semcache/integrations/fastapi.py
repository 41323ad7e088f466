"""FastAPI and Starlette: one cache for the life of an application, and what hands it to a route."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from semcache.aio import AsyncPlanCache
from semcache.cache.plan_cache import PlanCache
from semcache.errors import InvalidSettings, MissingExtra

try:
    from starlette.requests import HTTPConnection
except ImportError as error:
    raise MissingExtra(
        "the adapter for FastAPI needs `pip install 'semcache-plans[fastapi]'`"
    ) from error

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
"""A lifespan with state, as FastAPI and Starlette take it."""
_Inner = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]

_KEY = "semcache_plans"


def plan_cache_lifespan(
    open_cache: Callable[[], PlanCache], *, inner: _Inner | None = None
) -> Lifespan:
    """Return a lifespan that opens a cache when an application starts and closes it at its end.

    For `FastAPI(lifespan=plan_cache_lifespan(lambda: PlanCache.open("plans")))`. `inner`: a
    lifespan of the application's own, inside of which the cache is open.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Mapping[str, Any]]:  # noqa: ANN401 - any application
        async with AsyncExitStack() as stack:
            cache = await stack.enter_async_context(AsyncPlanCache(open_cache()))
            state = None if inner is None else await stack.enter_async_context(inner(app))
            yield {**(state or {}), _KEY: cache}

    return lifespan


def plan_cache(connection: HTTPConnection) -> AsyncPlanCache:
    """Return the cache of the application: `Annotated[AsyncPlanCache, Depends(plan_cache)]`.

    Raises:
        InvalidSettings: the application has no `plan_cache_lifespan`.
    """
    cache = getattr(connection.state, _KEY, None)
    if not isinstance(cache, AsyncPlanCache):
        raise InvalidSettings("the application has no cache: give it a `plan_cache_lifespan`")
    return cache
