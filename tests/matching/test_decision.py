import pytest

from semcache.matching.decision import doubts as doubts_of
from semcache.matching.decision import misplaced_values, unproven
from semcache.matching.evidence import Evidence
from semcache.matching.model.features import MatchContext, upper_share
from semcache.matching.plan_groups import PlanGroups
from semcache.matching.words.difference import compare
from semcache.prompts.mentions import Mention
from semcache.prompts.unseen.supposition import Supposed


def doubts(
    mine: str, its: str, *, evidence: Evidence | None = None, given: bool = False
) -> tuple[str, ...]:
    groups = PlanGroups()
    groups.add("f", tuple(its.split()))
    words = tuple(mine.split())
    asking = MatchContext(words, (), given, evidence or Evidence(), groups)
    doubted = doubts_of(compare(words, tuple(its.split())), asking)
    return unproven(doubted, asking.evidence)


def test_words_that_other_entries_use_and_forms_of_a_word_are_left_to_risk() -> None:
    assert doubts("sale", "sale state") == ()
    assert doubts("arriving flight", "arrive flight") == ()


def test_two_labels_prove_a_word_and_one_against_takes_it_back() -> None:
    evidence = Evidence()
    for _ in range(2):
        assert doubts("sale each state", "sale state", evidence=evidence) == ("each",)
        evidence.words.add("each", same=True)
    assert doubts("sale each state", "sale state", evidence=evidence) == ()
    evidence.words.add("each", same=False)
    assert doubts("sale each state", "sale state", evidence=evidence) == ("each",)


def test_a_new_word_may_be_a_value_that_the_caller_gave() -> None:
    assert doubts("song sia", "song", given=True) == ()
    assert doubts("song not", "song", given=True) == ("not",)


def test_the_share_falls_with_labels_that_agree_and_rises_with_others() -> None:
    assert upper_share(0, 0) > upper_share(2, 0) > upper_share(20, 0)
    assert upper_share(20, 0) < upper_share(20, 5)
    assert 0 < upper_share(1000, 0) < upper_share(0, 1000) < 1.1


def labeled(word: str, times: int) -> Evidence:
    evidence = Evidence()
    for _ in range(times):
        evidence.learn(compare((word, "sale"), ("sale",)), "f", same=True)
    return evidence


@pytest.mark.parametrize(
    ("known", "new", "few"), [("by", "at", 1), ("also", "all", 1), ("also", "just", 3)]
)
def test_what_prepositions_and_words_of_scope_came_to_speaks_for_a_new_one(
    known: str, new: str, few: int
) -> None:
    assert doubts(f"sale {new} state", "sale state", evidence=labeled(known, few)) == (new,)
    assert doubts(f"sale {new} state", "sale state", evidence=labeled(known, 20)) == ()


def test_one_preposition_for_another_is_never_a_habit() -> None:
    evidence = labeled("by", 20)
    assert doubts("order from ada", "order to ada", evidence=evidence) == ("from", "to")
    assert doubts("order not paid", "order paid", evidence=labeled("never", 20)) == ("not",)


def test_a_word_that_prompts_use_is_no_typing_error() -> None:
    assert doubts("invoices by subsidiray", "invoices by subsidiary") == ()
    groups = PlanGroups()
    groups.add("f", ("invoice", "complaint"))
    groups.add("g", ("invoice", "compliant"))
    asking = MatchContext(("invoice", "compliant"), (), False, Evidence(), groups)
    doubted = doubts_of(compare(asking.words, ("invoice", "complaint")), asking)
    assert unproven(doubted, asking.evidence) == ("compliant",)


def supposing(words: str, *values: str, kind: str = "procedure") -> MatchContext:
    read = [Mention(0, len(value), value, kind, value, "supposed") for value in values]
    supposed = tuple(Supposed(mention, "", 5.0) for mention in read)
    return MatchContext(
        tuple(words.split()), (), False, Evidence(), PlanGroups(), supposed=supposed
    )


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ("patient undergone <procedure>", "has patient undergone <procedure>"),
        ("patient undergoing <procedure>", "patient undergo <procedure>"),
        ("after <procedure>", "after <procedure> before <procedure>"),
    ],
)
def test_what_was_supposed_must_stand_behind_a_word_of_the_candidates_own(
    mine: str, its: str
) -> None:
    asking = supposing(mine, "a hip repair")
    assert misplaced_values(asking, tuple(its.split())) == ()


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ("patient have <procedure>", "patient undergone <procedure>"),
        ("song <procedure>", "<procedure> song"),
        ("undergone <procedure>", "undergone"),
    ],
)
def test_what_was_supposed_behind_another_word_is_told(mine: str, its: str) -> None:
    told = misplaced_values(supposing(mine, "a travel history"), tuple(its.split()))
    assert told == ("a travel history",)


def test_where_nothing_was_supposed_nothing_is_misplaced() -> None:
    assert misplaced_values(supposing("have <procedure>"), ("undergone", "<procedure>")) == ()
