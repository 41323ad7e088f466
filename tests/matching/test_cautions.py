"""Kinds of difference that must be proven harmless, and what clears them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.matching.cautions import Doubt, is_cleared
from semcache.matching.decision import doubts
from semcache.matching.evidence import MOVED, TURNED, Evidence
from semcache.matching.learning import learn_doubts
from semcache.matching.model.features import MatchContext
from semcache.matching.plan_groups import PlanGroups
from semcache.matching.words.difference import compare
from semcache.prompts.template import Slot


def asking(
    words: str, its: str, *, slots: tuple[Slot, ...] = (), given: bool = False
) -> MatchContext:
    groups = PlanGroups()
    groups.add("f", tuple(its.split()))
    groups.add("g", tuple(words.split()))
    return MatchContext(tuple(words.split()), slots, given, Evidence(), groups)


def cautions(
    mine: str, its: str, *, slots: tuple[Slot, ...] = (), given: bool = False
) -> list[str]:
    difference = compare(tuple(mine.split()), tuple(its.split()))
    found = doubts(difference, asking(mine, its, slots=slots, given=given))
    return [doubt.caution for doubt in found]


@pytest.mark.parametrize(
    ("mine", "its", "caution"),
    [
        ("order not paid", "order paid", "negation"),
        ("price over <number>", "price under <number>", "other"),
        ("first order", "last order", "other"),
        ("sale and refund", "sale or refund", "other"),
        ("order from ada", "order to ada", "role for role"),
        ("order by ada", "order ada", "role"),
        ("manager supplier", "supplier manager", "turned"),
        ("by region sale", "sale by region", "moved"),
        ("truck every depot", "depot every truck", "turned"),
        ("total sale", "sale", "aggregation"),
        ("when sale", "sale", "steering"),
        ("when sale", "where sale", "exchanged"),
        ("state border state", "border state", "repeated"),
        ("order 1999", "order", "digit"),
    ],
)
def test_a_difference_is_named_after_its_kind(mine: str, its: str, caution: str) -> None:
    assert set(cautions(mine, its)) == {caution}


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ("first dose last visit", "last dose first visit"),
        ("maximum price minimum stock", "minimum price maximum stock"),
        ("paid not shipped", "shipped not paid"),
    ],
)
def test_steering_words_before_one_anothers_heads_are_a_kind_of_their_own(
    mine: str, its: str
) -> None:
    assert "switched" in cautions(mine, its)


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ("last visit first dose", "first dose last visit"),
        ("not paid order last month", "order last month not paid"),
        ("over <number_0> under <number_1>", "under <number_0> over <number_1>"),
    ],
)
def test_steering_words_that_move_with_their_heads_are_not_switched(mine: str, its: str) -> None:
    assert "switched" not in cautions(mine, its)


def test_what_tells_two_values_of_one_type_apart_is_a_kind_of_its_own() -> None:
    two = (Slot("name", "", "from", "Ada", "Ada"), Slot("name", "", "to", "Bo", "Bo"))
    mine, its = "mail forward from <name>", "forward mail to <name>"
    assert "party" in cautions(mine, its, slots=two)
    assert "party" not in cautions(mine, its, slots=two, given=True)


@pytest.mark.parametrize(
    ("known", "asked", "few"),
    [
        (Doubt(MOVED, "moved"), Doubt("by", "role"), 2),
        (Doubt("when", "steering"), Doubt("why", "steering"), 2),
        (Doubt("when", "steering"), Doubt("when", "steering"), 1),
        (Doubt("by", "role"), Doubt("at", "role"), 1),
        (Doubt("by", "role"), Doubt("by", "role"), 0),
        (Doubt("over", "comparison"), Doubt("than", "comparison"), 2),
        (Doubt("over", "comparison"), Doubt("over", "comparison"), 1),
    ],
)
def test_the_nearer_the_kind_the_fewer_labels_clear_it_and_one_against_takes_it_back(
    known: Doubt, asked: Doubt, few: int
) -> None:
    evidence = Evidence()
    for _ in range(few):
        learn_doubts(evidence, [known], same=True)
    assert not is_cleared(asked, evidence)
    learn_doubts(evidence, [known], same=True)
    assert is_cleared(asked, evidence)
    learn_doubts(evidence, [known], same=False)
    assert not is_cleared(asked, evidence)


def test_many_idle_steering_words_of_all_kinds_speak_for_one_another_until_one_steers() -> None:
    evidence, asked = Evidence(), Doubt("when", "steering")
    for word in ("first", "so", "all", "and"):
        learn_doubts(evidence, [Doubt(word, word)], same=True)
        assert not is_cleared(asked, evidence)
    learn_doubts(evidence, [Doubt("should", "should")], same=True)
    assert is_cleared(asked, evidence)
    learn_doubts(evidence, [Doubt("before", "direction")], same=False)
    assert not is_cleared(asked, evidence)
    assert not is_cleared(Doubt("before", "direction"), evidence)


@pytest.mark.parametrize("caution", ["negation", "exchanged", "other"])
def test_what_turns_a_sentence_into_its_opposite_is_cleared_by_nothing_else(caution: str) -> None:
    evidence = Evidence()
    for _ in range(50):
        learn_doubts(evidence, [Doubt("first", "order"), Doubt("no", caution)], same=True)
    assert not is_cleared(Doubt("not", caution), evidence)


def test_light_kinds_speak_for_no_steering_kind() -> None:
    evidence = Evidence()
    for _ in range(20):
        learn_doubts(evidence, [Doubt(MOVED, "moved"), Doubt("at", "role")], same=True)
    assert is_cleared(Doubt("by", "role"), evidence)
    for word, caution in [
        ("over", "comparison"),
        ("before", "direction"),
        ("total", "aggregation"),
        ("first", "order"),
        ("and", "conjunction"),
        ("when", "steering"),
        ("all", "scope"),
        ("<polar>", "mark"),
        ("state", "repeated"),
        (TURNED, "turned"),
        ("from", "role for role"),
        ("not", "negation"),
        ("over", "other"),
        ("her", "exchanged"),
    ]:
        assert not is_cleared(Doubt(word, caution), evidence)


def test_a_negation_is_cleared_by_no_other_negation() -> None:
    evidence = Evidence()
    for _ in range(20):
        learn_doubts(evidence, [Doubt("no", "negation")], same=True)
    assert is_cleared(Doubt("no", "negation"), evidence)
    assert not is_cleared(Doubt("not", "negation"), evidence)


@given(st.lists(st.booleans(), max_size=40), st.sampled_from(["unheard", "party", "switched"]))
def test_a_word_nobody_used_and_what_parts_two_values_are_cleared_by_nothing(
    labels: list[bool], caution: str
) -> None:
    evidence, doubt = Evidence(), Doubt("sia", caution)
    for same in labels:
        learn_doubts(evidence, [doubt], same=same)
    assert not is_cleared(doubt, evidence)


@given(st.integers(0, 60), st.integers(0, 60))
def test_more_labels_for_it_never_keep_a_kind_back_and_more_against_never_clear_it(
    same: int, other: int
) -> None:
    doubt = Doubt("by", "role")
    counts = [(same, other), (same + 1, other), (same, other + 1)]
    cleared = []
    for agree, differ in counts:
        evidence = Evidence()
        for each, times in ((True, agree), (False, differ)):
            for _ in range(times):
                learn_doubts(evidence, [doubt], same=each)
        cleared.append(is_cleared(doubt, evidence))
    now, better, worse = cleared
    assert better >= now >= worse
