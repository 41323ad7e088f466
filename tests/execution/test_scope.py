"""What nodes leave behind, and reading it."""

import pytest

from semcache.errors import ExpressionError
from semcache.execution.scope import Scope


@pytest.fixture
def scope() -> Scope:
    scope = Scope(frozenset({("b", "input", "name")}))
    scope.keep("start_node", {"year": 2024})
    scope.keep("a", {"rows": [{"n": 1}, {"n": 2}]})
    return scope


def test_expressions_read_results_by_node_and_the_last_one(scope: Scope) -> None:
    assert scope.value("$.start_node.year", "b") == 2024
    assert scope.value("$.a.rows[*].n", "b") == [1, 2]
    assert scope.value("$._lstt.rows.size()", "b") == 2
    assert scope.value("$.nowhere", "b") is None


def test_a_later_result_of_a_node_replaces_the_one_before(scope: Scope) -> None:
    scope.keep("a", 5)
    assert scope.value("$.a", "b") == 5


def test_a_condition_holds_unless_it_is_null_false_zero_or_empty(scope: Scope) -> None:
    assert scope.holds("$.a.rows", "b")
    assert not scope.holds("$.a.none", "b")
    assert not scope.holds("$.a.rows[?(@.n > 9)]", "b")


def test_expressions_are_replaced_at_any_depth_but_not_in_data(scope: Scope) -> None:
    value = scope.resolved(
        {"name": "$.a", "x": [{"y": "$.start_node.year"}], "z": "$$.a", "n": 1}, ("b", "input")
    )
    assert value == {"name": "$.a", "x": [{"y": 2024}], "z": "$.a", "n": 1}


def test_an_expression_that_cannot_be_read_names_the_node(scope: Scope) -> None:
    with pytest.raises(ExpressionError, match="node 'b': ") as raised:
        scope.resolved(["$."], ("b", "input"))
    assert raised.value.node == "b"
