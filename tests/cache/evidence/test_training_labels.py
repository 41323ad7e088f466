from semcache import Miss, PlanCache
from semcache.plans.codec import decode
from tests.cache.learning import plan, plan_it
from tests.calling import hit


def test_a_planned_miss_labels_its_neighbors(bounded: PlanCache) -> None:
    plan_it(bounded, "sales by state", "state")
    plan_it(bounded, "sales by state and city", "both")
    plan_it(bounded, "overall sales by state", "state")
    learned = bounded.evidence()
    assert (learned.labels, learned.same) == (2, 1)
    assert learned.words.same == {"overall": 1.0}
    assert learned.words.other.keys() >= {"and", "city"}


def test_a_prompt_that_was_never_looked_up_labels_nothing(bounded: PlanCache) -> None:
    bounded.store("sales by state", plan("state"))
    bounded.store("sales by state and city", plan("both"))
    assert bounded.evidence().labels == 0


def test_wrong_feedback_is_evidence(bounded: PlanCache) -> None:
    bounded.store("total sales by state", plan("state"))
    bounded.store("sales by city", plan("city"))
    found = hit(bounded.lookup("please show the total sales by state"))
    assert found.tier == "semantic"
    bounded.feedback(found, right=False)
    record = bounded.evidence().record
    assert record.same == {}
    assert record.other


def test_a_hit_that_was_planned_all_the_same_weighs_more_than_a_word_about_it(
    bounded: PlanCache,
) -> None:
    pulls = []
    for tenant in ("explored", "told"):
        bounded.store("total sales by state", plan("state"), tenant=tenant)
        bounded.store("sales by city", plan("city"), tenant=tenant)
        found = hit(bounded.lookup("please show the total sales by state", tenant=tenant))
        if tenant == "explored":
            assert not bounded.audit(found, decode(plan("another")))
        else:
            bounded.feedback(found, right=False)
        precision = bounded.evidence(tenant=tenant).precision
        assert precision is not None
        pulls.append(float(precision.sum()))
    assert pulls[0] > 2 * pulls[1] > 0


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
