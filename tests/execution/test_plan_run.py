"""A result as text for a person."""

import pytest

from semcache.canonical import Json
from semcache.execution.plan_run import to_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Execution completed but no result was produced."),
        ({"answer": "42", "message": "no"}, "42"),
        ({"answer": ""}, ""),
        ({"answer": [{"b": 1, "a": "é"}]}, '[{"b":1,"a":"é"}]'),
        ({"answer": False}, "false"),
        ({"answer": None, "message": "sorry"}, "sorry"),
        ({"message": {"a": 1}}, '{"a":1}'),
        ({"answer": None}, '{\n  "answer": null\n}'),
        ({}, "{}"),
        ([1], "[\n  1\n]"),
        ("text", '"text"'),
    ],
)
def test_an_answer_or_a_message_is_told_and_else_all_of_it(value: Json, text: str) -> None:
    assert to_text(value) == text
