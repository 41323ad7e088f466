import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.canonical import Json
from semcache.errors import InvalidParameter
from semcache.prompts.mentions import Mention, find_mentions, locate_mentions
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import mask


def learned(**values: str) -> LearnedValues:
    known = LearnedValues()
    for name, words in values.items():
        known.add(Parameter(name, words, mention=words))
    return known


def brief(mentions: tuple[Mention, ...]) -> list[tuple[str, str, str, str]]:
    return [(m.text, m.kind, m.source, m.name) for m in mentions]


def test_a_given_parameter_is_found_by_its_mention() -> None:
    params = [Parameter("city", "San Francisco", mention="SFO")]
    found = find_mentions("flights to sfo", given=params)
    assert brief(found) == [("sfo", "city", "given", "city")]
    assert found[0].value == "San Francisco"


def test_a_given_value_without_mention_is_found_word_for_word() -> None:
    found = find_mentions("Sales in Boston", given=[Parameter("city", "boston")])
    assert brief(found) == [("Boston", "city", "given", "city")]


def test_a_given_value_is_found_where_a_number_is_spelled_out() -> None:
    found = find_mentions("a flat with three beds", given=[Parameter("beds", "3")])
    assert brief(found) == [("three", "number", "given", "beds")]


def test_a_given_value_that_several_words_could_mean_is_not_placed() -> None:
    found = find_mentions("three beds, three baths", given=[Parameter("beds", "3")])
    assert [m.name for m in found] == ["", ""]


@pytest.mark.parametrize("value", [None, True, ["a"], {"a": 1}, ""])
def test_a_value_that_is_no_word_has_no_mention(value: Json) -> None:
    given = [Parameter("flag", value)]
    assert find_mentions("a true flag", given=given) == ()


def test_a_given_number_keeps_the_kind_that_a_lookup_without_it_would_see() -> None:
    given = [Parameter("fiscal_period", 2024, mention="2024")]
    assert brief(find_mentions("sales in 2024", given=given)) == [
        ("2024", "year", "given", "fiscal_period")
    ]


def test_a_given_amount_takes_its_currency_sign_along() -> None:
    given = [Parameter("amount", 500, mention="500")]
    assert brief(find_mentions("orders over $500", given=given)) == [
        ("$500", "money", "given", "amount")
    ]


def test_a_given_text_takes_its_quotes_along() -> None:
    given = [Parameter("title", "Red shoes", mention="Red shoes")]
    assert brief(find_mentions("find 'Red shoes' now", given=given)) == [
        ("'Red shoes'", "quoted", "given", "title")
    ]


def test_parameters_of_the_same_words_take_one_place_each_in_their_order() -> None:
    given = [Parameter("limit", 5, mention="5"), Parameter("orders", 5, mention="5")]
    found = find_mentions("5 customers with at least 5 orders", given=given)
    assert [m.name for m in found] == ["limit", "orders"]


def test_a_short_given_value_does_not_take_a_part_of_a_longer_one() -> None:
    given = [Parameter("stars", "5", "5"), Parameter("hotel", "Area 5", "Area 5")]
    found = find_mentions("hotel Area 5 with 5 stars", given=given)
    assert [(m.text, m.name) for m in found] == [("Area 5", "hotel"), ("5", "stars")]


def test_a_number_inside_another_is_no_place_for_a_given_value() -> None:
    found = find_mentions("ratio 5.5 of 5", given=[Parameter("n", 5, "5")])
    assert [(m.text, m.name) for m in found] == [("5.5", ""), ("5", "n")]


def test_a_list_is_found_by_the_words_that_carry_it() -> None:
    found = find_mentions("ages 5 to 9", given=[Parameter("ages", [5, 9], mention="5 to 9")])
    assert [(m.text, m.kind, m.value) for m in found] == [("5 to 9", "ages", [5, 9])]


