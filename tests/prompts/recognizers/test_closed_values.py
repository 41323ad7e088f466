import pytest

from semcache.prompts.mentions import find_mentions
from semcache.prompts.recognizers.closed_values import ClosedValues

SETS = ClosedValues(
    {
        "category": ["Electronics", "Home & Garden", "Toy", "Grocery"],
        "state": ["CA", "OR", "IN", "NY"],
        "status": ["in_progress", "done"],
        "region": ["CA"],
    }
)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("sales of electronics", "category", "Electronics"),
        ("one electronic item", "category", "Electronics"),
        ("toys by month", "category", "Toy"),
        ("groceries by month", "category", "Grocery"),
        ("home & garden sales", "category", "Home & Garden"),
        ("sales in CA", "state", "CA"),
        ("sales in ca", "state", "CA"),
        ("sales in OR by year", "state", "OR"),
        ("tasks that are in progress", "status", "in_progress"),
        ("tasks in_progress", "status", "in_progress"),
        ("CA's sales", "state", "CA"),
    ],
)
def test_a_declared_value_is_found_in_the_spellings_people_use(
    text: str, field: str, value: str
) -> None:
    found = find_mentions(text, closed=SETS)
    assert [(m.kind, m.name, m.value, m.source) for m in found] == [(field, field, value, "closed")]


@pytest.mark.parametrize("text", ["sales in Ohio or Iowa", "IN OR OUT", "the ca list", "OR else"])
def test_a_word_of_grammar_is_not_taken_for_a_state(text: str) -> None:
    assert find_mentions(text, closed=SETS) == ()


def test_a_member_that_is_a_number_keeps_the_kind_and_names_its_field() -> None:
    found = find_mentions("sales in 2024", closed={"fiscal": ["2023", "2024"]})
    assert [(m.kind, m.name, m.value) for m in found] == [("year", "fiscal", 2024)]


def test_a_plain_mapping_works_as_well() -> None:
    assert [m.kind for m in find_mentions("red shoes", closed={"color": ["Red"]})] == ["color"]


def test_closed_values_are_a_mapping() -> None:
    assert dict(SETS)["region"] == ("CA",)
    assert len(SETS) == 4
