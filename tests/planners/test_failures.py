import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import PlanSuspended
from semcache.planners.failures import Failure, FailureMemory
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def memory(store: MemoryStore, clock: FakeClock) -> FailureMemory:
    return FailureMemory(store, clock)


# specs: A-14
def test_a_failure_is_recorded_with_its_error_and_count(
    memory: FailureMemory, clock: FakeClock
) -> None:
    assert memory.get("acme", "k") is None
    memory.failed("acme", "k", "first")
    expected = Failure(2, "second", clock.now(), clock.now())
    assert memory.failed("acme", "k", "second") == expected
    assert memory.get("acme", "k") == expected
    memory.check("acme", "k")


# specs: A-14
def test_the_third_failure_suspends_the_plan_for_a_while(
    memory: FailureMemory, clock: FakeClock
) -> None:
    for error in ("a", "b", "no such column"):
        memory.failed("acme", "k", error)
    with pytest.raises(PlanSuspended, match=r"'k' failed 3 times .* 4 s; .*no such column") as told:
        memory.check("acme", "k")
    assert told.value.retry_at_s == clock.now() + 4
    clock.advance(4)
    memory.check("acme", "k")


def test_each_further_failure_doubles_the_wait_up_to_five_minutes(
    memory: FailureMemory, clock: FakeClock
) -> None:
    waits = []
    for _ in range(80):
        failure = memory.failed("acme", "k", "no")
        waits.append(failure.retry_at_s - clock.now())
        clock.advance(waits[-1])
    assert waits[:10] == [0, 0, 4, 8, 16, 32, 64, 128, 256, 300]
    assert waits[-1] == 300


def test_a_success_without_failures_writes_nothing(
    memory: FailureMemory, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "update_note", lambda *_: pytest.fail("it wrote"))
    memory.succeeded("acme", "k")


def test_a_day_without_a_failure_forgets_them(memory: FailureMemory, clock: FakeClock) -> None:
    for _ in range(5):
        memory.failed("acme", "k", "no")
    clock.advance(24 * 3600)
    assert memory.get("acme", "k") is None
    assert memory.failed("acme", "k", "no").attempts == 1


def test_tenants_and_keys_fail_apart(memory: FailureMemory) -> None:
    for _ in range(3):
        memory.failed("acme", "k", "no")
    memory.check("acme", "other")
    memory.check("globex", "k")


def test_a_clock_that_was_set_back_suspends_nothing_for_long(
    memory: FailureMemory, clock: FakeClock
) -> None:
    for _ in range(3):
        memory.failed("acme", "k", "no")
    clock.advance(-3600)
    memory.check("acme", "k")


def test_a_thousand_failing_plans_keep_a_bounded_number_of_records(
    memory: FailureMemory, store: MemoryStore
) -> None:
    for i in range(2000):
        memory.failed("acme", f"plan {i}", "x" * 10_000)
    notes = [store.get_note("acme", f"failures:{shard:x}") or "" for shard in range(16)]
    assert all(0 < len(note) < 64 * 700 for note in notes)
    latest = memory.get("acme", "plan 1999")
    assert latest is not None
    assert len(latest.last_error) == 500


@pytest.mark.parametrize("note", ["", "[]", "not json", '{"k": {"attempts": "many"}}'])
def test_a_note_that_cannot_be_read_is_forgotten_with_a_warning(
    note: str, memory: FailureMemory, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    for shard in range(16):
        store.put_note("acme", f"failures:{shard:x}", note)
    memory.check("acme", "k")
    assert "cannot be read" in caplog.text
    assert memory.failed("acme", "k", "no").attempts == 1


def test_an_error_that_is_not_valid_text_is_kept_readable(memory: FailureMemory) -> None:
    assert memory.failed("acme", "k", "bad \ud800 byte").last_error == "bad ? byte"


# specs: A-14
@settings(max_examples=60)
@given(st.lists(st.sampled_from(["fail", "succeed", "wait"]), max_size=25))
def test_attempts_count_the_failures_since_the_last_success_which_forgets_all(
    steps: list[str],
) -> None:
    clock = FakeClock()
    memory, count = FailureMemory(MemoryStore(), clock), 0
    for step in steps:
        if step == "fail":
            count += 1
            assert memory.failed("t", "k", "no").attempts == count
        elif step == "succeed":
            count = 0
            memory.succeeded("t", "k")
            memory.check("t", "k")
        else:
            clock.advance(60)
    assert (memory.get("t", "k") is None) == (count == 0)
