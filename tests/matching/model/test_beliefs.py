from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.matching.evidence import Evidence
from semcache.matching.model.features import Beliefs, upper_share

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
