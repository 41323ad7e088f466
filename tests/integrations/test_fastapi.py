"""One cache for the life of an application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from semcache import AsyncPlanCache, PlanCache
from semcache.errors import InvalidSettings
from semcache.integrations.fastapi import Lifespan, plan_cache, plan_cache_lifespan
from semcache.testing import HashEmbedder


def application(lifespan: Lifespan | None) -> FastAPI:
    app = FastAPI(lifespan=lifespan)

    @app.post("/plans")
    async def store(
        prompt: str, plan: dict[str, Any], cache: Annotated[AsyncPlanCache, Depends(plan_cache)]
    ) -> bool:
        return bool(await cache.store(prompt, plan))

    @app.get("/plans")
    async def lookup(
        prompt: str, cache: Annotated[AsyncPlanCache, Depends(plan_cache)]
    ) -> dict[str, Any]:
        return (await cache.lookup(prompt)).to_dict()

    return app


def test_routes_share_a_cache_that_is_closed_with_the_application() -> None:
    opened: list[PlanCache] = []

    def open_cache() -> PlanCache:
        opened.append(PlanCache.open(embedder=HashEmbedder()))
        return opened[0]

    with TestClient(application(plan_cache_lifespan(open_cache))) as client:
        plan = {"call": {"order_id": "ORD-17"}}
        assert client.post("/plans", params={"prompt": "order ORD-17"}, json=plan).json()
        found = client.get("/plans", params={"prompt": "order ORD-99"}).json()
        assert found["plan"] == {"call": {"order_id": "ORD-99"}}
    assert len(opened) == 1


def test_the_cache_is_open_as_long_as_a_lifespan_of_the_application() -> None:
    cache = PlanCache.open(embedder=HashEmbedder())
    seen: list[Any] = []

    @asynccontextmanager
    async def inner(_: Any) -> AsyncIterator[dict[str, str]]:
        seen.append(cache.lookup("order ORD-17").to_dict()["reason"])
        yield {"name": "orders"}
        seen.append(cache.lookup("order ORD-17").to_dict()["reason"])

    with TestClient(application(plan_cache_lifespan(lambda: cache, inner=inner))) as client:
        assert client.get("/plans", params={"prompt": "order ORD-17"}).json()["reason"] == "empty"
    assert seen == ["empty", "empty"]


def test_an_application_without_a_cache_is_told_what_it_lacks() -> None:
    with (
        TestClient(application(None)) as client,
        pytest.raises(InvalidSettings, match="plan_cache_lifespan"),
    ):
        client.get("/plans", params={"prompt": "order ORD-17"})
