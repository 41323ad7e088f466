"""One call of an operation."""

import asyncio
import contextvars
import threading
from functools import partial
from typing import Any

import pytest

from semcache import Catalog, Operation, catalog_from, operation
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    DeadlineExceeded,
    OperationRefused,
    OutputTooLarge,
)
from semcache.execution.call import MAX_LATE, bounded, call
from semcache.ports import Limits
from semcache.runs.run_context import LOOP

WHO = contextvars.ContextVar("WHO", default="nobody")


def called(catalog: Catalog, name: str, given: Json = None, **limits: Any) -> Json:
    return call(
        catalog.get(name),
        given,
        catalog=catalog,
        limits=Limits(**limits),
        timeout_s=limits.get("call_timeout_s", 30),
        node="n",
    )


def test_the_result_is_plain_json_of_its_own(catalog: Catalog) -> None:
    given: JsonObject = {"x": [1, {"y": None}]}
    result = called(catalog, "echo", given)
    assert result == given
    assert isinstance(result, dict)
    assert result["x"] is not given["x"]


def test_tuples_and_mappings_become_lists_and_objects() -> None:
    def pairs(_: JsonObject) -> object:
        return {"pairs": ((1, 2), (3,))}

    catalog = Catalog([Operation("pairs", "", {}, effect="read", call=pairs)])
    assert called(catalog, "pairs") == {"pairs": [[1, 2], [3]]}


@pytest.mark.parametrize("given", [[1], "x", 5])
def test_input_that_is_no_object_is_refused(catalog: Catalog, given: Json) -> None:
    with pytest.raises(OperationRefused, match="expected an object"):
        called(catalog, "echo", given)


def test_input_that_is_not_json_is_refused(catalog: Catalog) -> None:
    with pytest.raises(OperationRefused, match="finite numbers"):
        called(catalog, "echo", {"x": float("inf")})


def test_input_over_the_bound_is_refused(catalog: Catalog) -> None:
    with pytest.raises(OutputTooLarge, match="the input of operation 'echo'"):
        called(catalog, "echo", {"x": "y" * 100}, max_output_bytes=100)


def test_a_refusal_from_behind_the_operation_names_the_node() -> None:
    def find(limit: int) -> int:
        return limit

    bare = Operation("find", "", {}, effect="read", call=operation(find).call)
    with pytest.raises(OperationRefused, match="valid integer") as raised:
        called(Catalog([bare]), "find", {"limit": "5"})
    assert raised.value.node == "n"


def test_context_variables_of_the_caller_are_seen_and_not_changed() -> None:
    def who(_: JsonObject) -> str:
        seen = WHO.get()
        WHO.set("operation")
        return seen

    WHO.set("caller")
    catalog = Catalog([Operation("who", "", {}, effect="read", call=who)])
    assert called(catalog, "who") == "caller"
    assert WHO.get() == "caller"


def test_a_call_that_hangs_does_not_keep_the_process(catalog: Catalog) -> None:
    with pytest.raises(DeadlineExceeded):
        called(catalog, "hang", call_timeout_s=0.01)
    left = [thread for thread in threading.enumerate() if thread.name == "semcache-operation"]
    assert left
    assert all(thread.daemon for thread in left)


def test_any_number_of_seconds_is_a_timeout(catalog: Catalog) -> None:
    assert called(catalog, "nothing", call_timeout_s=1e12) is None
    assert called(catalog, "nothing", call_timeout_s=float("inf")) is None


def test_the_bound_counts_the_bytes_of_json() -> None:
    limits = Limits(max_output_bytes=10)
    assert bounded("éééé", limits, what="x", node="n") == "éééé"
    with pytest.raises(OutputTooLarge):
        bounded("ééééé", limits, what="x", node="n")
    assert bounded(None, limits, what="x", node="n") is None


def test_a_value_that_repeats_itself_is_refused_without_being_written_out() -> None:
    value: Json = "x"
    for _ in range(90):
        value = [value, value]
    with pytest.raises(OutputTooLarge):
        bounded(value, Limits(), what="x", node="n")


def test_an_operation_that_takes_a_key_gets_the_one_that_is_given_or_one_of_its_own() -> None:
    @operation(effect="read", idempotency_key="key")
    def order(item: str, *, key: str) -> list[str]:
        return [item, key]

    catalog = catalog_from(order)
    ways: Any = {"catalog": catalog, "limits": Limits(), "timeout_s": 5, "node": "n"}
    given: JsonObject = {"item": "tea"}
    assert call(order, given, key="k1", **ways) == ["tea", "k1"]
    assert call(order, given, **ways) != call(order, given, **ways)


def test_an_operation_whose_late_calls_still_run_is_not_called_again() -> None:
    released, ended = threading.Event(), threading.Semaphore(0)

    def hang(_: JsonObject) -> None:
        released.wait()
        ended.release()

    catalog = Catalog([Operation("hang", "", {}, effect="read", call=hang)])
    for _ in range(MAX_LATE):
        with pytest.raises(DeadlineExceeded):
            called(catalog, "hang", call_timeout_s=0.001)
    with pytest.raises(OperationRefused, match="8 calls of it that were too late still run"):
        called(catalog, "hang", call_timeout_s=0.001)
    released.set()
    assert all(ended.acquire(timeout=10) for _ in range(MAX_LATE))


def test_late_calls_of_all_operations_hold_a_bounded_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released, ended = threading.Event(), threading.Semaphore(0)

    def hang(_: JsonObject) -> None:
        released.wait()
        ended.release()

    monkeypatch.setattr("semcache.execution.call.MAX_LATE_IN_ALL", 3)
    catalog = Catalog(
        Operation(f"hang{n}", "", {}, effect="read", call=partial(hang)) for n in range(4)
    )
    for n in range(3):
        with pytest.raises(DeadlineExceeded):
            called(catalog, f"hang{n}", call_timeout_s=0.001)
    with pytest.raises(OperationRefused, match="3 calls of operations that were too late"):
        called(catalog, "hang3", call_timeout_s=0.001)
    released.set()
    assert all(ended.acquire(timeout=10) for _ in range(3))


# specs: U7
def test_a_coroutine_is_awaited_before_the_call_ends() -> None:
    @operation(effect="read")
    async def double(limit: int) -> int:
        await asyncio.sleep(0)
        return limit * 2

    assert called(catalog_from(double), "double", {"limit": 4}) == 8


def test_a_coroutine_that_is_too_late_is_cancelled() -> None:
    ends: list[str] = []

    @operation(effect="read")
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def caller() -> None:
        LOOP.set(asyncio.get_running_loop())
        with pytest.raises(DeadlineExceeded):
            await asyncio.to_thread(called, catalog_from(hang), "hang", call_timeout_s=0.01)

    asyncio.run(caller())
    assert ends == ["cancelled"]
