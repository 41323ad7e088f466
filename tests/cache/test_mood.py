"""Prompts that differ in mood or in number: whether to, or to; one or several."""

import pytest

from semcache.cache.plan_cache import PlanCache
from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.testing import HashEmbedder
from tests.calling import calling

ANY: JsonObject = {"type": "object"}
CATALOG = Catalog(
    [Operation("move", "Moves.", ANY, effect="write"), Operation("see", "Sees.", ANY)]
)


@pytest.fixture
def office() -> PlanCache:
    """A cache that is told what writes and what reads."""
    cache = PlanCache.open(embedder=HashEmbedder(), catalog=CATALOG)
    cache.store("move the parcel of shelf 17", calling("move", shelf=17))
    cache.store("show the parcel of shelf 17", calling("see", shelf=17))
    return cache


@pytest.mark.parametrize(
    "prompt",
    [
        "can I move the parcel of shelf 17?",
        "may we please move the parcel of shelf 17",
        "should I move the parcel of shelf 17?",
        "move the parcels of shelf 17",
        "move the parcel of shelves 17",
    ],
)
def test_whether_to_and_how_many_are_not_what_was_told(office: PlanCache, prompt: str) -> None:
    assert not office.lookup(prompt)


@pytest.mark.parametrize(
    "prompt", ["could you move the parcel of shelf 17", "can I see the parcel of shelf 17?"]
)
def test_a_request_in_the_form_of_a_question_stays_one(office: PlanCache, prompt: str) -> None:
    assert office.lookup(prompt)


@pytest.mark.parametrize("label", [True, False])
def test_numbers_that_were_shown_harmless_pass_for_what_reads_alone(
    office: PlanCache, label: bool
) -> None:
    for noun in ("box", "crate", "basket", "bin", "sack", "tub"):
        office.store(f"show the {noun} of shelf 3", calling("see", what=noun))
        if label:
            office.lookup(f"show the {noun}s of shelf 3")
            office.store(f"show the {noun}s of shelf 3", calling("see", what=noun))
    assert bool(office.lookup("show the parcels of shelf 17")) is label
    assert not office.lookup("move the parcels of shelf 17")
