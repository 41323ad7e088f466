from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from semcache import Catalog, Operation, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.testing import FakeClock
from tests.calling import calling, given_input, missed

YEAR = Parameter("year", "2024", mention="2024")
Vectors = Callable[..., Any]


plan = partial(calling, "sales")


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


@pytest.mark.parametrize(("cosine", "hit"), [(0.875, False), (0.885, True)])
@pytest.mark.parametrize("redact", [None, lambda text: text])
def test_a_threshold_is_told_in_the_unit_of_the_plain_weights_whatever_the_embedder(
    cosine: float, hit: bool, redact: Any, scripted_embedder: Vectors, clock: FakeClock
) -> None:
    embedder = scripted_embedder((1, 0), (cosine, (1 - cosine**2) ** 0.5))
    embedder.strict_cosine = 0.88
    with PlanCache.open(embedder=embedder, clock=clock, redact=redact) as cache:
        cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
        found = cache.lookup("show me sales in 2023")
        assert bool(found) is hit
        (candidate,) = found.trace.candidates
        assert (candidate.score > 0.95) is hit
        if not hit:
            assert missed(found).reason == "threshold"


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


@pytest.mark.parametrize("foreign", ["grounding", "catalog"])
def test_nearer_entries_that_cannot_be_served_hide_none_that_can(
    foreign: str, scripted_embedder: Vectors
) -> None:
    schema: JsonObject = {"type": "object"}
    old = Catalog([Operation("sales", "Old sales.", schema, effect="read")])
    new = Catalog([Operation("sales", "New sales.", schema, effect="read")])
    near = [(1.0, 0.001 * i) for i in range(300)]
    embedder = scripted_embedder(*near, (1.0, 0.9), (1.0, 0.0))
    with PlanCache.open(embedder=embedder, catalog=old, threshold=0.1) as cache:
        for i in range(300):
            cache.store(f"old wording {'x' * i}", calling("sales"))
        grounding = "mine" if foreign == "grounding" else ""
        cache.catalog = new if foreign == "catalog" else old
        stored = cache.store("sales by state", calling("sales"), grounding=grounding)
        found = cache.lookup("states by sale", grounding=grounding)
        candidates = found.trace.candidates
        assert [candidate.entry for candidate in candidates] == [stored.id]
