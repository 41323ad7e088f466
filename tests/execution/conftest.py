"""An engine, a clock that stands still, and operations to call."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.execution.routes import RoutesEngine
from semcache.plans.routes import RoutePlan
from semcache.ports import Outcome
from semcache.testing import FakeClock, RecordingObserver
from tests.executing import executed

Execute = Callable[..., Outcome]


def make(name: str, call: Any, *, effect: Any = "read", **schema: Json) -> Operation:
    return Operation(name, f"{name}.", schema, effect=effect, call=call)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """An event that operations may wait for; it comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def calls() -> list[JsonObject]:
    """The inputs that `note` was called with."""
    return []


@pytest.fixture
def catalog(calls: list[JsonObject], released: threading.Event, clock: FakeClock) -> Catalog:
    """Operations that behave and operations that do not."""

    def note(given: JsonObject) -> JsonObject:
        calls.append(given)
        return {"noted": len(calls)}

    def thread(_: JsonObject) -> None:
        calls.append({"thread": threading.current_thread().name})

    def spoil(given: JsonObject) -> JsonObject:
        given.clear()
        return {}

    def fail(_: JsonObject) -> None:
        raise LookupError("no such row")

    def leave(_: JsonObject) -> None:
        raise SystemExit(3)

    circle: list[object] = []
    circle.append(circle)
    return Catalog([
        make("echo", lambda given: given),
        make("note", note),
        make("write", note, effect="write"),
        make("strict", note, type="object", required=["limit"]),
        make("thread", thread),
        make("spoil", spoil),
        make("fail", fail),
        make("leave", leave),
        make("hang", lambda _: released.wait()),
        make("wait", lambda given: clock.advance(float(given["seconds"]))),
        make("nothing", lambda _: None),
        make("unjson", lambda _: {1, 2}),
        make("not_a_number", lambda _: {"x": float("nan")}),
        make("circle", lambda _: circle),
        make("endless_integer", lambda _: 10**5000),
        make("much", lambda given: "x" * int(given["bytes"])),
        make("described", None),
    ])  # fmt: skip


@pytest.fixture
def execute(catalog: Catalog, clock: FakeClock, observer: RecordingObserver) -> Execute:
    """Run a plan, given as an object, and return its outcome."""

    def run(body: JsonObject, *, data: Any = frozenset(), **limits: Any) -> Outcome:
        return executed(
            RoutesEngine(),
            RoutePlan.from_dict(body, data),
            catalog,
            **limits,
            clock=clock,
            observer=observer,
            run="run-1",
        )

    return run
