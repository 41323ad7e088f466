from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from semcache.cache.found import Hit
from semcache.cache.plan_cache import PlanCache
from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, given_input, missed

YEAR = Parameter("year", "2024", mention="2024")
Vectors = Callable[..., Any]


plan = partial(calling, "sales")


def schema(
    action: str = "summarize", group_by: tuple[str, ...] = ("category",), **params: Json
) -> PromptSchema:
    return PromptSchema(action, ("sale",), group_by, params)


# Template tier ───────────────────────────────────────────────────────────────────────────────────


def test_an_equal_template_is_served_without_embedding(
    cache: PlanCache, embedder: HashEmbedder
) -> None:
    cache.store("Sales in 2024 by category?", plan(year="2024"), params=[YEAR])
    embedder.texts.clear()
    found = cache.lookup("sales in 1999 by category")
    assert given_input(found) == {"year": "1999"}
    assert (found.tier, found.score) == ("template", 1.0) if isinstance(found, Hit) else False
    assert embedder.texts == []


def test_an_unseen_value_is_found_where_a_template_has_its_slot(cache: PlanCache) -> None:
    city = {"city": "Springfield"}
    cache.store("monthly visitor report for Springfield", plan(**city), params=city)
    found = cache.lookup("monthly visitor report for Ogdenville")
    assert given_input(found) == {"city": "Ogdenville"}
    assert "hit by alignment" in found.explain()


@pytest.mark.parametrize(
    "prompt",
    [
        "monthly visitor report for Ogdenville and North Haverbrook",
        "monthly visitor report for everything but Ogdenville",
        "monthly visitor report for last month",
        "yearly visitor report for Ogdenville",
    ],
)
def test_more_than_a_value_in_the_place_of_a_slot_is_no_value(
    cache: PlanCache, prompt: str
) -> None:
    city = {"city": "Springfield"}
    cache.store("monthly visitor report for Springfield", plan(**city), params=city)
    assert not cache.lookup(prompt)


# Schema tier ─────────────────────────────────────────────────────────────────────────────────────


# specs
def test_another_wording_with_the_same_schema_is_served_its_own_values(cache: PlanCache) -> None:
    asked = schema(year="2024", amount={"aggregate": "sum"})
    cache.store("Total sales 2024 by category", plan(year="2024"), params=[YEAR], schema=asked)
    other = schema(year="2023", amount={"aggregate": "sum"})
    found = cache.lookup("How much was sold per category in 2023?", schema=other)
    assert given_input(found) == {"year": "2023"}
    assert isinstance(found, Hit)
    assert (found.tier, found.key) == ("schema", "summarize-sale-amount_year-group_category")


# specs
@pytest.mark.parametrize(
    "other",
    [
        schema(year="2023", amount={"aggregate": "avg"}),
        schema(year={"operator": ">", "operand": "2023"}, amount={"aggregate": "sum"}),
        schema(group_by=("state",), year="2023", amount={"aggregate": "sum"}),
        schema(group_by=("category", "state"), year="2023", amount={"aggregate": "sum"}),
        schema("search", year="2023", amount={"aggregate": "sum"}),
        schema(year="2023", amount={"aggregate": "sum"}, limit=5),
        schema(year="2023"),
    ],
)
def test_a_schema_that_asks_something_else_never_shares_a_plan(
    cache: PlanCache, other: PromptSchema
) -> None:
    asked = schema(year="2024", amount={"aggregate": "sum"})
    cache.store("Total sales 2024 by category", plan(year="2024"), params=[YEAR], schema=asked)
    assert not cache.lookup("How much was sold per category in 2023?", schema=other)


def test_a_partial_schema_finds_nothing_and_is_found_by_nothing(cache: PlanCache) -> None:
    whole = schema(year="2024")
    partial = PromptSchema(
        whole.action, whole.entities, whole.group_by, whole.params, unexplained=("returns",)
    )
    cache.store("sales without returns in 2024", plan(year="2024"), params=[YEAR], schema=partial)
    assert not cache.lookup("what was sold in 2024", schema=whole)
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR], schema=whole)
    found = missed(cache.lookup("what was sold less returns in 2024", schema=partial))
    assert ("schema", "partial: returns") in found.trace.tiers


def test_a_schema_without_a_value_that_the_plan_needs_is_refused(cache: PlanCache) -> None:
    both = {"year": "2024", "region": "west"}
    asked = schema(year="2024")
    cache.store("sales 2024", plan(**both), params=both, schema=asked)
    found = missed(cache.lookup("what was sold in 2023", schema=schema(year="2023")))
    assert "no value for 'region'" in found.explain()


# Semantic tier ───────────────────────────────────────────────────────────────────────────────────

AT = float(np.float32(0.96))
"""A cosine as vectors hold it."""
EXACTLY_AT = (0.96, 0.28)
JUST_OVER = (0.9601, (1 - 0.9601**2) ** 0.5)


# specs: D-3
@pytest.mark.parametrize(("vector", "hit"), [(EXACTLY_AT, False), (JUST_OVER, True)])
def test_a_score_at_the_threshold_is_a_miss_and_one_above_it_a_hit(
    vector: tuple[float, float], hit: bool, scripted_embedder: Vectors, clock: FakeClock
) -> None:
    embedder = scripted_embedder((1, 0), vector)
    with PlanCache.open(threshold=AT, embedder=embedder, clock=clock) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        found = cache.lookup("show me sales in 2023")
        assert bool(found) is hit
        if not hit:
            assert (missed(found).reason, missed(found).trace.candidates[0].score) == (
                "threshold", AT,
            )  # fmt: skip


