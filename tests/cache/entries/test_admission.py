"""What becomes an entry, what it says of itself, and what must not be kept."""

import pytest

from semcache import Catalog, Operation, PlanCache, PromptSchema
from semcache.cache.entries.entry import Entry
from semcache.canonical import Json, JsonObject
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling

DAY_S = 24 * 3600.0


def plan(operation: str = "sales", **given: Json) -> JsonObject:
    return calling(operation, **given)


def only(cache: PlanCache) -> Entry:
    (entry,) = cache.entries()
    return entry


def test_an_entry_says_where_it_came_from(cache: PlanCache, clock: FakeClock) -> None:
    cache.store(
        "sales in 2024", plan(year="2024"), params={"year": "2024"}, tags=["q1"], planner="p/1"
    )
    entry = only(cache)
    assert (entry.prompt, entry.tags, entry.planner) == ("sales in 2024", ("q1",), "p/1")
    assert (entry.operations, entry.named) == (("sales",), ("year",))
    assert (entry.created_s, entry.expires_s) == (clock.now(), clock.now() + 30 * DAY_S)


# specs
def test_a_complete_schema_labels_its_entry_as_the_document_does(cache: PlanCache) -> None:
    schema = PromptSchema(
        "summarize", ("sale",), ("category",), {"year": "2024", "amount": {"aggregate": "sum"}}
    )
    cache.store("sales in 2024", plan(year="2024"), params={"year": "2024"}, schema=schema)
    entry = only(cache)
    assert entry.key == entry.label == "summarize-sale-amount_year-group_category"
    assert cache.invalidate(key="summarize-sale-amount_year-group_category") == 1


def test_a_partial_schema_labels_nothing(cache: PlanCache) -> None:
    schema = PromptSchema("summarize", ("sale",), unexplained=("returns",))
    cache.store("sales without returns", plan(), schema=schema)
    assert (only(cache).key, only(cache).label) == ("", "sales without returns")


def test_an_entry_knows_whether_its_plan_writes() -> None:
    catalog = Catalog([
        Operation("sales", "Sales.", {"type": "object"}, effect="read"),
        Operation("refund", "Refund.", {"type": "object"}, effect="write"),
    ])  # fmt: skip
    with PlanCache.open(catalog=catalog, embedder=HashEmbedder(), clock=FakeClock()) as cache:
        cache.store("sales", plan())
        assert not only(cache).writes
        cache.clear()
        cache.store("refund", plan("refund"))
        assert only(cache).writes


# specs: A-16
def test_a_plan_that_hard_codes_a_value_serves_that_value_alone(cache: PlanCache) -> None:
    body = plan(query="year = 2024", limit=10)
    cache.store("sales in 2024", body, params={"year": "2024"})
    assert [pin.param for pin in only(cache).plan.pinned] == ["year"]
    assert cache.lookup("sales in 2024")
    assert not cache.lookup("sales in 2023")


@pytest.mark.parametrize(
    ("prompt", "body", "soon"),
    [
        ("sales yesterday", plan(date="2023-11-13"), False),
        ("sales yesterday", plan(date="2023-10-13"), True),
        ("sales this month", plan(since="2023-11-02"), True),
        ("sales this month", plan(when="this month", month=3), True),
        ("sales this month", plan(when="this month", epoch=1700000000), True),
        ("sales yesterday", plan(request="sales of yesterday in all shops"), False),
        (
            "sales yesterday",
            plan(sql="SELECT 1 WHERE d >= date(current_timestamp, '-1 day')"),
            False,
        ),
        ('sales yesterday in "Shop 2030"', plan(when="yesterday", shop="Shop 2030"), False),
        ("sales yesterday", plan(when="yesterday"), False),
        ("sales of the last 30 days", plan(days=30), False),
        ("sales on 2023-11-13", plan(date="2023-11-13"), False),
    ],
)
def test_an_entry_that_froze_a_day_ends_with_it(
    cache: PlanCache, clock: FakeClock, prompt: str, body: JsonObject, soon: bool
) -> None:
    cache.store(prompt, body)
    expires = only(cache).expires_s
    assert expires is not None
    midnight = (clock.now() // DAY_S + 1) * DAY_S
    assert (expires <= midnight) is soon


def test_a_plan_that_froze_an_instant_is_not_kept_at_all(cache: PlanCache) -> None:
    stored = cache.store("remind me in 5 minutes", plan(at="22:18"))
    assert not stored
    assert "22:18" in stored.reason
    assert cache.entries() == ()


def test_an_example_keeps_the_words_that_carry_each_value(cache: PlanCache) -> None:
    params: dict[str, Json] = {"limit": 5, "state": "OH", "tier": "gold"}
    cache.store("top five in OH", calling("sales", **params), params=params)
    (example,) = only(cache).examples
    assert {p.name: p.mention for p in example} == {"limit": "five", "state": "OH", "tier": None}
