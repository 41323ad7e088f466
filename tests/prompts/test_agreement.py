"""Words agree with a value that they may say, and with no other."""

import pytest

from semcache.canonical import Json
from semcache.prompts.agreement import agrees, may_agree
from semcache.prompts.mentions import find_mentions


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