def test_words_said_twice_carry_their_parameter_twice() -> None:
    given = [Parameter("customer", "Jordan Jones", mention="Jordan Jones")]
    found = find_mentions("mail Jordan Jones about Jordan Jones", given=given)
    assert [m.name for m in found] == ["customer", "customer"]


def test_a_given_word_of_grammar_stays_a_literal_word() -> None:
    given = [Parameter("more_or_less", "more", mention="more")]
    assert find_mentions("more than 5 orders", given=given)[0].text == "5"


def test_a_mention_that_is_not_in_the_prompt_is_an_error_only_when_storing() -> None:
    given = [Parameter("city", "Boston", mention="Boston")]
    assert find_mentions("sales in Denver", given=given) == ()
    with pytest.raises(InvalidParameter, match="'Boston' of parameter 'city' does not stand"):
        locate_mentions("sales in Denver", given)


def test_located_mentions_are_those_of_the_parameters_alone() -> None:
    given = [Parameter("city", "Boston", mention="Boston"), Parameter("unit", "USD")]
    assert brief(locate_mentions("sales in Boston in 2024", given)) == [
        ("Boston", "city", "given", "city")
    ]


def test_a_learned_value_is_found_without_being_given() -> None:
    known = learned(city_name0="Boston", airline="Delta")
    found = find_mentions("delta flights to Boston's airport", learned=known)
    assert brief(found) == [
        ("delta", "airline", "learned", "airline"),
        ("Boston", "city_name", "learned", "city_name"),
    ]


def test_a_number_has_the_same_kind_whether_or_not_it_was_learned() -> None:
    known = learned(flight_number="DL 281", room="281")
    assert [m.kind for m in find_mentions("room 281", learned=known)] == ["number"]
    assert [m.kind for m in find_mentions("flight DL 281", learned=known)] == ["flight_number"]


def test_quoted_text_comes_before_what_was_learned_inside_it() -> None:
    found = find_mentions("find 'flights to Boston'", learned=learned(city="Boston"))
    assert [m.kind for m in found] == ["quoted"]


def test_a_closed_set_names_a_slot_before_a_learned_value() -> None:
    found = find_mentions("red shoes", closed={"color": ["Red"]}, learned=learned(team="red"))
    assert [m.kind for m in found] == ["color"]


def test_a_prompt_stored_with_parameters_is_masked_the_same_without_them() -> None:
    text = "Move Sofia's orders over $500 since March 11, 2024 to 'Old stuff'"
    given = [
        Parameter("owner", "sofia@x.io", mention="Sofia"),
        Parameter("amount", 500, mention="500"),
        Parameter("since", "2024-03-11", mention="March 11, 2024"),
        Parameter("list", "Old stuff", mention="Old stuff"),
    ]
    known = LearnedValues()
    for parameter in given:
        known.add(parameter)
    stored = mask(text, find_mentions(text, given=given))
    assert mask(text, find_mentions(text, learned=known)).text == stored.text


_WORD = st.sampled_from(
    [
        "5", "Boston", "New", "York", "in", "to", "'x'", "$500", "2024", "and", "a", "more", "five",
        "Sofia's", "last", "year",
    ]
)  # fmt: skip
_WORDS = st.lists(_WORD, min_size=1, max_size=12)
_PARAMS = st.lists(
    st.sampled_from(["5", "Boston", "New York", "500", "2024", "x", "more", "year", "Sofia", "a"]),
    max_size=5,
)


@given(_WORDS, _PARAMS)
@settings(max_examples=100)
def test_mentions_are_in_order_apart_and_true_to_the_text(
    words: list[str], values: list[str]
) -> None:
    text = " ".join(words)
    given = [Parameter(f"p{i}x", value, mention=value) for i, value in enumerate(values)]
    found = find_mentions(text, given=given, learned=learned(city="New York", name="york"))
    ends = [0, *(m.end for m in found)]
    assert all(m.start >= end for m, end in zip(found, ends, strict=False))
    assert all(text[m.start : m.end] == m.text != "" for m in found)
