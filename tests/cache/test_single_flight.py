"""One plan for all that want the same: threads, processes, and holders that die on the way."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from semcache import Catalog, Operation, Parameter, PlanCache, SemCache, Settings
from semcache.cache.reports import HealthReporter
from semcache.cache.single_flight import SingleFlight
from semcache.errors import PlanningError, StoreUnavailable
from semcache.events import TierFailed
from semcache.plans.codec import decode
from semcache.ports import Clock, Planned, PlanRequest
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, RecordingObserver
from semcache.wiring import SystemClock
from tests.caching import cache_over, semcache_over
from tests.calling import calling, missed
from tests.waiting import count_waiting_threads, until

plan = partial(calling, "report")


def made(store: MemoryStore, clock: FakeClock, **more: Any) -> SingleFlight:
    options = {"ttl_s": 10.0, "wait_s": 60.0, **more}
    return SingleFlight(store, clock, HealthReporter(RecordingObserver()), **options)


class PinnedWords(MemoryStore):
    """A store in which another process has every lease until it is told to let go."""

    def __init__(self, clock: FakeClock, *, dies: bool = False) -> None:
        super().__init__()
        self.clock = clock
        self.dies = dies
        self.query = 0

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        if not self.query or not self.dies:
            super().lease(tenant, name, "another", ttl_s=ttl_s, now_s=now_s)
        self.query += 1
        return super().lease(tenant, name, holder, ttl_s=ttl_s, now_s=now_s)


def test_who_is_alone_does_not_wait_and_leaves_the_lease_free() -> None:
    clock = FakeClock()
    store = MemoryStore()
    for _ in range(2):
        with made(store, clock).alone("acme", "report of <year>") as waited:
            assert not waited
    assert clock.sleeps == []


def test_another_process_is_waited_for_until_it_lets_go() -> None:
    clock, store = FakeClock(), MemoryStore()
    inside, go = threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        with made(store, clock).alone("acme", "t") as waited:
            inside.set()
            assert go.wait(30)
            order.append(f"first waited {waited}")

    class Opening(FakeClock):
        """Lets the first go on as soon as the second sleeps, and stands still meanwhile."""

        def sleep(self, seconds: float) -> None:
            go.set()
            time.sleep(0.001)  # the other thread's turn; no assertion depends on how long

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(first)
        assert inside.wait(30)
        with made(store, Opening()).alone("acme", "t") as waited:
            order.append(f"second waited {waited}")
        holder.result(30)
    assert order == ["first waited False", "second waited True"]


def test_a_holder_that_died_is_taken_over_when_its_lease_has_run_out() -> None:
    clock = FakeClock()
    with made(PinnedWords(clock, dies=True), clock).alone("acme", "t") as waited:
        assert waited
    assert 10.0 <= clock.monotonic() < 10.2


def test_nobody_waits_longer_than_told_and_then_it_plans_beside_the_holder() -> None:
    clock = FakeClock()
    with made(PinnedWords(clock), clock).alone("acme", "t") as waited:
        assert waited
    assert 60.0 <= clock.monotonic() < 60.2


def test_a_thread_waits_no_longer_either(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = count_waiting_threads(monkeypatch)
    clock = FakeClock()
    planning = made(MemoryStore(), clock)
    inside, go = threading.Event(), threading.Event()

    def slow() -> None:
        with planning.alone("acme", "t"):
            inside.set()
            assert go.wait(30)

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(slow)
        assert inside.wait(30)
        clock.advance(0.0)
        late = pool.submit(lambda: planning.alone("acme", "t").__enter__())
        until(lambda: waiting() == 1)
        clock.advance(120.0)
        assert late.result(30) is True
        go.set()
        holder.result(30)


def test_a_lease_is_renewed_while_its_holder_lives() -> None:
    clock, beaten = FakeClock(), threading.Event()

    class Watched(MemoryStore):
        query = 0

        def lease(self, *parts: Any, **more: Any) -> bool:
            self.query += 1
            if self.query == 3:
                beaten.set()
            return super().lease(*parts, **more)

    with made(Watched(), clock, ttl_s=0.3).alone("acme", "t"):
        assert beaten.wait(30)


def test_other_templates_and_tenants_do_not_wait_for_each_other() -> None:
    clock, store = FakeClock(), MemoryStore()
    one, two = made(store, clock), made(store, clock)
    with (
        one.alone("acme", "a") as first,
        two.alone("acme", "b") as second,
        two.alone("umbrella", "a") as third,
    ):
        assert (first, second, third) == (False, False, False)


def test_a_store_that_fails_leaves_the_threads_to_wait_for_each_other() -> None:
    class Broken(MemoryStore):
        def lease(self, *_: Any, **__: Any) -> bool:
            raise StoreUnavailable("locked")

    observer = RecordingObserver()
    planning = SingleFlight(Broken(), FakeClock(), HealthReporter(observer), ttl_s=10, wait_s=60)
    with planning.alone("acme", "t") as waited:
        assert not waited
    assert [event.part for event in observer.of(TierFailed)] == ["store"]


def test_who_looked_before_another_plan_was_stored_looks_again(cache: PlanCache) -> None:
    found = missed(cache.lookup("report of 2024"))
    cache.store("report of 2023", plan(year=2023), params={"year": 2023})
    with cache.planning(found) as again:
        assert again
        assert cache.lookup("report of 2024")
    with cache.planning(cache.lookup("another report")) as again:
        assert not again


# Processes ───────────────────────────────────────────────────────────────────────────────────────


class Counting:
    """A planner that notes each call in a file, and answers when everybody has asked."""

    def __init__(self, directory: Path, begun: Any, wanted: int, *, dies: bool = False) -> None:
        self.notes = directory / "planned.txt"
        self.begun = begun
        self.wanted = wanted
        self.dies = dies

    def plan(self, request: PlanRequest) -> Planned:
        with self.notes.open("a", encoding="utf-8") as file:
            file.write(f"{request.prompt}\n")
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        while self.begun.value < self.wanted:
            threading.Event().wait(0.005)
        year = request.prompt.split()[-1]
        said = (Parameter("year", year, mention=year),)
        return Planned(decode(plan(of="{{params.year}}")), said, "counting")


class Impatient(SystemClock):
    """The machine's time for who sleeps much less than the longest that anybody waits."""

    left_s = 30.0

    def sleep(self, seconds: float) -> None:
        """Sleep, and fail once it was too often."""
        self.left_s -= seconds
        assert self.left_s > 0, "nobody took over"
        super().sleep(seconds)


