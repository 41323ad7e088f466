"""Prompts that differ in mood or in number: whether to, or to; one or several."""

import pytest

from semcache import Catalog, Operation, PlanCache
from semcache.canonical import JsonObject
from semcache.testing import HashEmbedder
from tests.calling import calling

ANY: JsonObject = {"type": "object"}
CATALOG = Catalog(
    [
        Operation("move", "Moves.", ANY, effect="write"),
        Operation("see", "Sees.", ANY, effect="read"),
    ]
)


@pytest.fixture
def office() -> PlanCache:
    """A cache that is told what writes and what reads."""
    cache = PlanCache.open(embedder=HashEmbedder(), catalog=CATALOG)
    cache.store("move the parcel of shelf 17", calling("move", shelf=17), tenant="movers")
    cache.store("show the parcel of shelf 17", calling("see", shelf=17), tenant="readers")
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
    assert not office.lookup(prompt, tenant="movers")


@pytest.mark.parametrize(
    ("tenant", "prompt"),
    [
        ("movers", "could you move the parcel of shelf 17"),
        ("readers", "can I see the parcel of shelf 17?"),
    ],
)
def test_a_request_in_the_form_of_a_question_stays_one(
    office: PlanCache, tenant: str, prompt: str
) -> None:
    assert office.lookup(prompt, tenant=tenant)


@pytest.mark.parametrize("tenant", ["readers", "movers"])
def test_numbers_that_were_shown_harmless_pass_for_what_reads_alone(
    office: PlanCache, tenant: str
) -> None:
    verb, operation = ("show", "see") if tenant == "readers" else ("move", "move")
    assert not office.lookup(f"{verb} the parcels of shelf 17", tenant=tenant)
    for noun in ("box", "crate", "basket", "bin", "sack", "tub"):
        plan = calling(operation, what=noun)
        office.store(f"{verb} the {noun} of shelf 3", plan, tenant=tenant)
        office.lookup(f"{verb} the {noun}s of shelf 3", tenant=tenant)
        office.store(f"{verb} the {noun}s of shelf 3", plan, tenant=tenant)
    found = office.lookup(f"{verb} the parcels of shelf 17", tenant=tenant)
    assert bool(found) is (tenant == "readers"), found.explain()
