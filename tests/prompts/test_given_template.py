"""Given values are taken out of a prompt by whatever words they were said."""

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.canonical import Json
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import by_name
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import agrees, given_template, may_agree


def bare(text: str, learned: LearnedValues | None = None, /, **values: Json) -> str:
    given = by_name(values)
    mentions = find_mentions(text, given=given, learned=learned)
    return given_template(text, given, mentions, learned).text


@pytest.mark.parametrize(
    ("text", "values", "template"),
    [
        ("sales in Reno", {"city": "Reno"}, "sales in <city>"),
        ("move it by 1.5 hours", {"duration": "1.5 hour"}, "move it by <duration>"),
        ("if it was less than 5", {"way": "less", "n": 5}, "if it was <way> than <n>"),
        ("seen on 10/20", {"day": "10-20"}, "seen on <day>"),
        ("Free on March 2nd?", {"event_date": "2019-03-02"}, "free on <event_date>"),
        ("free tomorrow", {"on": "2019-03-02"}, "free <on>"),
        ("the last 4 weeks and again 4 weeks", {"n": 4}, "the last <n> weeks and again <n> weeks"),
        ("stays IN PROGRESS", {"state": "in_progress"}, "stays <state>"),
        ("for 2 people, 3 nights", {"people": 2}, "for <people> people, <number> nights"),
        ("4 or 5 stars", {"least": 4, "most": 5}, "<least> or <most> stars"),
    ],
)
def test_a_given_value_is_taken_out_by_the_words_that_say_it(
    text: str, values: dict[str, Json], template: str
) -> None:
    assert bare(text, **values) == template


def test_words_that_stood_for_a_value_before_are_taken_out_for_it() -> None:
    learned = LearnedValues()
    learned.add(Parameter("city", "San Francisco", mention="SFO"))
    assert bare("attractions in SFO", learned, city="San Francisco") == "attractions in <city>"
    assert bare("attractions in SFO", learned, city="San Jose") == "attractions in sfo"


def test_a_value_that_was_learned_but_not_given_stays_words() -> None:
    learned = LearnedValues()
    learned.add(Parameter("plot", "line", mention="line"))
    text = "a line chart of visits"
    assert bare(text, learned, metric="visits") == "a line chart of <metric>"


@pytest.mark.parametrize("value", ["a", "to", "in", 7, True, None, ["x"], "elsewhere"])
def test_a_value_whose_words_cannot_be_told_takes_nothing_out(value: Json) -> None:
    assert bare("go to a place in town", x=value) == "go to a place in town"


def test_of_two_values_that_fit_the_same_words_neither_takes_them() -> None:
    text = "free on the 13th"
    assert bare(text, a="2019-03-13", b="2020-04-13") == "free on the <ordinal>"


@settings(max_examples=60)
@drawn(
    st.text("abc 123-/.,'\"<>", max_size=40),
    st.dictionaries(st.sampled_from("pqr"), st.text("abc 123-/.", max_size=6), max_size=3),
)
def test_every_slot_is_in_the_text_and_given_ones_have_their_names(
    text: str, values: dict[str, str]
) -> None:
    given = by_name(values)
    template = given_template(text, given, find_mentions(text, given=given))
    names = [slot.name for slot in template.slots if slot.name]
    assert template.text.count("<") >= len(template.slots)
    assert {*names} <= {*values}


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("rated 3.8 or higher", "3.80", True),
        ("rated 3.8 or higher", "3.08", False),
        ("a table for two", 2, True),
        ("a table for two", True, False),
        ("free on March 2nd", "2019-03-02", True),
        ("free on March 2nd", "2019-03-03", False),
        ("free on March 2nd", "2019-04-02", False),
        ("free on the 13th", "2019-03-13", True),
        ("free on next Wednesday", "2019-03-06", True),
        ("free on next Wednesday", "2019-03-07", False),
        ("output since 06/08/2100", "2100-06-08", True),
        ("output since 06/08/2100", "2100-06-09", False),
        ("free in March 2019", "2019-03-06", False),
        ("free tomorrow", "2019-03-02", False),
        ("free on March 2nd", "2019-03-41", False),
    ],
)
def test_words_agree_with_the_value_that_they_say(text: str, value: Json, *, said: bool) -> None:
    (mention,) = find_mentions(text)[:1]
    assert agrees(value, mention) is said


def test_a_relative_word_may_stand_for_any_day_and_for_nothing_else() -> None:
    (tomorrow,) = find_mentions("free tomorrow")
    assert may_agree("2019-03-02", tomorrow)
    assert not may_agree("tomato", tomorrow)
