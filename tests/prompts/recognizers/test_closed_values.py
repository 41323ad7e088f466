import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.prompts.mentions import find_mentions
from semcache.prompts.recognizers.closed_values import ClosedValues, Phrases
from semcache.prompts.tokens import phrase_key

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


def test_closed_values_are_a_mapping() -> None:
    assert dict(SETS)["region"] == ("CA",)
    assert len(SETS) == 4


def known(*phrases: str) -> Phrases[str]:
    found: Phrases[str] = Phrases()
    for phrase in phrases:
        found.put(phrase, phrase)
    return found


def test_the_longest_phrase_at_a_word_wins() -> None:
    assert list(known("New York", "New York City").find("in new york city")) == [
        (3, 16, "New York City")
    ]


def test_a_phrase_needs_whole_words_and_its_own_signs() -> None:
    portland = known("Portland, OR")
    assert list(portland.find("in Portland , or in Salem")) == [(3, 16, "Portland, OR")]
    assert list(portland.find("in Portland or Salem")) == []
    assert list(known("art").find("start artful")) == []


def test_a_phrase_at_the_end_is_not_read_beyond_it() -> None:
    assert list(known("New York").find("what is new")) == []


def test_a_dropped_phrase_is_not_found_again() -> None:
    phrases = known("Boston", "Denver")
    phrases.drop("BOSTON")
    phrases.drop("Oslo")
    assert [word for *_, word in phrases.find("Boston to Denver")] == ["Denver"]
    assert len(phrases) == 1


def test_blank_text_is_no_phrase() -> None:
    phrases = known(" ")
    assert len(phrases) == 0
    assert phrases.get("") is None


@given(st.lists(st.text(alphabet="ab ,'", max_size=8)), st.text(alphabet="ab ,'", max_size=30))
@settings(max_examples=100)
def test_what_is_found_is_a_known_phrase(phrases: list[str], text: str) -> None:
    keys = {phrase_key(phrase) for phrase in phrases}
    for start, end, meaning in known(*phrases).find(text):
        assert phrase_key(text[start:end]) == phrase_key(meaning)
        assert phrase_key(meaning) in keys


def test_nothing_is_kept_of_a_phrase_once_it_is_dropped() -> None:
    phrases: Phrases[str] = Phrases()
    phrases.put("New York", "city")
    phrases.put("new jersey", "state")
    phrases.put("NEW YORK", "state")
    phrases.drop("New York")
    assert [meaning for *_, meaning in phrases.find("new jersey, New York")] == ["state"]
    phrases.drop("new jersey")
    phrases.drop("new jersey")
    assert "new" not in str(vars(phrases))
