"""What a hit is bound to: the values of this prompt, or nothing at all."""

import json
from functools import partial
from typing import Any

import pytest

from semcache import Hit, Miss, Parameter, PlanCache
from semcache.canonical import Json, JsonObject
from semcache.models.minilm import MiniLMEmbedder
from semcache.testing import FakeClock
from tests.calling import calling, given_input
from tests.orra import IDS, ORRA, two_services

STORED = "Process a refund for order ORD456 of customer CUST789"
NEW = {"customerId": "CUST111", "orderId": "ORD222"}


plan = partial(calling, "sales")


def served(found: object) -> JsonObject:
    assert isinstance(found, Hit), found
    return found.plan.to_dict()


def missed(found: object) -> str:
    """Return why nothing was served."""
    assert isinstance(found, Miss), found
    return found.reason


# specs: D-2
@pytest.mark.parametrize("params", [NEW, None], ids=["given", "read from the words"])
def test_the_plan_of_the_document_is_rebound_on_a_paraphrase(
    cache: PlanCache, params: dict[str, str] | None
) -> None:
    cache.store(STORED, ORRA, params=IDS)
    found = cache.lookup(
        "Could you please process the refund for order ORD222 of the customer CUST111?",
        params=params,
    )
    assert served(found) == two_services(customerId="CUST111", orderId="ORD222")
    assert found.params == NEW if isinstance(found, Hit) else False


# specs: D-2
def test_the_plan_of_the_document_is_rebound_with_the_real_embedder(
    minilm: MiniLMEmbedder, clock: FakeClock
) -> None:
    with PlanCache.open(embedder=minilm, clock=clock) as cache:
        cache.store("Process the refund of my order", ORRA, params=IDS)
        found = cache.lookup("Please process a refund for my order", params=NEW)
        assert served(found) == two_services(customerId="CUST111", orderId="ORD222")
        assert isinstance(found, Hit)
        assert found.tier == "semantic"


# specs: D-5
@pytest.mark.parametrize(
    "params",
    [
        {"orderId": "ORD222"},
        {"customerId": "CUST111", "orderId": "ORD222", "reason": "late"},
        {"customerId": "CUST111", "ticketId": "ORD222"},
    ],
)
def test_fewer_more_or_other_parameters_are_a_miss(
    cache: PlanCache, params: dict[str, str]
) -> None:
    cache.store("Refund my order", ORRA, params=IDS)
    found = cache.lookup("Refund my order", params=params)
    assert isinstance(found, Miss)
    assert found.reason == "parameters"


# specs: D-5
def test_names_that_differ_in_spelling_only_are_the_same(cache: PlanCache) -> None:
    # specs: D-5
    cache.store("Refund my order", ORRA, params=IDS)
    renamed = {"customer_id": "CUST111", "Order-ID": "ORD222"}
    assert served(cache.lookup("Refund my order", params=renamed)) == two_services(**NEW)


# specs: D-5
def test_equal_values_are_served_apart_where_names_tell_them_apart(cache: PlanCache) -> None:
    same = {"customerId": "X-1000", "orderId": "X-1000"}
    cache.store("Refund my order", two_services(**same), params=same)
    assert served(cache.lookup("Refund my order", params=NEW)) == two_services(**NEW)


# specs: D-5
def test_equal_values_that_nothing_tells_apart_serve_only_equal_values(cache: PlanCache) -> None:
    same = {"customerId": "X-1000", "orderId": "X-1000"}
    cache.store("Refund my order", plan(a="X-1000", b="X-1000"), params=same)
    assert missed(cache.lookup("Refund my order", params=NEW)) == "pinned"
    both = {"customerId": "Y-2", "orderId": "Y-2"}
    assert given_input(cache.lookup("Refund my order", params=both)) == {"a": "Y-2", "b": "Y-2"}


