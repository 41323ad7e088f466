import asyncio
import json
import threading
from typing import Any, cast

import httpx
import openai
import pytest
from pydantic import TypeAdapter

from semcache.errors import (
    DeadlineExceeded,
    InvalidJson,
    InvalidSettings,
    ModelRejected,
    ModelUnavailable,
    OperationFailed,
    SourceRejected,
)
from semcache.events import ModelCalled, ReflectionFinished, ReflectionStarted
from semcache.responses.cache import Responses
from semcache.responses.cached_model import CachedModel
from semcache.runs.attempts import fault_of
from semcache.runs.recorder import Runs
from semcache.runs.reflection import (
    Attempt,
    Prompt,
    Reflection,
    stop_after_attempts,
    stop_after_seconds,
    stop_on,
)
from semcache.runs.run_context import OpenRun, node
from semcache.testing import FakeClock, RecordingObserver, ScriptedModel

NUMBERS = TypeAdapter(list[int])


class Flaky:
    """Work that raises what it is given, one an attempt, and then gives "done"."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> str:
        self.attempts.append(attempt)
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def reflection(**more: Any) -> Reflection:
    return Reflection(clock=more.pop("clock", FakeClock()), **more)


def invalid() -> Exception:
    try:
        NUMBERS.validate_json('{"no": "list"}')
    except ValueError as error:
        return error
    raise AssertionError


def late() -> Exception:
    request: Any = httpx.Request("POST", "http://x")
    return openai.APITimeoutError(request)


def failed(cause: Exception) -> OperationFailed:
    error = OperationFailed(f"operation 'x' failed: {cause}", node="x")
    error.__cause__ = cause
    return error


# What kind of failure ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ModelUnavailable("slow down", status=429), "rate"),
        (ModelRejected("no", status=429, code="insufficient_quota"), "quota"),
        (ModelRejected("who are you", status=401), "auth"),
        (SourceRejected("no", status=403), "auth"),
        (SourceRejected("gone", status=404), "input"),
        (SourceRejected("oops", status=503), "passing"),
        (failed(SourceRejected("oops", status=429)), "rate"),
        (failed(PermissionError("no")), "auth"),
        (failed(TimeoutError()), "timeout"),
        (failed(ConnectionResetError()), "passing"),
        (DeadlineExceeded("late"), "timeout"),
        (ModelUnavailable("late", code="timeout"), "timeout"),
        (invalid(), "validation"),
        (json.JSONDecodeError("no", "x", 0), "validation"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (late(), "timeout"),
        (RuntimeError("took 4010 ms, network"), "other"),
        (RuntimeError("the orders were unauthorizedly read"), "other"),
        (SourceRejected("timeout", status=404), "input"),
        (InvalidJson("rate limit is no number"), "validation"),
    ],
)
def test_a_failure_is_told_by_type_and_status_and_not_by_its_words(
    error: Exception, fault: str
) -> None:
    assert fault_of(error) == fault


def test_a_chain_of_causes_that_ends_in_itself_is_no_trap() -> None:
    error = RuntimeError("a")
    error.__cause__ = error
    assert fault_of(error) == "other"


# Attempts ─────────────────────────────────────────────────────────────────────────────────────────


# specs: B-8
def test_what_fails_once_and_then_works_takes_two_attempts_and_leaves_two_nodes() -> None:
    clock, heard, runs = FakeClock(), RecordingObserver(), Runs()
    work = Flaky(RuntimeError("hiccup"))
    reflect = reflection(clock=clock)

    def emit(event: Any) -> None:
        runs(event)
        heard(event)

    with OpenRun("top", home=runs, emit=emit, clock=clock) as top:
        assert reflect.step("X", work) == "done"
    assert len(work.attempts) == 2
    run = runs.view(top.id)
    assert [(n.name, n.status) for n in run if n.kind == "attempt"] == [
        ("X", "failed"), ("X (retry 1)", "completed"),
    ]  # fmt: skip
    assert [(e.level, e.run) for e in heard.of(ReflectionStarted)] == [("step", top.id)]
    assert [e.retry for e in heard.of(ReflectionFinished)] == [True]
    (entry,) = reflect.history
    assert (entry.resolution, entry.success, entry.attempt) == ("retry", True, 1)
    assert entry.error == "RuntimeError: hiccup"


# specs: B-9
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (lambda: ModelUnavailable("rate limit exceeded", status=429), 1),
        (lambda: ModelRejected("unauthorized", status=401), 1),
        (lambda: ModelRejected("quota exceeded", status=429, code="insufficient_quota"), 1),
        (invalid, 3),
        (lambda: DeadlineExceeded("timeout"), 2),
        (lambda: RuntimeError("whatever"), 3),
        (lambda: RuntimeError("Rate limit exceeded"), 1),
        (lambda: RuntimeError("user is unauthorized"), 1),
        (lambda: RuntimeError("authentication failed"), 1),
        (lambda: RuntimeError("quota exceeded for today"), 1),
        (lambda: RuntimeError("schema validation failed"), 3),
        (lambda: RuntimeError("JSON parse error"), 3),
        (lambda: RuntimeError("timeout"), 2),
        (lambda: httpx.ReadTimeout("slow"), 2),
        (late, 2),
    ],
)
def test_how_often_a_failure_is_tried_again_depends_on_what_it_is(
    error: Any, attempts: int
) -> None:
    work = Flaky(*(error() for _ in range(10)))
    with pytest.raises(type(error())):
        reflection().step("X", work)
    assert len(work.attempts) == attempts


# specs: B-9
def test_switched_off_there_is_one_attempt_and_its_own_error() -> None:
    error = RuntimeError("hiccup")
    reflect = reflection(enabled=False)
    with pytest.raises(RuntimeError) as caught:
        reflect.step("X", Flaky(error))
    assert caught.value is error
    assert reflect.history == ()


# specs: U7
def test_each_attempt_of_an_async_step_is_a_node_that_ends_with_the_work() -> None:
    runs, clock = Runs(), FakeClock()
    reflect = reflection(clock=clock)

    async def work(attempt: Attempt) -> str:
        await asyncio.sleep(0)
        if attempt.number == 1:
            raise RuntimeError("hiccup")
        with node("inside"):
            return "done"

    async def main() -> str:
        with OpenRun("r", home=runs, clock=clock):
            return await reflect.step("X", work)

    assert asyncio.run(main()) == "done"
    run = runs.latest()
    assert run is not None
    assert run.root is not None
    children = list(run.root.children.values())
    assert [(each.name, each.status) for each in children] == [
        ("X", "failed"), ("reflection on X", "completed"), ("X (retry 1)", "completed"),
    ]  # fmt: skip
    assert [each.name for each in children[2].children.values()] == ["inside"]
    assert reflect.history[0].success


# specs: U7
def test_an_async_step_raises_what_its_last_attempt_raised() -> None:
    error = RuntimeError("unauthorized")

    async def work(_: Attempt) -> str:
        raise error

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(reflection().step("X", work))
    assert caught.value is error


def test_what_is_interrupted_is_not_looked_at() -> None:
    reflect = reflection()
    with pytest.raises(KeyboardInterrupt):
        reflect.step("X", Flaky(KeyboardInterrupt()))
    assert reflect.history == ()


def test_delays_pass_through_the_clock_that_is_given() -> None:
    clock = FakeClock()
    reflection(clock=clock, delay_s=5).step("X", Flaky(RuntimeError(), RuntimeError()))
    assert clock.sleeps == [5, 5]


def test_stop_rules_combine() -> None:
    clock = FakeClock()

    def slow(attempt: Attempt) -> None:
        clock.advance(10)
        raise RuntimeError

    late = stop_after_seconds(15) & stop_after_attempts(2)
    with pytest.raises(RuntimeError):
        reflection(clock=clock, attempts=50, stop=late | stop_on("auth")).step("X", slow)
    assert clock.monotonic() == 20
    work = Flaky(invalid(), invalid())
    with pytest.raises(ValueError, match="list"):
        reflection(stop=stop_on("validation")).step("X", work)
    assert len(work.attempts) == 1


def test_an_attempt_that_wrote_is_never_repeated() -> None:
    clock, runs = FakeClock(), Runs()
    reflect = reflection(clock=clock)

    def pay(attempt: Attempt) -> None:
        with node("pay", "operation") as opened:
            opened.wrote("pay")
            raise RuntimeError("the line went dead")

    with pytest.raises(RuntimeError), OpenRun("top", home=runs, clock=clock):
        reflect.step("X", pay)
    (entry,) = reflect.history
    assert (entry.resolution, entry.reason) == (
        "abort", "pay may have written already, and takes no idempotency key",
    )  # fmt: skip


def test_history_hides_secrets_is_bounded_and_the_callers_own() -> None:
    reflect = reflection(attempts=2)
    for _ in range(1100):
        reflect.step("X", Flaky(RuntimeError("sk-planted-4711-abc")))
    assert len(reflect.history) == 1000
    assert "planted" not in repr(reflect.history)


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"delay_s": -1}])
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidSettings, match="expected"):
        reflection(**wrong)


def test_many_threads_reflect_at_once() -> None:
    reflect = reflection()
    done: list[str] = []

    def work() -> None:
        done.extend(reflect.step("X", Flaky(RuntimeError())) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["done"] * 160
    assert [entry.success for entry in reflect.history] == [True] * 160


# A model that judges ──────────────────────────────────────────────────────────────────────────────


def verdict(**more: Any) -> str:
    return json.dumps({"shouldRetry": True, "reason": "the town was misspelled", **more})


PROMPT = Prompt("List the numbers.", {"town": "Osslo"}, "You are a clerk.")


# specs: B-10
def test_what_a_diagnosis_revises_is_handed_to_the_next_attempt() -> None:
    judge = ScriptedModel([
        verdict(revisedPromptData={"town": "Oslo"}, revisedSystemPrompt="Answer in JSON alone.")
    ])  # fmt: skip
    model = ScriptedModel(["there are two", "[1, 2]"])
    value = reflection(model=judge).ask(PROMPT, model, read=NUMBERS.validate_json)
    assert value == [1, 2]
    system, user, complaint = model.calls[1]
    assert system.content == "Answer in JSON alone."
    assert user.content == 'List the numbers.\n\n{"town":"Oslo"}'
    assert "could not be used" in complaint.content
    assert "Osslo" in judge.calls[0][1].content


# specs: B-10
def test_the_remembered_answer_that_failed_is_bypassed_and_forgotten() -> None:
    with Responses.open(clock=FakeClock()) as responses:
        inner = ScriptedModel(["prose", "[1]"])
        model = CachedModel(inner, responses)
        prompt = Prompt("List the numbers.")
        model.complete(prompt.messages())
        assert reflection().ask(prompt, model, read=NUMBERS.validate_json) == [1]
        assert len(inner.calls) == 2
        inner.reply("[2]")
        assert model.complete(prompt.messages()).text == "[2]"


# specs: B-10
@pytest.mark.parametrize(
    "replies",
    [
        ["I would try again!", "Really, try again."],
        [json.dumps({"shouldRetry": "yes", "reason": 5}), "[]"],
        [ModelUnavailable("down")],
        [json.dumps({"shouldRetry": True, "reason": "", "revisedPromptData": [1]})] * 2,
    ],
)
def test_a_judge_that_says_nothing_of_use_or_fails_ends_it_with_the_first_error(
    replies: Any,
) -> None:
    judge, model = ScriptedModel(replies), ScriptedModel(["prose"])
    reflect = reflection(model=judge)
    with pytest.raises(ValueError, match="Invalid JSON"):
        reflect.ask(PROMPT, model, read=NUMBERS.validate_json)
    (entry,) = reflect.history
    assert entry.reason.startswith("Reflection analysis failed: ")
    assert judge.unused == []


def test_a_judge_that_always_says_retry_is_bounded() -> None:
    judge, model = ScriptedModel([verdict()] * 100), ScriptedModel(["prose"] * 100)
    with pytest.raises(ValueError, match="Invalid JSON"):
        reflection(model=judge, attempts=4).ask(PROMPT, model, read=NUMBERS.validate_json)
    assert (len(model.calls), len(judge.calls)) == (4, 3)


def test_a_judge_is_not_asked_about_what_is_hopeless() -> None:
    judge, model = ScriptedModel(), ScriptedModel([ModelRejected("no", status=401)])
    with pytest.raises(ModelRejected):
        reflection(model=judge).ask(PROMPT, model, read=str)
    assert judge.calls == []


def test_every_call_is_reported_with_its_tokens() -> None:
    heard = RecordingObserver()
    reflect = reflection(observer=heard, model=ScriptedModel([verdict()]))
    reflect.ask(PROMPT, ScriptedModel(["prose", "[1]"]), read=NUMBERS.validate_json)
    calls = [(call.purpose, call.attempt) for call in heard.of(ModelCalled)]
    assert calls == [("ask", 1), ("reflect", 1), ("ask", 2)]


def test_a_prompt_of_ten_megabytes_is_cut_for_the_judge() -> None:
    judge, model = ScriptedModel([verdict()]), ScriptedModel(["prose", "[1]"])
    big = Prompt("x" * 10_000_000)
    reflection(model=judge).ask(big, model, read=NUMBERS.validate_json)
    assert len(judge.calls[0][1].content) < 30_000


def test_data_that_is_not_json_is_refused_before_anybody_is_asked() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (float("nan"), {1, 2}, cycle, object()):
        with pytest.raises(InvalidJson, match="the data of a prompt"):
            Prompt("List.", {"x": cast("Any", value)})
