import pytest

from semcache.planners.rules.phrases import tokenized
from tests.planners.conftest import Ask


def test_tokens_keep_their_place_and_lose_their_possessive() -> None:
    found = tokenized("What's Texas\u2019s re-order \u2013 isn't it?")
    assert [token.word for token in found] == [
        "what", "texas", "re", "order", "-", "not", "it", "?",
    ]  # fmt: skip
    assert (found[1].start, found[1].end) == (7, 12)


@pytest.mark.parametrize(
    ("prompt", "state"),
    [
        ("sales in IN", "IN"),
        ("sales in OR", "OR"),
        ("sales in IN and OR", {"operator": "in", "operand": ["IN", "OR"]}),
        ("sales in TX OR CA", {"operator": "in", "operand": ["TX", "CA"]}),
        ("SALES IN TX OR CA", {"operator": "in", "operand": ["TX", "CA"]}),
        ("sales in tx", "TX"),
        ("Sales In Texas", "TX"),
    ],
)
def test_a_code_that_is_also_a_word_counts_only_where_a_name_stands(
    ask: Ask, prompt: str, state: object
) -> None:
    schema = ask(prompt)
    assert not schema.partial
    assert schema.params == {"state": state}


def test_the_longest_phrase_wins(ask: Ask) -> None:
    assert ask("gift card sales").params == {"payment_method": "gift card"}
    assert ask("total number of sales").params == {"amount": {"aggregate": "count"}}


def test_plurals_and_capitals_make_no_difference(ask: Ask) -> None:
    asked = {ask(prompt).identity for prompt in ("Toy Sales", "toys sale", "TOYS SALES")}
    assert len(asked) == 1


def test_a_prefix_that_turns_a_value_round_is_read(ask: Ask) -> None:
    assert ask("non-electronics sales").params == {
        "category": {"operator": "!=", "operand": "Electronics"}
    }