# specs: D-5
@pytest.mark.parametrize(("value", "level"), [(1, 1), ("1", 1), (1.5, 1.5)])
def test_a_number_is_served_as_the_plan_writes_numbers(
    cache: PlanCache, value: Json, level: Json
) -> None:
    cache.store("Set the level", plan(level=3), params={"level": 3})
    found = cache.lookup("Set the level", params={"level": value})
    assert given_input(found) == {"level": level}


# specs: D-5
@pytest.mark.parametrize("value", [True, None, ["1"], {"1": 1}])
def test_a_value_is_never_served_as_another_that_prints_alike(
    cache: PlanCache, value: Json
) -> None:
    cache.store("Set the level", plan(level=3), params={"level": 3})
    assert missed(cache.lookup("Set the level", params={"level": value})) == "binding"


# specs: D-6
@pytest.mark.parametrize(
    "body",
    [
        plan(order="1234"),
        plan(note="about order #1234"),
        plan(path="/orders/1234/items"),
        plan(order=987),
    ],
)
def test_a_number_that_only_the_words_name_is_never_served_stale(
    cache: PlanCache, body: JsonObject
) -> None:
    cache.store("Process order #1234", body)
    assert served(cache.lookup("Please process order #1234")) == body
    assert missed(cache.lookup("Process order #5678")) == "pinned"


# specs: D-6
def test_a_code_that_a_plan_has_to_the_letter_is_rebound_though_nobody_named_it(
    cache: PlanCache,
) -> None:
    cache.store("Process order #1234", plan(order="#1234"))
    assert given_input(cache.lookup("Process order #5678")) == {"order": "#5678"}


def test_two_values_that_change_places_change_places_in_the_plan(cache: PlanCache) -> None:
    legs = {"origin": "Boston", "destination": "Denver"}
    cache.store("flights from Boston to Denver", plan(**legs), params=legs)
    swapped = {"origin": "Denver", "destination": "Boston"}
    assert missed(cache.lookup("flights from Denver to Boston")) == "words"
    cache.store("flights from Denver to Boston", plan(**swapped), params=swapped)
    assert given_input(cache.lookup("flights from Denver to Boston")) == swapped
    assert given_input(cache.lookup("flights from Boston to Denver")) == legs


def test_a_caller_who_names_the_words_otherwise_is_served_as_named(cache: PlanCache) -> None:
    legs = {"origin": "Boston", "destination": "Denver"}
    cache.store("cheap flights between Boston and Denver", plan(**legs), params=legs)
    swapped = {"origin": "Denver", "destination": "Boston"}
    found = cache.lookup("cheap flights between Boston and Denver", params=swapped)
    assert given_input(found) == swapped


def test_a_value_written_in_words_is_bound_as_the_number_it_is(cache: PlanCache) -> None:
    five = Parameter("limit", 5, mention="five")
    cache.store("the five latest orders", plan(limit=5), params=[five])
    assert given_input(cache.lookup("the twelve latest orders")) == {"limit": 12}
    assert given_input(cache.lookup("the 7 latest orders")) == {"limit": 7}


def test_a_translated_value_needs_to_have_been_seen(cache: PlanCache) -> None:
    for city, code in (("San Francisco", "SFO"), ("Boston", "BOS")):
        code_of = Parameter("city", code, mention=city)
        cache.store(f"arrivals board for {city} airport", plan(city=code), params=[code_of])
    assert given_input(cache.lookup("arrivals board for San Francisco airport")) == {"city": "SFO"}
    elsewhere = "arrivals board for Los Angeles airport"
    unseen = cache.lookup(elsewhere)
    assert missed(unseen) == "binding"
    assert "no known translation of 'Los Angeles'" in unseen.explain()
    seen = Parameter("city", "LAX", mention="Los Angeles")
    cache.store("gates of Los Angeles", calling("gates", city="LAX"), params=[seen])
    assert given_input(cache.lookup(elsewhere)) == {"city": "LAX"}


# The way a value is written ──────────────────────────────────────────────────────────────────────


