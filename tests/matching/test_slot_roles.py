from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.gates import match_slots
from semcache.prompts.template import Slot


def slot(kind: str, before: str = "", name: str = "") -> Slot:
    return Slot(kind, name, before, "x", "x")


def test_left_words_tell_slots_of_one_kind_apart() -> None:
    stored = [slot("city", "from"), slot("city", "to")]
    assert match_slots(stored, [slot("city", "to"), slot("city", "from")]) == (1, 0)
    assert match_slots(stored, [slot("city", "from"), slot("city", "to")]) == (0, 1)


def test_names_that_the_caller_gave_win_over_left_words() -> None:
    stored = [slot("city", "from", "origin"), slot("city", "to", "destination")]
    asked = [slot("city", "from", "Destination"), slot("city", "to", "origin")]
    assert match_slots(stored, asked) == (1, 0)


def test_one_slot_left_over_takes_the_role_left_over() -> None:
    stored = [slot("city", "from"), slot("city", "to")]
    assert match_slots(stored, [slot("city", "reach"), slot("city", "from")]) == (1, 0)


def test_kinds_pair_off_wherever_they_stand() -> None:
    stored = [slot("city", "in"), slot("year", "since")]
    assert match_slots(stored, [slot("year", "from"), slot("city", "at")]) == (1, 0)


def test_slots_without_telling_words_keep_their_order() -> None:
    stored = [slot("number", "between"), slot("number", "and")]
    assert match_slots(stored, [slot("number"), slot("number", "upto")]) == (0, 1)


def test_what_order_and_left_words_contradict_is_refused() -> None:
    stored = [slot("city", "from"), slot("city", "via"), slot("city", "to")]
    asked = [slot("city", "to"), slot("city", "over"), slot("city", "past")]
    assert match_slots(stored, asked) is None


def test_names_of_two_kinds_behind_one_another_s_words_are_refused() -> None:
    stored = [slot("sender"), slot("person", "from")]  # "Ada needs the mails from Bo"
    assert match_slots(stored, [slot("sender", "from"), slot("person", "to")]) is None
    assert match_slots(stored, [slot("person"), slot("sender", "from")]) is None
    assert match_slots(stored, [slot("person", "from"), slot("sender", "for")]) == (1, 0)
    given = [slot("sender", "from", "sender"), slot("person", "to", "person")]
    named = [slot("sender", "", "sender"), slot("person", "from", "person")]
    assert match_slots(named, given) == (0, 1)


def test_dates_and_numbers_may_stand_behind_one_another_s_words() -> None:
    stored = [slot("city", "in"), Slot("year", "", "for", "2024", "2024")]
    asked = [slot("city", "for"), Slot("year", "", "in", "2025", "2025")]
    assert match_slots(stored, asked) == (0, 1)


def test_other_kinds_are_refused() -> None:
    assert match_slots([slot("city")], [slot("year")]) is None
    assert match_slots([slot("city")], [slot("city"), slot("city")]) is None


SLOTS = st.lists(
    st.builds(slot, st.sampled_from(["city", "year"]), st.sampled_from(["from", "to", "in", ""])),
    max_size=5,
)


@settings(max_examples=100)
@given(SLOTS, st.randoms())
def test_every_slot_gets_a_slot_of_its_kind_and_none_gets_two(stored: list[Slot], random) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - hypothesis hands in a Random
    asked = stored[:]
    random.shuffle(asked)
    roles = match_slots(stored, asked)
    if roles is not None:
        assert sorted(roles) == [*range(len(stored))]
        assert [asked[role].kind for role in roles] == [s.kind for s in stored]


@settings(max_examples=50)
@given(SLOTS)
def test_the_same_slots_keep_their_places(stored: list[Slot]) -> None:
    assert match_slots(stored, stored) == tuple(range(len(stored)))


def test_values_of_one_kind_whose_left_words_have_nothing_in_common_are_not_told_by_order() -> None:
    stored = [slot("number", "a"), slot("number", "with")]  # a 3 star hotel with 2 rooms
    assert match_slots(stored, [slot("number", "want"), slot("number", "and")]) is None
