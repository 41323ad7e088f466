"""Asking a model until its answer can be used."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidJson, InvalidSettings, ModelUnavailable
from semcache.events import ModelCalled
from semcache.ports import Completion, Message
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.testing import FakeClock, RecordingObserver, ScriptedModel

ASK = [Message("system", "Count."), Message("user", "How many?")]


def read(text: str) -> Accepted[int] | Rejected[int]:
    """Take a number from 1 to 5; a bigger one is better than nothing."""
    if not text.isdigit():
        return Rejected((f"{text!r} is no number", "be brief"))
    number = int(text)
    return Accepted(number) if number <= 5 else Rejected(("too big",), usable=number)


def ask(model: ScriptedModel, *, attempts: int = 3) -> Accepted[int] | Rejected[int]:
    asking = Dialog(model, "count", attempts)
    return asking.ask(ASK, read=read, retry=lambda errors: f"REJECTED\n{errors}")


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
    remembered = Completion("a", "m-1", 11, 7, cached=True)
    model = ScriptedModel([remembered, ModelUnavailable("down")])
    asking = Dialog(model, "count", 3, seen, clock)
    with pytest.raises(ModelUnavailable):
        asking.ask(ASK, read=read, retry=str)
    called = ModelCalled(
        run="", purpose="count", model="m-1", attempt=1, seconds=0, prompt_tokens=11,
        completion_tokens=7, cached=True,
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
    again = Remembering("3")
    Dialog(again, "count", 3).ask(ASK, read=read, retry=str, fresh=True)
    assert again.told == ["fresh"]


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


# specs: A-15, D-11
@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, {"b": 2}]}',
        '  {"a": [1, {"b": 2}]}\n',
        'Here it is: {"a": [1, {"b": 2}]} I hope that helps.',
        '```json\n{"a": [1, {"b": 2}]}\n```',
        '```\n{"a": [1, {"b": 2}]}\n```',
        '```JSON\n{"a": [1, {"b": 2}]}',
        '{"example": 1}\n```json\n{"a": [1, {"b": 2}]}\n```',
        '```json\n{"a": [1, {"b": 2}]}\n```\nor\n```json\n{"a": 9}\n```',
        '<think>maybe {"a": 1}?</think>{"a": [1, {"b": 2}]}',
        ' <think>\nhm\n</think>\n```json\n{"a": [1, {"b": 2}]}\n```',
        'maybe {"a": 1}?</think>{"a": [1, {"b": 2}]}',
        'A set {x | x > 0} is not it: {"a": [1, {"b": 2}]}',
        '{"a": [1, {"b": 2,},],}',
        '{"a": [1, {"b": 2 , } ,\n] , }',
        '{"a": [1, {"b": 2}]}}]}',
        '{"a": [1, {"b": 2}]]}',
        '{"a": [1, {"b": 2]}]}',
    ],
)
def test_the_object_is_found_in_what_a_model_says(text: str) -> None:
    assert json_object(text) == {"a": [1, {"b": 2}]}


def test_texts_inside_the_object_are_left_alone() -> None:
    text = r'{"a": "x,]} \" ,} ```json {", "b": "<think>no</think>"}'
    assert json_object("<think></think>" + text) == json.loads(text)
    assert json_object('{"a": "two\nlines"}') == {"a": "two\nlines"}  # which is forgiven


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object was found"),
        ("I cannot help with that.", "no JSON object was found"),
        ("[1, 2]", "no JSON object was found"),
        ("<think>so", "ends inside <think>"),
        ('{"a": [1, 2}', "ends before it is closed"),
        ('{"tasks": [{"id": "task0"}, {"id": "ta', "ends before it is closed"),
        ('{"a": {"b": 1}}, "c": 2}', "closed too early"),
        ('{"a": 1} "c": 2}', "closed too early"),
        ('{"a": 1}, {"b": 2}', "closed too early"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": 1 "b": 2}', "Expecting ',' delimiter"),
        ('{"a": "\\ud800"}', "lone surrogate"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "recursion|nested deeper"),
    ],
)
def test_an_answer_that_cannot_be_read_in_one_way_says_why(text: str, why: str) -> None:
    with pytest.raises(InvalidJson, match=why):
        json_object(text)


def test_a_fault_is_shown_with_what_stands_around_it() -> None:
    broken = json.dumps({f"key{i}": "x" * 40 for i in range(99)})[:-1] + ' "last": 1}'
    with pytest.raises(InvalidJson) as caught:
        json_object(broken)
    message = str(caught.value)
    assert '"last": 1}' in message
    assert len(message) < 2000


def test_a_megabyte_of_brackets_is_answered_in_bounded_time() -> None:
    for text in ('{"' + "[{" * 500_000, '{"a": ' + '"' * 500_000, "{ " * 500_000, "```" * 300_000):
        with pytest.raises(InvalidJson):
            json_object(text)


@settings(max_examples=100)
@given(OBJECTS, st.sampled_from(["", "Sure! ", "```json\n", "<think>{}</think>"]))
def test_any_object_is_read_back_whatever_stands_before_it(value: JsonObject, before: str) -> None:
    assert json_object(before + json.dumps(value) + "\n```\nDone.") == value


@settings(max_examples=100)
@given(st.text(alphabet='{}[]",: ab1\\\n`<>/think', max_size=40))
def test_any_text_gives_an_object_or_a_typed_error(text: str) -> None:
    found: Json
    try:
        found = json_object(text)
    except InvalidJson:
        return
    assert isinstance(found, dict)
