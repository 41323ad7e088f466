from semcache import Miss, PlanCache
from tests.cache.learning import plan


def test_a_refusal_says_how_probable_a_wrong_plan_is_and_in_which_words(bounded: PlanCache) -> None:
    bounded.store("unpaid invoices", plan("unpaid"))
    bounded.store("customers late", plan("late"))
    missed = bounded.lookup("customers unpaid")
    assert isinstance(missed, Miss)
    assert missed.reason == "risk"
    assert "wrong with probability 0." in missed.explain()
    assert "differs in" in missed.explain()


def test_a_word_that_no_entry_has_and_a_turned_condition_are_refused(bounded: PlanCache) -> None:
    bounded.store("sales by state", plan("state"))
    for query, word in [("sales by state without tax", "without"), ("sales by state sia", "sia")]:
        missed = bounded.lookup(query)
        assert isinstance(missed, Miss)
        assert missed.reason == "words"
        assert repr(word) in missed.explain()
