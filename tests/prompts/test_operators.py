import pytest

from semcache.prompts.schema import AGGREGATES, OPERATORS, aggregate_name, operator_name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("greater_than", ">"),
        ("greater than", ">"),
        ("$gte", ">="),
        ("less_than_or_equal", "<="),
        ("not_equals", "!="),
        ("==", "="),
        ("is_not_null", "is_not_null"),
        ("~", None),
        ("", None),
    ],
)
def test_an_operator_is_known_by_every_usual_spelling(spelling: str, name: str | None) -> None:
    # specs: F4 (operators)
    assert operator_name(spelling) == name


def test_canonical_names_are_their_own() -> None:
    assert [operator_name(name) for name in OPERATORS] == list(OPERATORS)
    assert [aggregate_name(name) for name in AGGREGATES] == list(AGGREGATES)


def test_an_aggregate_is_known_by_every_usual_spelling() -> None:
    # specs: F4 (aggregates)
    assert aggregate_name("Average") == "avg"
    assert aggregate_name("standard_deviation") == "stddev"
    assert aggregate_name("sum of squares") is None