def opened(
    directory: Path, planner: Counting, settings: Settings, *, clock: Clock | None = None
) -> SemCache:
    store = DiskStore.open(directory / "plans", busy_timeout_s=30.0)
    clock = clock or SystemClock()
    report = Operation(
        "report", "Reports.", {"type": "object"}, effect="read", call=lambda given: given
    )
    cache = cache_over(store, settings, catalog=Catalog([report]), clock=clock)
    return semcache_over(store, cache, planner, clock=clock)


shared: list[Any] = []
"""In a child: how many callers of all processes have begun."""


def share(begun: Any) -> None:
    """Begin a child."""
    shared.append(begun)


def ask(directory: Path, prompts: list[str], wanted: int) -> list[str]:
    """Ask each of `prompts` in a thread of its own; return the answers."""
    (begun,) = shared
    with opened(directory, Counting(directory, begun, wanted), Settings()) as semcache:

        def one(prompt: str) -> str:
            with begun.get_lock():
                begun.value += 1
            while begun.value < wanted:
                threading.Event().wait(0.005)
            return str(cast("Any", semcache.run(prompt).value)["answer"]["of"])

        with ThreadPoolExecutor(len(prompts)) as pool:
            return list(pool.map(one, prompts))


def asked_at_once(directory: Path, method: str, shares: list[list[str]]) -> tuple[int, list[str]]:
    """Return how often was planned, and all answers, when each process asks its share."""
    context: Any = multiprocessing.get_context(method)
    wanted = sum(map(len, shares))
    # A pool raises if a child dies; waiting for a queue would then last for ever.
    with ProcessPoolExecutor(
        len(shares), context, initializer=share, initargs=(context.Value("i", 0),)
    ) as pool:
        asks = [pool.submit(ask, directory, prompts, wanted) for prompts in shares]
        answers = [answer for done in asks for answer in done.result()]
    return len((directory / "planned.txt").read_text(encoding="utf-8").splitlines()), answers


# specs: D-8
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_prompts_with_other_values_in_many_processes_are_planned_once_and_each_gets_its_own(
    tmp_path: Path, method: str
) -> None:
    years = [str(year) for year in range(2010, 2019)]
    shares = [[f"report of {year}" for year in years[i::3]] for i in range(3)]
    planned, answers = asked_at_once(tmp_path, method, shares)
    assert (planned, sorted(answers)) == (1, years)


def die(directory: Path) -> None:
    begun = multiprocessing.get_context("spawn").Value("i", 1)
    planner = Counting(directory, begun, 1, dies=True)
    with opened(directory, planner, Settings(flight_ttl_s=1.0)) as semcache:
        semcache.run("report of 2024")


def test_what_a_killed_process_was_planning_is_planned_by_who_waits(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    victim = context.Process(target=die, args=(tmp_path,))
    victim.start()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    planner = Counting(tmp_path, context.Value("i", 1), 1)
    with opened(tmp_path, planner, Settings(flight_ttl_s=1.0), clock=Impatient()) as semcache:
        assert semcache.run("report of 2023").planned
        assert not semcache.run("report of 2022").planned
    notes = planner.notes.read_text(encoding="utf-8").splitlines()
    assert notes == ["report of 2024", "report of 2023"]


def test_waiters_in_other_processes_hear_of_a_failing_planner_together(clock: FakeClock) -> None:
    store, waiting, planned = MemoryStore(), threading.Barrier(4), list[str]()

    class Waited(FakeClock):
        """Lets the maker fail as soon as everybody waits."""

        def __init__(self) -> None:
            super().__init__(clock.now())
            self.first = True

        def sleep(self, seconds: float) -> None:
            if self.first:
                self.first = False
                waiting.wait(timeout=30)

    def other() -> str:
        try:
            with made(store, Waited()).alone("acme", "t"):
                planned.append("other")
        except PlanningError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(3) as pool:
        others = list["Future[str]"]()

        def fail() -> None:
            with made(store, clock).alone("acme", "t"):
                others[:] = [pool.submit(other) for _ in range(3)]
                waiting.wait(timeout=30)
                raise ValueError("no model")

        with pytest.raises(ValueError, match="no model"):
            fail()
        told = {one.result(timeout=30) for one in others}
    assert (told, planned) == (
        {"another process was planning this too, and failed: ValueError: no model"},
        [],
    )


def test_who_comes_after_a_failure_plans(clock: FakeClock) -> None:
    store = MemoryStore()
    for _ in range(2):
        with pytest.raises(ValueError, match="no model"), made(store, clock).alone("acme", "t"):
            raise ValueError("no model")
    with made(store, clock).alone("acme", "t") as again:
        assert not again
