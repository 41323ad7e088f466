"""References in the texts of a program."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.plans.program import Bound, Variable, found, pieces, variables

NOTHING = Bound(frozenset(), {})


def said(text: str, *spans: tuple[int, int]) -> list[str]:
    """Return the pieces of a text, references in angle brackets."""
    return [p if isinstance(p, str) else f"<{p.written}>" for p in pieces(text, spans)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("", []),
        ("a {{x}} b", ["a ", "<{{x}}>", " b"]),
        ("{{ x }}${y.z}", ["<{{ x }}>", "<${y.z}>"]),
        ("{{params.x}} and {{ params . y }}", ["{{params.x}} and {{ params . y }}"]),
        ("${{params.amount}}", ["${{params.amount}}"]),
        ("$5, $.a, $x, {x}, {{2024}}, ${1}, {{}}", ["$5, $.a, $x, {x}, {{2024}}, ${1}, {{}}"]),
        ("{{{x}}}", ["{", "<{{x}}>", "}"]),
    ],
)
def test_references_are_found_where_they_are_whole(text: str, expected: list[str]) -> None:
    assert said(text) == expected


def test_a_reference_has_a_name_and_a_path() -> None:
    assert pieces("${a.b.c}") == (Variable("a", ("b", "c"), "${a.b.c}", typed=True),)
    assert pieces("{{a}}") == (Variable("a", (), "{{a}}", typed=False),)


def test_a_value_in_a_text_neither_is_a_reference_nor_completes_one() -> None:
    assert said("{{a}} {{b}}", (0, 5)) == ["{{a}}", " ", "<{{b}}>"]
    assert said("{{a}}", (2, 3)) == ["{{", "a", "}}"]
    assert said("{{a}}", (0, 1)) == ["{", "{a}}"]
    assert said("{{ab}}", (3, 3)) == ["{{a", "b}}"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"var": "x"}, ["x"]),
        ({"var": "x.y"}, ["x"]),
        ({"var": "x", "z": 1}, []),
        ({"var": 5}, []),
        (["{{a}}", {"k": "${b}"}, 5, None], ["a", "b"]),
    ],
)
def test_references_are_found_at_any_depth(value: Any, names: list[str]) -> None:
    assert [v.name for _, v in variables(value, (), NOTHING)] == names


def test_bound_values_are_never_read() -> None:
    body: Any = {"a": "{{x}} {{y}}", "b": {"c": "{{z}}"}, "d": [["{{w}}"]]}
    bound = Bound.of(body, frozenset({("a", 0, 5), ("b",), ("d", 0, 0)}))
    assert [v.name for _, v in variables(body, (), bound)] == ["y"]
    assert bound.whole == {("b",), ("d", 0, 0)}


def test_what_is_not_there_is_found_to_be_null() -> None:
    assert found({"a": [1]}, ("a", 5)) is None
    assert found({"a": [1]}, ("a", "b")) is None
    assert found({"a": [1]}, ("a", 0)) == 1


@given(st.text(alphabet="{}$ax.p ", max_size=30))
@settings(max_examples=100)
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(p if isinstance(p, str) else p.written for p in pieces(text)) == text
    assert all(isinstance(p, str) for p in pieces(text, ((0, len(text)),)))
