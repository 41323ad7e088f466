"""Arithmetic where a program asks for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json
from semcache.errors import ExecutionError
from semcache.execution.variables import computed, is_arithmetic, number
from semcache.plans.program import pieces


def result(text: str, *values: float) -> Json:
    return computed(pieces(text), values, node="7")


# specs: C-6
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${x} / 2 + 1", 6),
        ("${x} / 4", 2.5),
        ("${x} * ${x} - 1", 99),
        (" ( ${x} + 2 ) * 3 ", 36),
        ("(${x} + 2) * -3", -36),
        ("${x} ** 2 % 7", 2),
        ("{{x}} - 0.5", 9.5),
    ],
)
def test_what_is_written_as_arithmetic_is_computed(text: str, value: Json) -> None:
    assert is_arithmetic(pieces(text))
    assert result(text, *[10] * text.count("x")) == value


# specs: C-6
@pytest.mark.parametrize(
    "text",
    [
        "2024-10-15", "1-800-555", "3 + 4", "${x}-${y}-${z}", "${x}/${y}", "${x}", "-${x}",
        "${x} -5", "${x}- 5", "${x} + y", "${x} + __import__", "${x} // 2 items", "${x} v 1",
        "${x} + ${y}%", "10%", "", "${x} " + "+ 1 " * 200,
    ],
)  # fmt: skip
def test_dates_phones_paths_and_words_are_not_arithmetic(text: str) -> None:
    assert not is_arithmetic(pieces(text))


@pytest.mark.parametrize(
    "text", ["${x} + + 1 2", "${x} + (1", "${x} + 1.2.3", "${x} + 007", "()${x} + 1"]
)
def test_what_cannot_be_read_stays_text(text: str) -> None:
    assert result(text, 1) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${x} / 0", 1),
        ("${x} % 0", 1),
        ("${x} ** ${x}", 10**6),
        ("${x} ** 0.5", -1),
        ("${x} * 10.0", 1e308),
        ("${x} ** -1", 0),
        ("${x} * ${x}", 2**4000),
    ],
)
def test_what_has_no_result_is_an_error_that_names_the_instruction(text: str, value: int) -> None:
    with pytest.raises(ExecutionError, match="cannot compute") as raised:
        result(text, *[value] * text.count("x"))
    assert raised.value.node == "7"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), (2.5, 2.5), ("42", 42), (" -1.5 ", -1.5), ("007", None), (True, None), (None, None),
     ("1-2", None), ([1], None)],
)  # fmt: skip
def test_a_number_may_be_spelled(value: Json, expected: Json) -> None:
    assert number(value) == expected


@given(st.text(alphabet="0123456789 +-*/().%", max_size=40), st.integers(-99, 99))
@settings(max_examples=200)
def test_any_arithmetic_ends(text: str, value: int) -> None:
    parts = pieces("${x} " + text)
    if is_arithmetic(parts):
        try:
            found = computed(parts, [value], node="1")
        except ExecutionError:
            return
        assert found is None or isinstance(found, int | float)
