"""Built-in operations, and asking a person as one of them."""

import pytest

from semcache import Catalog, Operation, Question
from semcache.canonical import JsonObject
from semcache.catalog.builtin import ASK_USER, ask_user
from semcache.errors import InputNeeded, InvalidOperation, UnknownOperation


def make(name: str, summary: str = "Do.") -> Operation:
    return Operation(name, summary, {"type": "object"}, call=lambda given: "own")


def test_a_built_in_operation_is_found_by_name_and_not_listed() -> None:
    plain = Catalog([make("list_issues")])
    catalog = plain.with_builtins([ask_user()])
    assert catalog.get(ASK_USER).effect == "read"
    assert ASK_USER in catalog
    assert ASK_USER in catalog.fingerprints
    assert catalog.builtins == (ASK_USER,)
    assert catalog.names == plain.names == tuple(one.name for one in catalog)
    assert (len(catalog), catalog.fingerprint) == (1, plain.fingerprint)
    assert [v.what for v in catalog.violations(ASK_USER, {})] == ["'topic' is a required property"]


def test_an_operation_of_the_domain_goes_before_a_built_in_one_of_its_name() -> None:
    catalog = Catalog([make(ASK_USER, "Ours.")]).with_builtins([ask_user()])
    assert catalog.get(ASK_USER).summary == "Ours."
    assert catalog.builtins == ()
    assert Catalog().with_builtins([ask_user()]).with_(make(ASK_USER)).builtins == ()


def test_built_in_operations_stay_when_others_are_added() -> None:
    catalog = Catalog().with_builtins([ask_user()]).with_(make("list_issues"))
    assert catalog.builtins == (ASK_USER,)
    assert catalog.with_builtins([make("other")]).builtins == (ASK_USER, "other")
    with pytest.raises(InvalidOperation, match="two operations are named 'x'"):
        Catalog(builtins=[make("x"), make("x")])


def test_other_code_can_stand_behind_operations_and_nothing_else_changes() -> None:
    catalog = Catalog([make("list_issues")]).with_builtins([ask_user()])
    changed = catalog.with_calls({ASK_USER: lambda given: 25, "list_issues": lambda given: []})
    assert changed == catalog
    call = changed.get(ASK_USER).call
    assert call is not None
    assert call({"topic": "page size"}) == 25
    unchanged = catalog.get("list_issues").call
    assert unchanged is not None
    assert unchanged({}) == "own"
    with pytest.raises(UnknownOperation, match="'nothing'"):
        catalog.with_calls({"nothing": lambda given: None})


def test_a_question_without_an_answer_says_what_is_asked() -> None:
    call = ask_user().call
    assert call is not None
    with pytest.raises(InputNeeded, match="asks for 'page size' and nobody has answered") as raised:
        call({"topic": "page size", "operation": "list_issues", "input": "perPage"})
    assert raised.value.question["input"] == "perPage"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "Please provide: size"),
        (
            {"type": "integer", "minimum": 1, "maximum": 100, "description": "Results per page."},
            "Please provide: size (Results per page; a whole number from 1 to 100)",
        ),
        ({"enum": ["open", "closed"]}, "Please provide: size (one of open, closed)"),
        ({"type": "array"}, "Please provide: size (several, with commas between)"),
        ({"type": ["string", "null"]}, "Please provide: size"),
    ],
)
def test_a_question_tells_which_answers_will_do(schema: JsonObject, text: str) -> None:
    assert Question.of({"topic": "size"}, schema).text == text


def test_a_question_in_words_of_its_own_is_asked_in_them() -> None:
    asked = Question.of({"topic": "size", "question": "How many?"}, {"type": "integer"})
    assert asked.to_json() == {"topic": "size", "text": "How many?", "answer": {"type": "integer"}}
