import pytest

from semcache.matching.words.content import POLAR, content, embedded_text, is_telling
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import TemplateText, mask


def template(text: str) -> TemplateText:
    return mask(text, find_mentions(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sales by state", "Please show me the sales by state"),
        ("total sales in 2024", "What are the total sales in 2023?"),
        ("sale by state", "sales by states"),
        ("how many orders in 2024", "the number of orders in 2024"),
        ("population of the capital", "population in the capital"),
        ("what was the total", "what had the total"),
        ("flights from 12 to 13", "flights to 12 from 13"),
        ("orders over $500", "orders of more than $500"),
        ("orders below $500", "orders of less than $500"),
        ("sales by state in ascending order", "sales by state from low to high"),
        ("sales by state desc", "sales by state from highest to lowest"),
    ],
)
def test_dress_number_and_habit_do_not_matter(one: str, other: str) -> None:
    left, right = template(one), template(other)
    assert content(left.text) == content(right.text)
    assert embedded_text(left) == embedded_text(right)


def test_a_question_for_yes_or_no_is_embedded_like_the_list_that_it_asks_about() -> None:
    asked, listed = template("Are there unpaid orders?"), template("the unpaid orders")
    assert embedded_text(asked) == embedded_text(listed)


@pytest.mark.parametrize("text", ["could you list the orders", "do you have orders", "may I see"])
def test_a_request_in_the_form_of_a_question_asks_for_no_yes_or_no(text: str) -> None:
    assert POLAR not in content(text)


def test_a_prompt_of_nothing_but_dress_is_embedded_whole() -> None:
    assert embedded_text(template("Could you please?")) == "could you please"


@pytest.mark.parametrize(
    ("text", "telling"),
    [("mean 2024", False), ("what does 2024 mean", False), ("monthly sales report of 2024", True)],
)
def test_only_a_template_with_words_of_its_own_may_teach_a_value(text: str, telling: bool) -> None:
    assert is_telling(template(text)) is telling
