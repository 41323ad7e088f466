import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidJson
from semcache.planners.model.answers import json_object

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


def test_a_line_break_inside_a_text_is_forgiven() -> None:
    assert json_object('{"a": "two\nlines"}') == {"a": "two\nlines"}


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


@settings(max_examples=100, deadline=None)
@given(OBJECTS, st.sampled_from(["", "Sure! ", "```json\n", "<think>{}</think>"]))
def test_any_object_is_read_back_whatever_stands_before_it(value: JsonObject, before: str) -> None:
    assert json_object(before + json.dumps(value) + "\n```\nDone.") == value


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{}[]",: ab1\\\n`<>/think', max_size=40))
def test_any_text_gives_an_object_or_a_typed_error(text: str) -> None:
    found: Json
    try:
        found = json_object(text)
    except InvalidJson:
        return
    assert isinstance(found, dict)
