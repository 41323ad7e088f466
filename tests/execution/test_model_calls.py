"""What a model replied."""

import pytest

from semcache.errors import InvalidJson
from semcache.execution.instructions import MAX_TRIED, objects, several, verdict


# specs: C-4
@pytest.mark.parametrize(
    ("reply", "holds"),
    [
        ('{"result": true, "explanation": "it is"}', True),
        ('Sure:\n```json\n{"result": false, "explanation": "a } b"}\n```\nDone.', False),
        ('<think>{"result": true}</think>{"result": false}', False),
        ('{"result": boolean} means {"result": true}', True),
        ('{"note": {"result": false}} {"result": true, "raw": "a\nb"}', True),
        ('{"result": true} or so {"result": true}', True),
    ],
)
def test_a_decision_is_the_boolean_of_a_json_object(reply: str, holds: bool) -> None:
    assert verdict(reply) is holds


# specs: C-4
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"result": "true"}', "'true'; expected true or false"),
        ('{"result": 1}', "is 1; expected"),
        ('{"result": null}', "is None; expected"),
        ("true", "expected a JSON object"),
        ("", "expected a JSON object"),
        ('{"outer": {"result": true}}', "expected a JSON object"),
        ('[{"result": true}', None),
        ('{"result": true} {"result": false}', "decides both ways"),
        ('{"result": NaN}', "expected a JSON object"),
        ('{"result": true', "expected a JSON object"),
    ],
)
def test_anything_else_is_no_decision(reply: str, why: str | None) -> None:
    if why is None:
        assert verdict(reply) is True
        return
    with pytest.raises(InvalidJson, match=why):
        verdict(reply)


@pytest.mark.parametrize("reply", ["{" * 100_000, '{"a":' * 100_000, "{}" * 100_000])
def test_a_reply_that_is_all_braces_is_given_up_on(reply: str) -> None:
    assert len(list(objects(reply))) <= MAX_TRIED


# specs: C-8
def test_several_values_are_members_of_one_object() -> None:
    assert several({"a": 1, "b": None, "c": 3}, ["b", "a"]) == {"b": None, "a": 1}
    assert several('{"a": 0} {"a": 1, "b": 2}', ["a", "b"]) == {"a": 1, "b": 2}
    with pytest.raises(InvalidJson, match="expected an object with 'a', 'b'; it has 'a'"):
        several('{"a": 0}', ["a", "b"])
    with pytest.raises(InvalidJson):
        several([1], ["a", "b"])
