"""Options for a prompt that missed, and the plan that somebody chose among them."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.errors import InvalidInput, InvalidParameter, StoreUnavailable
from semcache.events import TierFailed
from semcache.models.minilm import MiniLMEmbedder
from semcache.stores.memory import MemoryStore
from semcache.testing import RecordingObserver
from tests.caching import cache_over
from tests.calling import calling, given_input, missed

MADE = "orders of Acme since March"
ASKED = "orders of Initech since the month of April"
VALUES = {"customer": "Initech", "month": "April"}


class Failing(MemoryStore):
    """A store that cannot be read for a while."""

    fails = False

    def last_change(self) -> int:
        if self.fails:
            raise StoreUnavailable("gone")
        return super().last_change()


def stocked(cache: PlanCache) -> PlanCache:
    for operation in ("orders", "invoices"):
        given = {"customer": "Acme", "month": "March"}
        prompt = f"{operation} of Acme since March"
        cache.store(prompt, calling(operation, **given), params=given)
    return cache


@pytest.fixture
def cache(minilm: MiniLMEmbedder) -> Iterator[PlanCache]:
    with PlanCache.open(embedder=minilm) as opened:
        yield stocked(opened)


def test_values_that_no_word_tells_are_asked_of_who_chooses(cache: PlanCache) -> None:
    missed(cache.lookup(ASKED))
    orders, invoices = cache.options(ASKED)
    assert (orders.shown.prompt, orders.shown.missing) == (
        MADE,
        {"customer": "Acme", "month": "March"},
    )
    assert invoices.plan.to_dict() == calling("invoices", customer="Acme", month="March")
    filled = cache.filled(orders, VALUES)
    assert filled is not None
    assert filled.to_dict() == calling("orders", **VALUES)
    hit = cache.take(orders, VALUES)
    assert given_input(hit) == VALUES
    assert isinstance(hit, Hit)
    assert (hit.tier, hit.params) == ("selected", VALUES)
    assert 0 < hit.risk < 0.05
    assert given_input(cache.lookup(ASKED)) == VALUES


def test_values_that_words_tell_are_in_the_plan_that_is_shown(cache: PlanCache) -> None:
    cache.store("refunds over 20 euros", calling("refunds", over=20), params={"over": 20})
    (option, *_) = cache.options("show refunds that were more than 35 euros")
    assert (option.shown.missing, option.shown.plan) == ({}, calling("refunds", over=35))
    assert cache.filled(option) == option.plan


def test_values_that_the_caller_gave_are_not_asked_for(cache: PlanCache) -> None:
    (option, *_) = cache.options(ASKED, params={"customer": "Initech"})
    assert option.shown.missing == {"month": "March"}
    hit = cache.take(option, {"month": "April"})
    assert given_input(hit) == VALUES


def test_a_plan_that_depends_on_less_than_the_caller_gave_is_no_option(cache: PlanCache) -> None:
    assert cache.options(ASKED, params={"customer": "Initech", "state": "Ohio"}) == ()


@pytest.mark.parametrize("values", [None, {"customer": "x"}, {**VALUES, "more": 1}])
def test_other_values_than_the_missing_are_refused(
    cache: PlanCache, values: dict[str, str] | None
) -> None:
    (option, *_) = cache.options(ASKED)
    for use in (cache.take, cache.filled, cache.choices_needed):
        with pytest.raises(InvalidParameter, match="the chosen plan misses 'customer', 'month'"):
            use(option, values)


def test_what_is_no_option_and_what_is_no_mapping_are_refused_by_name(cache: PlanCache) -> None:
    (option, *_) = cache.options(ASKED)
    wrong: Any = ["Initech"]
    for use in (cache.take, cache.filled, cache.choices_needed):
        with pytest.raises(InvalidInput, match=r"option is \['Initech'\]; expected one of"):
            use(wrong, VALUES)
        with pytest.raises(InvalidInput, match=r"values is \['Initech'\]; expected name -> value"):
            use(option, wrong)


@pytest.mark.parametrize("choices", [0, 3, -1])
def test_a_plan_is_chosen_once_or_twice(cache: PlanCache, choices: int) -> None:
    (option, *_) = cache.options(ASKED)
    with pytest.raises(InvalidInput, match=r"choices is .*; expected 1 or 2"):
        cache.take(option, VALUES, choices=choices)


@pytest.mark.parametrize(
    ("prompt", "needed"),
    [
        ("which orders did Initech place since April", 1),
        ("orders of Initech not since the month of April", 2),
        ("orders of Initech that are not since April", 2),
        ("-> orders of Initech since April", 0),
    ],
)
def test_words_of_direction_take_two_choices_and_signs_are_never_passed_over(
    cache: PlanCache, prompt: str, needed: int
) -> None:
    option = next(one for one in cache.options(prompt) if one.shown.prompt == MADE)
    told = {name: VALUES[name] for name in option.shown.missing}
    assert cache.choices_needed(option, told) == needed
    before = cache.stats()
    if needed != 1:
        assert cache.take(option, told, choices=max(1, needed - 1)) is None
        assert cache.stats() == before
    if needed:
        assert given_input(cache.take(option, told, choices=needed)) == VALUES


RENT = "flats with a monthly rent of 1200"
RENTED = "which flats have a monthly rent of 1500 dollars"
"""The words of its value are read as money, and those of the other as a number."""


@pytest.mark.parametrize("given", [None, {"rent": "R1500"}])
def test_a_plan_for_values_of_other_kinds_is_served_where_it_was_chosen_twice(
    minilm: MiniLMEmbedder, given: dict[str, str] | None
) -> None:
    with PlanCache.open(embedder=minilm) as cache:
        params = [Parameter("rent", "R1200", mention="1200")]
        cache.store(RENT, calling("flats", rent="R1200"), params=params)
        missed(cache.lookup(RENTED, params=given))
        (option,) = cache.options(RENTED, params=given)
        told = {} if given else {"rent": "R1500"}
        assert option.shown.missing.keys() == told.keys()
        assert cache.choices_needed(option, told) == 2
        assert cache.take(option, told) is None
        assert given_input(cache.take(option, told, choices=2)) == {"rent": "R1500"}
        more = f"{RENTED} and 3 rooms"
        for option in cache.options(more, params=given):
            assert cache.choices_needed(option, told) == 0
            assert cache.take(option, told, choices=2) is None


def test_a_value_that_a_plan_has_itself_is_accounted_for(minilm: MiniLMEmbedder) -> None:
    with PlanCache.open(embedder=minilm) as cache:
        plan = calling("credit", by="department", order="dept_code")
        cache.store("total credit of each department, sorted by code", plan)
        (option,) = cache.options("total credit of each department sorted by DEPT_CODE")
        assert cache.choices_needed(option) == 2
        assert cache.options("total credit of each department sorted by DEPT_NAME") == ()


def test_values_that_a_plan_holds_may_be_said_in_another_order_where_it_was_chosen_twice(
    minilm: MiniLMEmbedder,
) -> None:
    with PlanCache.open(embedder=minilm) as cache:
        plan = calling("chart", mean="manager_id", over="hire_date")
        cache.store("compare the average of MANAGER_ID over HIRE_DATE", plan)
        asked = "for each HIRE_DATE compare the average of MANAGER_ID"
        missed(cache.lookup(asked))
        (option,) = cache.options(asked)
        assert cache.choices_needed(option) == 2
        assert cache.options("for each HIRE_DATE compare the average of SALARY_ID") == ()


def test_a_stricter_bound_takes_more_choices(minilm: MiniLMEmbedder) -> None:
    needed = []
    for bound in (None, 0.01, 0.001):
        with PlanCache.open(embedder=minilm, max_wrong=bound) as cache:
            (option, *_) = stocked(cache).options(ASKED)
            needed.append(cache.choices_needed(option, VALUES) or math.inf)
    assert needed == sorted(needed)
    assert needed[0] < needed[-1]


def test_a_plan_that_was_wrong_for_the_prompt_is_not_served_to_it_again(
    cache: PlanCache,
) -> None:
    (option, *_) = cache.options(ASKED)
    hit = cache.take(option, VALUES)
    assert isinstance(hit, Hit)
    cache.feedback(hit, right=False)
    assert cache.take(option, VALUES, choices=2) is None


def test_a_plan_that_was_removed_meanwhile_is_not_served(cache: PlanCache) -> None:
    (option, *_) = cache.options(ASKED)
    cache.clear()
    assert cache.filled(option, VALUES) is None
    assert cache.choices_needed(option, VALUES) == 0
    assert cache.take(option, VALUES) is None


DOUBTFUL = "since April, which purchases came from Initech"
"""Whose words leave much doubt, even of a plan that was chosen twice."""
PLANNED = "since April, which procurements came from Initech"
"""As doubtful, and one of the tenth that is planned all the same."""


def chosen_twice(cache: PlanCache, prompt: str = DOUBTFUL) -> Hit | None:
    """Look the prompt up and choose the orders for it, twice."""
    missed(cache.lookup(prompt))
    option = next(one for one in cache.options(prompt) if one.shown.prompt == MADE)
    assert cache.choices_needed(option, VALUES) == 2
    return cache.take(option, VALUES, choices=2)


@pytest.mark.parametrize(("operation", "counts"), [("orders", (1, 0)), ("invoices", (0, 1))])
def test_a_plan_chosen_in_much_doubt_is_made_anew_and_tells_whether_the_choice_was_right(
    cache: PlanCache, operation: str, counts: tuple[float, float]
) -> None:
    assert chosen_twice(cache) is None
    assert cache.stats().hits == {}
    cache.store(DOUBTFUL, calling(operation, **VALUES), params=VALUES)
    assert cache.evidence().chosen.of("doubtful") == counts


@pytest.mark.parametrize(
    ("right", "wrong", "bound"),
    [(78, 0, None), (114, 1, None), (397, 0, 0.01)],
)
def test_plans_chosen_in_doubt_are_served_once_such_choices_were_seen_to_keep_the_bound(
    minilm: MiniLMEmbedder, tmp_path: Path, right: int, wrong: int, bound: float | None
) -> None:
    def served_after(right: int) -> Hit | None:
        file = tmp_path / "evidence.json"
        with PlanCache.open(embedder=minilm, max_wrong=bound) as cache:
            cache.export_evidence(file)
            document = json.loads(file.read_text(encoding="utf-8"))
            counts = {"same": {"doubtful": right}, "other": {"doubtful": wrong}}
            document["evidence"]["chosen"] = counts
            file.write_text(json.dumps(document), encoding="utf-8")
            cache.import_evidence(file)
            return chosen_twice(stocked(cache))

    assert served_after(right - 1) is None
    hit = served_after(right)
    assert given_input(hit) == VALUES
    assert hit is not None
    assert hit.risk == (bound or 0.05)


def test_right_choices_count_no_more_once_the_trust_is_full(
    minilm: MiniLMEmbedder, tmp_path: Path
) -> None:
    def counted_after(right: int, operation: str) -> tuple[float, float]:
        file = tmp_path / "evidence.json"
        with PlanCache.open(embedder=minilm) as cache:
            cache.export_evidence(file)
            document = json.loads(file.read_text(encoding="utf-8"))
            document["evidence"]["chosen"] = {"same": {"doubtful": right}, "other": {}}
            file.write_text(json.dumps(document), encoding="utf-8")
            cache.import_evidence(file)
            # One of those that are planned although such choices are trusted.
            assert chosen_twice(stocked(cache), PLANNED) is None
            cache.store(PLANNED, calling(operation, **VALUES), params=VALUES)
            return cache.evidence().chosen.of("doubtful")

    assert counted_after(118, "orders") == (119, 0)
    assert counted_after(119, "orders") == (119, 0)
    assert counted_after(119, "invoices") == (119, 1)


def test_a_plan_of_another_catalog_or_subject_is_no_option(cache: PlanCache) -> None:
    assert cache.options(ASKED, grounding="2024") == ()
    assert cache.options("how tall is the tower of the old town hall") == ()


def test_trouble_with_the_store_is_told_and_nothing_is_chosen(minilm: MiniLMEmbedder) -> None:
    store, observer = Failing(), RecordingObserver()
    with cache_over(store, embedder=minilm, observer=observer) as cache:
        (option, *_) = stocked(cache).options(ASKED)
        store.fails = True
        assert cache.options(ASKED) == ()
        assert (cache.take(option, VALUES), cache.filled(option, VALUES)) == (None, None)
        assert cache.choices_needed(option, VALUES) == 0
        assert any(isinstance(event, TierFailed) for event in observer.events)
        store.fails = False
        assert given_input(cache.take(option, VALUES)) == VALUES