def test_a_date_that_was_rewritten_is_not_handed_on_in_another_form(cache: PlanCache) -> None:
    american = Parameter("date", "03/11/2024", mention="March 11, 2024")
    cache.store("sales on March 11, 2024", plan(date="03/11/2024"), params=[american])
    assert missed(cache.lookup("sales on April 2, 2024")) == "binding"


def test_a_date_that_was_read_is_read_again(cache: PlanCache) -> None:
    iso = Parameter("date", "2024-03-11", mention="March 11, 2024")
    cache.store("sales on March 11, 2024", plan(date="2024-03-11"), params=[iso])
    assert given_input(cache.lookup("sales on April 2, 2024")) == {"date": "2024-04-02"}
    assert not cache.lookup("sales on yesterday")


# Words whose meaning changes with the day ────────────────────────────────────────────────────────


@pytest.mark.parametrize("params", [{"date": "2023-11-13"}, {}])
def test_what_yesterday_came_to_is_worked_out_anew_after_midnight(
    cache: PlanCache, clock: FakeClock, params: dict[str, str]
) -> None:
    given = [Parameter(n, v, mention="yesterday") for n, v in params.items()]
    cache.store("sales yesterday", plan(date="2023-11-13"), params=given)
    assert given_input(cache.lookup("sales yesterday")) == {"date": "2023-11-13"}
    assert given_input(cache.lookup("sales today")) == {"date": "2023-11-14"}
    clock.advance(2 * 3600)  # 22:13 to 00:13 UTC
    assert given_input(cache.lookup("sales yesterday")) == {"date": "2023-11-14"}
    assert given_input(cache.lookup("show me sales yesterday")) == {"date": "2023-11-14"}


def test_a_plan_that_hands_on_the_words_lasts(cache: PlanCache, clock: FakeClock) -> None:
    word = Parameter("when", "yesterday", mention="yesterday")
    cache.store("sales yesterday", plan(when="yesterday"), params=[word])
    clock.advance(24 * 3600)
    assert given_input(cache.lookup("sales yesterday")) == {"when": "yesterday"}


def test_a_number_of_days_lasts_and_varies(cache: PlanCache, clock: FakeClock) -> None:
    days = Parameter("days", 30, mention="30")
    cache.store("orders of the last 30 days", plan(days=30), params=[days])
    clock.advance(24 * 3600)
    assert given_input(cache.lookup("orders of the last 60 days")) == {"days": 60}


def test_a_start_that_a_number_of_days_came_to_neither_lasts_nor_varies(
    cache: PlanCache, clock: FakeClock
) -> None:
    days = Parameter("days", 30, mention="30")
    body = plan(days=30, start="2023-10-15")
    cache.store("orders of the last 30 days", body, params=[days])
    assert served(cache.lookup("orders of the last 30 days")) == body
    assert not cache.lookup("orders of the last 60 days")
    clock.advance(24 * 3600)
    assert not cache.lookup("orders of the last 30 days")


# Plans of other formats ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        '{"calls": [{"do": "x", "in": {"year": "2024"}}]}',
        '{"steps": [["query", {"year": "2024"}]]}',
        '{"sql": "SELECT 1", "args": {"year": "2024"}}',
    ],
)
def test_any_json_document_is_a_plan_and_so_is_its_text(cache: PlanCache, body: str) -> None:
    cache.store("sales in 2024", body, params={"year": "2024"})
    found = cache.lookup("show me the sales in 2023")
    assert json.dumps(served(found)) == body.replace("2024", "2023")


def test_a_served_plan_is_the_callers_own(cache: PlanCache) -> None:
    cache.store("sales in 2024", plan(year="2024", tags=["a"]), params={"year": "2024"})
    for _ in range(2):
        body: Any = served(cache.lookup("sales in 2023"))
        assert body["call"]["input"] == {"year": "2023", "tags": ["a"]}
        body["call"]["input"]["tags"].append("spoiled")
        body.clear()
