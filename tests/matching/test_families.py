import json

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.plan_groups import PlanGroups

ENTRIES = st.lists(
    st.tuples(st.sampled_from("fg"), st.lists(st.sampled_from("abc"), max_size=3).map(tuple))
)


def test_families_know_their_words_and_how_many_use_one() -> None:
    families = PlanGroups()
    families.add("sum", ("total", "sales"))
    families.add("sum", ("total", "revenue"))
    families.add("count", ("count", "sales"))
    assert dict(families.words("sum")) == {"total": 2, "sales": 1, "revenue": 1}
    assert (families.size("sum"), families.using("sales"), len(families)) == (2, 2, 2)


def test_a_family_is_contested_if_as_many_say_the_same_and_have_another_plan() -> None:
    families = PlanGroups()
    families.add("one", ("sales",))
    assert not families.contested("one", ("sales",))
    families.add("other", ("sales",))
    assert families.contested("one", ("sales",))
    families.add("one", ("sales",))
    assert not families.contested("one", ("sales",))
    assert families.contested("other", ("sales",))


def test_a_family_that_is_not_there_has_no_words() -> None:
    families = PlanGroups()
    assert (families.size("x"), dict(families.words("x")), families.using("x")) == (0, {}, 0)


@settings(max_examples=50, deadline=None)
@given(ENTRIES)
def test_taking_out_what_was_added_leaves_nothing(
    entries: list[tuple[str, tuple[str, ...]]],
) -> None:
    families = PlanGroups()
    for entry in entries:
        families.add(*entry)
    for entry in entries:
        families.remove(*entry)
    assert families.saying == {}
    assert len(families) == 0


@settings(max_examples=50, deadline=None)
@given(ENTRIES, ENTRIES)
def test_families_begun_with_what_others_said_know_the_same(
    before: list[tuple[str, tuple[str, ...]]], after: list[tuple[str, tuple[str, ...]]]
) -> None:
    families = PlanGroups()
    for entry in before:
        families.add(*entry)
    again = PlanGroups(json.loads(json.dumps(families.saying)))
    for entry in after:
        families.add(*entry)
        again.add(*entry)
    for name in "fg":
        assert again.size(name) == families.size(name)
        assert dict(again.words(name)) == dict(families.words(name))


@settings(max_examples=50, deadline=None)
@given(ENTRIES, ENTRIES)
def test_words_that_every_entry_of_a_family_uses_follow_its_entries(
    before: list[tuple[str, tuple[str, ...]]], after: list[tuple[str, tuple[str, ...]]]
) -> None:
    families = PlanGroups()
    for entry in before:
        families.add(*entry)
    assert {name for name in "fg" if families.always(name)} <= {family for family, _ in before}
    for entry in after:
        families.add(*entry)
    for entry in before:
        families.remove(*entry)
    for name in "fg":
        said = [set(words) for family, words in after if family == name]
        assert set(families.always(name)) == (set.intersection(*said) if said else set())
