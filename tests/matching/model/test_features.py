from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.evidence import Evidence
from semcache.matching.model.features import (
    NAMES,
    Beliefs,
    GroupFeatures,
    MatchContext,
    NearEntry,
    featured,
    upper_share,
)
from semcache.matching.plan_groups import PlanGroups
from semcache.prompts.template import Slot


def asking(
    words: str, *, evidence: Evidence | None = None, groups: PlanGroups | None = None
) -> MatchContext:
    return MatchContext(
        tuple(words.split()), (), False, evidence or Evidence(), groups or PlanGroups()
    )


def near(entry: str, words: str, group: str, score: float = 0.95) -> NearEntry:
    return NearEntry(entry, score, tuple(words.split()), (), group)


def values(found: GroupFeatures) -> dict[str, float]:
    return dict(zip(NAMES, found.values, strict=True))


def only(words: str, neighbors: Sequence[NearEntry]) -> dict[str, float]:
    (found,) = featured(asking(words), neighbors)
    return values(found)


def test_a_family_is_seen_by_its_member_that_differs_least() -> None:
    members = [near("a", "sale by state and city", "f", 0.99), near("b", "sale by state", "f", 0.9)]
    (found,) = featured(asking("sale by state"), members)
    assert found.near.entry == "b"
    assert values(found)["cosine"] == pytest.approx(0.45)


def test_rivals_that_say_the_same_count_against_a_family() -> None:
    alone = only("sale by state", [near("a", "sale by state", "f")])
    both = featured(
        asking("sale by state"),
        [near("a", "sale by state", "f"), near("b", "sale by state", "g", 0.94)],
    )
    contested = values(both[0])
    assert contested["clean_rivals"] == 1
    assert contested["rival_support"] > alone["rival_support"]
    assert contested["vote"] < alone["vote"]


def test_words_of_one_side_are_told_apart_by_class() -> None:
    found = only("unpaid order not in texas", [near("a", "order by state please", "f")])
    said = {name: found[name] for name in NAMES if name.startswith(("extra", "missing"))}
    assert said == {
        "extra_open": 2, "missing_open": 1, "extra_meaning": 1, "missing_meaning": 0,
        "extra_light": 0, "missing_light": 1, "extra_role": 1, "missing_role": 1,
    }  # fmt: skip


def test_evidence_makes_a_word_harmless_or_worse() -> None:
    harmless, harmful = Evidence(), Evidence()
    for _ in range(5):
        harmless.words.add("overall", same=True)
        harmful.words.add("overall", same=False)
    worst = [
        values(featured(asking("overall sale", evidence=e), [near("a", "sale", "f")])[0])
        for e in (harmless, Evidence(), harmful)
    ]
    assert worst[0]["worst_word"] < worst[1]["worst_word"] < worst[2]["worst_word"]
    assert worst[0]["unproven_meaning"] < worst[1]["unproven_meaning"]


def test_a_word_that_no_entry_ever_used_is_unheard_of() -> None:
    groups = PlanGroups()
    groups.add("f", ("song",))
    (found,) = featured(asking("song sia", groups=groups), [near("a", "song", "f")])
    assert values(found)["unheard"] == 1


def test_slots_with_other_words_before_them_are_counted() -> None:
    mine = (Slot("city", "", "to", "x", "x"), Slot("city", "", "from", "x", "x"))
    its = (Slot("city", "", "from", "x", "x"), Slot("city", "", "via", "x", "x"))
    asked = MatchContext(("flight",), mine, False, Evidence(), PlanGroups())
    (found,) = featured(asked, [NearEntry("a", 0.9, ("flight",), its, "f")])
    assert values(found)["contexts"] == pytest.approx(1 / 1.5)


LABELS = st.lists(
    st.tuples(st.sampled_from("overall not from sales 7 <year>".split()), st.booleans()),
    max_size=20,
)


@settings(max_examples=50)
@given(LABELS)
def test_what_was_worked_out_before_is_what_is_worked_out_anew(
    labels: list[tuple[str, bool]],
) -> None:
    evidence = Evidence()
    for word, same in labels:
        evidence.words.add(word, same=same)
        evidence.families.add(word, same=same)
    asked = Beliefs(evidence)
    for word in "overall not from sales 7 <year>".split() * 2:
        fresh = Beliefs(evidence)
        assert asked.odds(word) == fresh.odds(word)
        assert asked.cost(word) == fresh.cost(word)
        assert asked.upper(word) == upper_share(*evidence.words.of(word))
    assert (asked.noise, asked.base_rate) == (Beliefs(evidence).noise, Beliefs(evidence).base_rate)


def test_a_word_that_steers_a_plan_costs_more_than_one_of_courtesy() -> None:
    beliefs = Beliefs(Evidence())
    assert beliefs.cost("not") > beliefs.cost("sales") > beliefs.cost("from") > beliefs.cost("the")
