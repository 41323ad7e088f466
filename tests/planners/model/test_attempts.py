from collections.abc import Sequence

import pytest

from semcache.errors import InvalidSettings, ModelUnavailable
from semcache.events import ModelCalled
from semcache.planners.model.attempts import Accepted, Asking, Rejected
from semcache.ports import Completion, Message
from semcache.testing import FakeClock, RecordingObserver, ScriptedModel

ASK = [Message("system", "Count."), Message("user", "How many?")]


def read(text: str) -> Accepted[int] | Rejected[int]:
    """Take a number from 1 to 5; a bigger one is better than nothing."""
    if not text.isdigit():
        return Rejected((f"{text!r} is no number", "be brief"))
    number = int(text)
    return Accepted(number) if number <= 5 else Rejected(("too big",), usable=number)


def ask(model: ScriptedModel, *, attempts: int = 3) -> Accepted[int] | Rejected[int]:
    asking = Asking(model, "count", attempts)
    return asking.ask(ASK, read=read, retry=lambda errors: f"REJECTED\n{errors}")


def test_a_good_answer_is_asked_for_once() -> None:
    model = ScriptedModel(["3"])
    assert ask(model) == Accepted(3, "3")
    assert model.calls == [tuple(ASK)]


# specs: A-15
def test_what_was_wrong_goes_into_the_next_prompt_and_does_not_pile_up() -> None:
    model = ScriptedModel(["three", "9", "3"])
    assert ask(model) == Accepted(3, "3")
    first, second, third = model.calls
    assert second == (*first, Message("user", "REJECTED\n- 'three' is no number\n- be brief"))
    assert third == (*first, Message("user", "REJECTED\n- too big"))


def test_the_last_rejection_comes_back_after_all_attempts() -> None:
    model = ScriptedModel(["a", "b", "c", "3"])
    assert ask(model) == Rejected(("'c' is no number", "be brief"), answer="c")
    assert model.unused == ["3"]


def test_an_answer_that_is_usable_is_taken_if_no_better_one_comes() -> None:
    assert ask(ScriptedModel(["9", "nine"]), attempts=2) == Accepted(9, "9")
    assert ask(ScriptedModel(["9", "3"]), attempts=2) == Accepted(3, "3")


def test_every_call_is_reported_also_one_that_fails() -> None:
    seen, clock = RecordingObserver(), FakeClock()
    model = ScriptedModel([Completion("a", "m-1", 11, 7), ModelUnavailable("down")])
    asking = Asking(model, "count", 3, seen, clock)
    with pytest.raises(ModelUnavailable):
        asking.ask(ASK, read=read, retry=str)
    called = ModelCalled(
        run="", purpose="count", model="m-1", attempt=1, seconds=0, prompt_tokens=11,
        completion_tokens=7,
    )  # fmt: skip
    failed = ModelCalled(
        run="", purpose="count", model="scripted", attempt=2, seconds=0, prompt_tokens=0,
        completion_tokens=0, error="ModelUnavailable",
    )  # fmt: skip
    assert seen.events == [called, failed]


def test_no_attempts_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="attempts is 0"):
        ask(ScriptedModel(), attempts=0)


class Remembering(ScriptedModel):
    """A model that tells how it was asked."""

    def __init__(self, *replies: str | Completion) -> None:
        super().__init__(replies)
        self.told: list[str] = []

    def complete(self, messages: Sequence[Message]) -> Completion:
        self.told.append("complete")
        return super().complete(messages)

    def fresh(self, messages: Sequence[Message]) -> Completion:
        self.told.append("fresh")
        return super().complete(messages)

    def forget(self, messages: Sequence[Message]) -> None:
        self.told.append(f"forget {len(messages)}")


# specs: B-10
def test_what_was_rejected_is_forgotten_and_the_next_answer_is_a_fresh_one() -> None:
    model = Remembering("three", "9", "3")
    assert ask(model) == Accepted(3, "3")
    assert model.told == ["complete", "forget 2", "fresh", "forget 3", "fresh"]


# specs: B-10
def test_nothing_is_taken_from_memory_if_a_fresh_answer_is_asked_for() -> None:
    model = Remembering("3")
    Asking(model, "count", 3).ask(ASK, read=read, retry=str, fresh=True)
    assert model.told == ["fresh"]


# specs: B-7
def test_an_answer_from_memory_is_reported_as_one() -> None:
    seen = RecordingObserver()
    model = ScriptedModel([Completion("3", cached=True)])
    Asking(model, "count", 3, seen).ask(ASK, read=read, retry=str)
    assert [event.cached for event in seen.of(ModelCalled)] == [True]
