import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter, PlanCache
from semcache.cache.entries.entry import Entry, from_json, from_record, merged, template_key
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidJson, StoreCorrupt
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask
from semcache.testing import FakeClock, HashEmbedder, unit
from tests.calling import calling

plan = partial(calling, "sales")


def entry(
    prompt: str = "sales in 2024 for ORD456", body: JsonObject | None = None, **given: Json
) -> Entry:
    params = given or {"year": "2024"}
    with PlanCache.open(embedder=HashEmbedder(dim=8), clock=FakeClock()) as cache:
        cache.store(prompt, body or plan(**params), params=params, tags=["t"])
        (made,) = cache.entries()
        return made


def test_an_entry_comes_back_from_its_record_as_it_was() -> None:
    made = entry()
    record = made.record(unit(1, 0), "e")
    assert from_record(record) == made
    assert (record.id, record.embedder, record.tenant) == (made.id, "e", "default")
    assert set(record.labels) == {"tag:t", "operation:sales"}


def test_a_record_without_a_vector_names_no_embedder() -> None:
    assert entry().record(None, "e").embedder == ""


def test_the_keys_of_a_plan_stay_in_the_order_they_had() -> None:
    made = entry(body=plan(zebra="2024", apple=1))
    again = from_record(made.record(None, ""))
    assert json.dumps(again.plan.plan) == json.dumps(made.plan.plan)


def test_values_that_may_vary_are_no_part_of_the_id_and_fixed_ones_are() -> None:
    assert entry().id == entry("sales in 2023 for ORD456", year="2023").id
    assert entry().id != entry("sales in 2024 for ORD999").id
    other = replace(entry(), grounding="g")
    assert other.id != entry().id


def test_the_key_of_a_template_holds_the_words_that_are_fixed() -> None:
    text = "process order ORD456 of 2024"
    template = mask(text, find_mentions(text))
    assert template_key(template, ()) == f"template:{template.digest}"
    fixed = template_key(template, (0,))
    other = mask(text.replace("456", "999"), find_mentions(text.replace("456", "999")))
    assert fixed.startswith(f"template:{template.digest}:")
    assert template_key(other, ()) == template_key(template, ())
    assert template_key(other, (0,)) != fixed


BROKEN: list[dict[str, Any]] = [
    {"format": 1},
    {"format": None},
    {"template": None},
    {"template": {"text": "x", "slots": [{"kind": "year"}]}},
    {"plan": {}},
    {"plan": []},
    {"wordings": {"year": "shouted"}},
    {"wordings": []},
    {"named": None},
    {"examples": [[{"name": ""}]]},
    {"examples": 7},
]


# specs: A-13
@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_a_body_that_is_no_entry_is_corrupt_and_named(change: dict[str, Any]) -> None:
    record = entry().record(None, "")
    body = json.loads(record.body) | change
    with pytest.raises(StoreCorrupt, match=record.id):
        from_record(replace(record, body=json.dumps(body)))


@pytest.mark.parametrize("body", ["", "[]", "7", "null", "{", '"x"', "NaN"])
def test_a_body_that_is_no_object_is_corrupt(body: str) -> None:
    with pytest.raises(StoreCorrupt):
        from_record(replace(entry().record(None, ""), body=body))


def test_every_member_of_an_entry_is_needed() -> None:
    whole = entry().to_json()
    for name in whole:
        with pytest.raises(InvalidJson, match=f"line 2 at '/{name}': the member is missing"):
            from_json("acme", {k: v for k, v in whole.items() if k != name}, what="line 2")


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_merged_examples_are_the_last_different_ones(values: list[int], keep: int) -> None:
    groups = [(Parameter("n", value),) for value in values]
    kept = [group[0].value for group in merged(groups, keep)]
    last_seen = sorted(set(values), key=lambda v: len(values) - values[::-1].index(v))
    assert kept == last_seen[-keep:]