# specs: D-3
@pytest.mark.parametrize(
    ("cosine", "hit"), [(0.95, False), (0.951, True), (0.9991, True), (0.949, False)]
)
def test_the_default_threshold_is_that_of_orra(
    cosine: float, hit: bool, scripted_embedder: Vectors, clock: FakeClock
) -> None:
    embedder = scripted_embedder((1, 0), (cosine, (1 - cosine**2) ** 0.5))
    with PlanCache.open(embedder=embedder, clock=clock) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert bool(cache.lookup("show me sales in 2023")) is hit


def test_one_prompt_may_ask_for_a_stricter_threshold(
    scripted_embedder: Vectors, clock: FakeClock
) -> None:
    embedder = scripted_embedder((1, 0), (0.97, (1 - 0.97**2) ** 0.5))
    with PlanCache.open(embedder=embedder, clock=clock) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        assert missed(cache.lookup("show me sales in 2023", threshold=0.98)).reason == "threshold"
        assert cache.lookup("show me sales in 2023")


def test_the_second_nearest_is_served_where_the_nearest_may_not(cache: PlanCache) -> None:
    cache.store("orders of the state", plan(of="other"), grounding="elsewhere")
    cache.store("orders for the state", plan(of="ours"))
    found = cache.lookup("show me the orders of the state")
    assert given_input(found) == {"of": "ours"}
    assert [candidate.served for candidate in found.trace.candidates].count(True) == 1


def test_candidates_that_say_different_things_are_both_refused(cache: PlanCache) -> None:
    cache.store("orders of the state", plan(of="one"))
    cache.store("orders for the state", plan(of="other"))
    found = missed(cache.lookup("show me the orders of the state"))
    assert found.reason in {"contested", "risk"}
    assert ("semantic", "every candidate is too risky") in found.trace.tiers


def test_candidates_that_say_the_same_serve(cache: PlanCache) -> None:
    cache.store("orders of the state", plan(of="one"))
    cache.store("orders for the state", plan(of="one"))
    assert given_input(cache.lookup("show me the orders of the state")) == {"of": "one"}


@pytest.mark.parametrize(
    ("asked", "gate"),
    [
        ("sales over $500 without returns", "words"),
        ("sales over $500 in 2024", "slots"),
        ("sales over 500", "slots"),
    ],
)
def test_a_miss_says_which_gate_the_nearest_failed_on(
    cache: PlanCache, asked: str, gate: str
) -> None:
    cache.store("sales over $400 with returns", plan(amount="$400"), params={"amount": "$400"})
    found = missed(cache.lookup(asked, threshold=None))
    assert found.nearest is not None
    failed = [v.gate for c in found.trace.candidates for v in c.verdicts if not v.passed]
    assert failed
    assert found.reason in failed
    assert gate in failed or "threshold" in failed


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("top 5 customers by amount", "bottom 5 customers by amount"),
        ("total sales by state", "average sales by state"),
        ("orders before 2024", "orders after 2024"),
        ("sales with returns", "sales without returns"),
        ("cancel order 1234", "create order 1234"),
        ("flights from Boston to Denver", "flights from Denver to Boston"),
    ],
)
def test_opposites_that_lie_near_each_other_are_told_apart(
    stored: str, asked: str, minilm: SentenceTransformersEmbedder, clock: FakeClock
) -> None:
    with PlanCache.open(threshold=0.5, embedder=minilm, clock=clock) as cache:
        cache.store(stored, plan(text="fixed"))
        assert not cache.lookup(asked)


# specs: D-2, D-3
def test_courtesy_does_not_cost_a_hit_with_the_real_embedder(
    minilm: SentenceTransformersEmbedder, clock: FakeClock
) -> None:
    with PlanCache.open(embedder=minilm, clock=clock) as cache:
        cache.store("total sales in 2024 by category", plan(year="2024"), params=[YEAR])
        found = cache.lookup("Could you please show me the total sales in 2023 by category?")
        assert given_input(found) == {"year": "2023"}
        assert isinstance(found, Hit)
        assert found.score > 0.95


# Catalog ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_value_that_the_operation_does_not_take_is_a_miss_and_no_error(
    clock: FakeClock,
) -> None:
    properties: JsonObject = {"year": {"type": "string", "pattern": "^20"}}
    input_schema: JsonObject = {"type": "object", "properties": properties}
    catalog = Catalog([Operation("sales", "Sales.", input_schema, effect="read")])
    with PlanCache.open(catalog=catalog, embedder=HashEmbedder(), clock=clock) as cache:
        cache.store("report of 2024", plan(year="2024"), params=[YEAR])
        assert cache.lookup("report of 2023")
        found = missed(cache.lookup("report of 1999"))
        assert found.reason == "check"
        assert "/call/input/year" in found.explain()


def test_an_empty_cache_says_so(cache: PlanCache) -> None:
    found = missed(cache.lookup("sales"))
    assert (found.reason, found.nearest) == ("empty", None)
    assert ("semantic", "nothing to compare with") in found.trace.tiers
