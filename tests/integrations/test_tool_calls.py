"""What every adapter does: tool calls are served where nothing but the prompt decides them."""

import asyncio
import threading
from typing import Any

import pytest

from semcache import AsyncPlanCache, Hit, PlanCache
from semcache.errors import InvalidInput
from semcache.integrations.tool_calls import ModelCall, ToolCall, ToolCallPlans, read_calls
from semcache.testing import HashEmbedder
from tests.waiting import count_waiting_threads

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}},
    "required": ["order_id"],
}
TRACK: dict[str, Any] = {"name": "track", "input_schema": SCHEMA}
CANCEL: dict[str, Any] = {"name": "cancel", "input_schema": SCHEMA}


def asked(order: str, **more: Any) -> ModelCall:
    return ModelCall(f"Where is order {order}?", **{"tools": [TRACK, CANCEL]} | more)


def track(order: str) -> ToolCall:
    return ToolCall("track", {"order_id": order})


@pytest.fixture
def plans(cache: PlanCache) -> ToolCallPlans:
    plans = ToolCallPlans(cache, allow=["track"])
    plans.keep(asked("ORD-17"), [track("ORD-17")])
    return plans


def test_a_kept_call_is_served_with_the_values_of_the_prompt(plans: ToolCallPlans) -> None:
    assert plans.served(asked("ORD-99")) == (track("ORD-99"),)


@pytest.mark.parametrize(
    "other",
    [
        {"tools": [TRACK]},
        {"tools": [TRACK, CANCEL | {"description": "Ends an order"}]},
        {"tenant": "initech"},
        {"instructions": "Answer in French."},
    ],
)
def test_what_else_a_model_is_told_makes_another_plan(plans: ToolCallPlans, other: Any) -> None:
    assert plans.served(asked("ORD-99", **other)) is None


def test_a_call_that_may_write_is_neither_kept_nor_served_unless_allowed(cache: PlanCache) -> None:
    cautious, bold = ToolCallPlans(cache, allow=["track"]), ToolCallPlans(cache, allow=["cancel"])
    cautious.keep(asked("ORD-17"), [ToolCall("cancel", {"order_id": "ORD-17"})])
    assert cache.entries() == ()
    bold.keep(asked("ORD-17"), [ToolCall("cancel", {"order_id": "ORD-17"})])
    assert bold.served(asked("ORD-99"))
    assert cautious.served(asked("ORD-99")) is None


def test_one_call_that_may_write_holds_back_the_others(cache: PlanCache) -> None:
    plans = ToolCallPlans(cache, allow=["track"])
    plans.keep(asked("ORD-17"), [track("ORD-17"), ToolCall("cancel", {"order_id": "ORD-17"})])
    assert cache.entries() == ()


def test_a_tool_that_only_reads_needs_no_allowance(cache: PlanCache) -> None:
    reads = {"name": "track", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
    plans = ToolCallPlans(cache)
    plans.keep(asked("ORD-17", tools=[reads]), [track("ORD-17")])
    assert plans.served(asked("ORD-99", tools=[reads])) == (track("ORD-99"),)


@pytest.mark.parametrize("arguments", [{}, {"order_id": 17}, {"order": "ORD-17"}])
def test_arguments_that_break_the_schema_are_not_kept(cache: PlanCache, arguments: Any) -> None:
    ToolCallPlans(cache, allow=["track"]).keep(asked("ORD-17"), [ToolCall("track", arguments)])
    assert cache.entries() == ()


def test_a_plan_that_somebody_else_stored_is_not_taken_for_calls(cache: PlanCache) -> None:
    plans = ToolCallPlans(cache, allow=["track"])
    call = asked("ORD-17")
    cache.store(call.prompt, {"answer": "ORD-17 is here"}, tools=call.tools)
    assert plans.served(call) is None


@pytest.mark.parametrize("prompt", ["", "x" * 30_000, "a\0b"])
def test_a_prompt_that_the_cache_refuses_is_for_the_model(
    plans: ToolCallPlans, prompt: str
) -> None:
    call = ModelCall(prompt, [TRACK])
    with plans.turn(call) as turn:
        assert turn.calls is None
        turn.made = [track("ORD-1")]


def test_instructions_that_change_may_be_left_out(cache: PlanCache) -> None:
    def lasting(text: str) -> str:
        return text.partition("Today")[0]

    plans = ToolCallPlans(cache, allow=["track"], instructions=lasting)
    plans.keep(asked("ORD-17", instructions="Be kind. Today is Monday."), [track("ORD-17")])
    assert plans.served(asked("ORD-99", instructions="Be kind. Today is Tuesday."))
    assert plans.served(asked("ORD-99", instructions="Be brief. Today is Monday.")) is None


def test_who_wants_to_judge_hits_is_told_of_each(plans: ToolCallPlans, cache: PlanCache) -> None:
    hits: list[Hit] = []
    plans = ToolCallPlans(cache, allow=["track"], on_hit=hits.append)
    assert plans.served(asked("ORD-99"))
    cache.feedback(hits[0], right=False)
    assert plans.served(asked("ORD-98")) is None


def test_of_equal_callers_one_asks_the_model(cache: PlanCache) -> None:
    plans, inside, go_on = (
        ToolCallPlans(cache, allow=["track"]),
        threading.Event(),
        threading.Event(),
    )
    served: list[Any] = []

    def first() -> None:
        with plans.turn(asked("ORD-17")) as turn:
            inside.set()
            assert go_on.wait(30)
            turn.made = [track("ORD-17")]

    def second() -> None:
        with plans.turn(asked("ORD-99")) as turn:
            served.append(turn.calls)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert served == [(track("ORD-99"),)]


def test_callers_whose_answers_are_no_plans_do_not_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    queued = count_waiting_threads(monkeypatch)

    async def main() -> list[str]:
        together = asyncio.Barrier(3)
        async with AsyncPlanCache(PlanCache.open(embedder=HashEmbedder())) as cache:
            plans = ToolCallPlans(cache, allow=["track"])

            async def first() -> None:
                async with plans.aturn(asked("ORD-1")):
                    waiting.set()
                    await done.wait()

            async def later() -> str:
                async with plans.aturn(asked("ORD-1")) as turn:
                    assert turn.calls is None
                    await together.wait()  # all three are inside at once
                    return "answered"

            waiting, done = asyncio.Event(), asyncio.Event()
            holder = asyncio.create_task(first())
            await waiting.wait()
            others = [asyncio.create_task(later()) for _ in range(3)]
            while queued() < 3:  # noqa: ASYNC110 - no event tells that they wait
                await asyncio.sleep(0)
            done.set()
            await holder
            return await asyncio.gather(*others)

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["answered"] * 3


def test_an_error_of_the_model_passes_and_nothing_is_kept(cache: PlanCache) -> None:
    plans = ToolCallPlans(cache, allow=["track"])

    def fail() -> None:
        with plans.turn(asked("ORD-17")) as turn:
            turn.made = [track("ORD-17")]
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    assert cache.entries() == ()


@pytest.mark.parametrize("bad", [{"allow": "track"}, {"cache": "plans"}])
def test_what_cannot_be_used_is_refused(cache: PlanCache, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        ToolCallPlans(**{"cache": cache} | bad)


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"x": NaN}', 5, {"x": object()}])
def test_calls_of_which_one_cannot_be_read_are_none(arguments: Any) -> None:
    assert read_calls([("track", "{}"), ("track", arguments)]) == []
