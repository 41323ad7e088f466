import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from semcache import (
    AsyncPlanCache,
    AsyncSemCache,
    Hit,
    PlanCache,
    SemCache,
    catalog_from,
    operation,
)
from semcache.canonical import JsonObject
from semcache.errors import StoreUnavailable
from semcache.ports import Completion, Message, Vectors
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel

PLAN: JsonObject = {"steps": [{"year": "2024"}]}


def awaited(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(make(), timeout=60))


def plan_cache() -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder(), clock=FakeClock())


def reports(report: Callable[[str], list[str]]) -> SemCache:
    @operation(effect="read")
    def list_reports(city: str) -> list[str]:
        """List the reports of a city."""
        return report(city)

    return SemCache.open(
        catalog=catalog_from(list_reports), embedder=HashEmbedder(), clock=FakeClock()
    )


def test_two_hundred_requests_on_a_cold_cache_are_planned_once() -> None:
    async def main() -> Any:
        async with AsyncSemCache(reports(lambda city: [city])) as semcache:
            runs = [semcache.run(f'List reports with city "c{n}"') for n in range(200)]
            return await asyncio.gather(*runs)

    answers = awaited(main)
    assert [answer.value for answer in answers] == [{"answer": [f"c{n}"]} for n in range(200)]
    assert sum(answer.planned for answer in answers) == 1


# specs: U7
def test_an_async_operation_runs_on_the_loop_of_the_caller() -> None:
    loops: list[object] = []

    @operation(effect="read")
    async def list_reports(city: str) -> list[str]:
        """List the reports of a city."""
        loops.append(asyncio.get_running_loop())
        return [city]

    cache = SemCache.open(
        catalog=catalog_from(list_reports), embedder=HashEmbedder(), clock=FakeClock()
    )

    async def main() -> Any:
        async with AsyncSemCache(cache) as semcache:
            answer = await semcache.run('List reports with city "c1"')
            return answer.value, asyncio.get_running_loop()

    value, loop = awaited(main)
    assert value == {"answer": ["c1"]}
    assert loops == [loop]


def test_closing_waits_for_what_runs_without_blocking_the_loop() -> None:
    entered, release = threading.Event(), threading.Event()

    def report(city: str) -> list[str]:
        entered.set()
        assert release.wait(30)
        return [city]

    async def main() -> Any:
        semcache = AsyncSemCache(reports(report))
        slow = asyncio.create_task(semcache.run('List reports with city "c1"'))
        await asyncio.to_thread(entered.wait, 30)
        closing = asyncio.create_task(semcache.close())
        await asyncio.sleep(0)
        assert not closing.done()
        release.set()
        await closing
        return await slow

    assert awaited(main).value == {"answer": ["c1"]}


def test_a_closed_cache_says_so_and_closes_again() -> None:
    async def main() -> None:
        cache = AsyncPlanCache(plan_cache())
        await cache.close()
        await cache.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await cache.lookup("sales in 2024")

    awaited(main)


def test_context_variables_of_the_caller_reach_the_call() -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: set[str] = set()
    plain = PlanCache.open(embedder=HashEmbedder(), observer=lambda _: seen.add(user.get()))

    async def main() -> None:
        async with AsyncPlanCache(plain) as cache:
            user.set("ann")
            await cache.lookup("sales in 2024")

    awaited(main)
    assert seen == {"ann"}


def test_every_call_of_a_plan_cache_can_be_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncPlanCache(plan_cache()) as cache:
            stored = await cache.store(
                "sales in 2024", PLAN, params={"year": "2024"}, tags=["a"], tenant="acme"
            )
            found = await cache.lookup("sales in 2023", tenant="acme")
            assert isinstance(found, Hit)
            await cache.feedback(found, right=True)
            await cache.flush()
            assert [e.id for e in await cache.entries(tenant="acme")] == [stored.id]
            assert await cache.tenants() == ("acme",)
            assert (await cache.stats(tenant="acme")).feedback_right == 1
            assert await cache.export(tmp_path / "plans.json", tenant="acme") == 1
            assert await cache.invalidate(tag="a", tenant="acme") == 1
            assert await cache.import_(tmp_path / "plans.json", tenant="acme") == 1
            assert await cache.remove_expired(tenant="acme") == 0
            assert await cache.clear() == 1

    awaited(main)


@pytest.mark.parametrize(
    ("plain", "twin", "left"),
    [
        (PlanCache, AsyncPlanCache, {"open", "emit", "guarded", "planning", "without_ignored"}),
        # What does no I/O is called on the `semcache` inside.
        (SemCache, AsyncSemCache, {"open", "open_run", "standing", "workflow"}),
    ],
)
def test_both_doors_have_the_same_calls_with_the_same_parameters(
    plain: type, twin: type, left: set[str]
) -> None:
    for name, method in inspect.getmembers(plain, inspect.isfunction):
        if name.startswith("_") or name in left:
            continue
        awaitable = getattr(twin, name)
        assert inspect.iscoroutinefunction(awaitable), name
        mine = inspect.signature(awaitable).parameters.values()
        its = inspect.signature(method).parameters.values()
        assert [(p.name, p.kind, p.default) for p in mine] == [
            (p.name, p.kind, p.default) for p in its
        ], name


