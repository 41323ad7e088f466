import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import StoreCorrupt
from semcache.matching.plan_groups import PlanGroups, PlanGroupSets

ENTRIES = st.lists(
    st.tuples(st.sampled_from("fg"), st.lists(st.sampled_from("abc"), max_size=3).map(tuple))
)


def test_families_know_their_words_and_how_many_use_one() -> None:
    groups = PlanGroups()
    groups.add("sum", ("total", "sales"))
    groups.add("sum", ("total", "revenue"))
    groups.add("count", ("count", "sales"))
    assert dict(groups.words("sum")) == {"total": 2, "sales": 1, "revenue": 1}
    assert (groups.size("sum"), groups.using("sales"), len(groups)) == (2, 2, 2)


def test_a_family_is_contested_if_as_many_say_the_same_and_have_another_plan() -> None:
    groups = PlanGroups()
    groups.add("one", ("sales",))
    assert not groups.contested("one", ("sales",))
    groups.add("other", ("sales",))
    assert groups.contested("one", ("sales",))
    groups.add("one", ("sales",))
    assert not groups.contested("one", ("sales",))
    assert groups.contested("other", ("sales",))


def test_a_family_that_is_not_there_has_no_words() -> None:
    groups = PlanGroups()
    assert (groups.size("x"), dict(groups.words("x")), groups.using("x")) == (0, {}, 0)


@settings(max_examples=50)
@given(ENTRIES)
def test_taking_out_what_was_added_leaves_nothing(
    entries: list[tuple[str, tuple[str, ...]]],
) -> None:
    groups = PlanGroups()
    for entry in entries:
        groups.add(*entry)
    for entry in entries:
        groups.remove(*entry)
    assert groups.saying == {}
    assert len(groups) == 0


@settings(max_examples=50)
@given(ENTRIES, ENTRIES)
def test_families_begun_with_what_others_said_know_the_same(
    before: list[tuple[str, tuple[str, ...]]], after: list[tuple[str, tuple[str, ...]]]
) -> None:
    groups = PlanGroups()
    for entry in before:
        groups.add(*entry)
    again = PlanGroups(json.loads(json.dumps(groups.saying)))
    for entry in after:
        groups.add(*entry)
        again.add(*entry)
    for name in "fg":
        assert again.size(name) == groups.size(name)
        assert dict(again.words(name)) == dict(groups.words(name))


@settings(max_examples=50)
@given(ENTRIES, ENTRIES)
def test_words_that_every_entry_of_a_family_uses_follow_its_entries(
    before: list[tuple[str, tuple[str, ...]]], after: list[tuple[str, tuple[str, ...]]]
) -> None:
    groups = PlanGroups()
    for entry in before:
        groups.add(*entry)
    assert {name for name in "fg" if groups.always(name)} <= {group for group, _ in before}
    for entry in after:
        groups.add(*entry)
    for entry in before:
        groups.remove(*entry)
    for name in "fg":
        said = [set(words) for group, words in after if group == name]
        assert set(groups.always(name)) == (set.intersection(*said) if said else set())


@pytest.mark.parametrize("times", [0, -1, -7])
def test_packed_groups_with_fewer_than_one_entry_are_refused(times: int) -> None:
    packed = json.dumps([[[False, "", ""], [], [], {"sales state": {"a": times, "b": 2}}]])
    groups = PlanGroupSets(packed.encode())
    with pytest.raises(StoreCorrupt, match="the groups of a snapshot cannot be read"):
        groups.of((False, "", ""))
    assert groups.damaged


@settings(max_examples=60)
@given(ENTRIES, ENTRIES)
def test_no_group_has_less_than_no_entry_whatever_is_taken_out(
    added: list[tuple[str, tuple[str, ...]]], removed: list[tuple[str, tuple[str, ...]]]
) -> None:
    groups = PlanGroups()
    for entry in added:
        groups.add(*entry)
    len(groups)  # counted from here on
    for entry in removed:
        groups.remove(*entry)
    assert all(groups.size(group) >= 0 for group, _ in (*added, *removed))
