import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from semcache import PlanCache
from semcache.cache.entries.entry import Entry, from_json, from_record
from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidJson, StoreCorrupt
from semcache.testing import FakeClock, HashEmbedder
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
@pytest.mark.parametrize("change", [*BROKEN, "", "[]", "7", "null", "{", '"x"', "NaN"], ids=str)
def test_a_body_that_is_no_entry_is_corrupt_and_named(change: dict[str, Any] | str) -> None:
    record = entry().record(None, "")
    body = change if isinstance(change, str) else json.dumps(json.loads(record.body) | change)
    with pytest.raises(StoreCorrupt, match=record.id):
        from_record(replace(record, body=body))


def test_every_member_of_an_entry_is_needed() -> None:
    whole = entry().to_json()
    for name in whole:
        with pytest.raises(InvalidJson, match=f"line 2 at '/{name}': the member is missing"):
            from_json("acme", {k: v for k, v in whole.items() if k != name}, what="line 2")