# specs: U7
def test_of_equal_callers_one_plans_and_the_others_wait_without_filling_the_pool() -> None:
    planned: list[str] = []

    async def ask(cache: AsyncPlanCache, prompt: str) -> str:
        found = await cache.lookup(prompt)
        if not isinstance(found, Hit):
            async with cache.planning(found) as again:
                found = await cache.lookup(prompt) if again else found
                if not isinstance(found, Hit):
                    planned.append(prompt)
                    await cache.store(prompt, PLAN)
                    return "planned"
        return found.tier

    async def main() -> list[str]:
        async with AsyncPlanCache(plan_cache(), workers=2) as cache:
            return await asyncio.gather(*(ask(cache, "list reports") for _ in range(20)))

    assert sorted(awaited(main)) == ["planned", *["template"] * 19]
    assert planned == ["list reports"]


def test_what_is_raised_while_planning_reaches_the_caller_and_frees_the_lock() -> None:
    async def main() -> str:
        async with AsyncPlanCache(plan_cache()) as cache:
            missed = await cache.lookup("list reports")
            with pytest.raises(KeyError):
                async with cache.planning(missed):
                    raise KeyError("x")
            async with cache.planning(missed):
                return "free"

    assert awaited(main) == "free"


class Stuck(HashEmbedder):
    """Embeds nothing until it is let go, once it is told to be stuck."""

    def __init__(self, go: threading.Event) -> None:
        super().__init__()
        self.go = go
        self.go.set()

    def embed(self, texts: Sequence[str]) -> Vectors:
        assert self.go.wait(60)
        return super().embed(texts)


# specs: U7
def test_a_hit_does_not_wait_for_misses_that_wait_for_an_embedder() -> None:
    embedder = Stuck(threading.Event())

    async def main() -> tuple[str, int]:
        plain = PlanCache.open(embedder=embedder, clock=FakeClock())
        async with AsyncPlanCache(plain, workers=2) as cache:
            await cache.store("sales in 2024", PLAN)
            embedder.go.clear()
            prompts = [f"words {letter} of another kind" for letter in "abcdefgh"]
            misses = [asyncio.create_task(cache.lookup(prompt)) for prompt in prompts]
            stores = [asyncio.create_task(cache.store(f"words {n} to keep", PLAN)) for n in "ij"]
            found = await cache.lookup("sales in 2023")
            assert isinstance(found, Hit)
            waiting = sum(not task.done() for task in (*misses, *stores))
            embedder.go.set()
            assert not any(await asyncio.gather(*misses))
            assert all(await asyncio.gather(*stores))
            return found.tier, waiting

    assert awaited(main) == ("template", 10)


# specs: U7
def test_a_hit_does_not_wait_for_misses_that_wait_for_a_plan() -> None:
    go = threading.Event()

    class Waiting(ScriptedModel):
        def complete(self, messages: Sequence[Message]) -> Completion:
            assert go.wait(60)
            return super().complete(messages)

    @operation(effect="read")
    def list_reports(city: str) -> list[str]:
        """List the reports of a city."""
        return [city]

    async def main() -> tuple[bool, int]:
        plain = SemCache.open(
            catalog=catalog_from(list_reports),
            embedder=HashEmbedder(),
            clock=FakeClock(),
            model=Waiting(["no plan"] * 100),
        )
        async with AsyncSemCache(plain, workers=2) as cache:
            await cache.run('List reports with city "c0"')
            misses = [
                asyncio.create_task(cache.run(f"Ponder over {word} things"))
                for word in ("red", "green", "blue", "gray", "pink", "black", "white", "brown")
            ]
            answer = await cache.run('List reports with city "c1"')
            waiting = sum(not task.done() for task in misses)
            go.set()
            await asyncio.gather(*misses, return_exceptions=True)
            return answer.planned, waiting

    assert awaited(main) == (False, 8)


def test_calls_that_are_cancelled_while_they_queue_are_not_made() -> None:
    entered, release = threading.Event(), threading.Event()
    seen: list[str] = []

    def report(city: str) -> list[str]:
        seen.append(city)
        entered.set()
        assert release.wait(60)
        return [city]

    async def main() -> None:
        async with AsyncSemCache(reports(report), workers=1) as semcache:
            release.set()
            await semcache.run('List reports with city "c0"')
            release.clear()
            entered.clear()
            first = asyncio.create_task(semcache.run('List reports with city "c1"'))
            await asyncio.to_thread(entered.wait, 60)
            queued = [
                asyncio.create_task(semcache.run(f'List reports with city "c{n}"')) for n in (2, 3)
            ]
            await asyncio.sleep(0)
            for task in queued:
                task.cancel()
            release.set()
            await first
            await semcache.run('List reports with city "c4"')

    awaited(main)
    assert seen == ["c0", "c1", "c4"]
