from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import PlanCache
from semcache.cache.entries.decoded_entries import DecodedEntries
from semcache.cache.entries.entry import Entry, from_record
from semcache.canonical import Json, JsonObject
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling

plan = partial(calling, "sales")


def entry(body: JsonObject | None = None, **given: Json) -> Entry:
    params = given or {"year": "2024"}
    with PlanCache.open(embedder=HashEmbedder(dim=8), clock=FakeClock()) as cache:
        cache.store("sales in 2024 for ORD456", body or plan(**params), params=params)
        (made,) = cache.entries()
        return made


def test_a_decoded_entry_is_decoded_again_once_its_record_changed() -> None:
    decoded, made = DecodedEntries(keep=2), entry()
    record = replace(made.record(None, ""), change=1)
    first = decoded.entry(record)
    assert decoded.entry(record) is first
    changed = replace(made, planner="other").record(None, "")
    assert decoded.entry(replace(changed, change=2)).planner == "other"


TEXTS = st.text(st.characters(exclude_characters="$"), max_size=9)
"""`$` begins an expression, which a plan may have only if it can be read."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@settings(max_examples=30)
@given(JSON)
def test_a_decoded_entry_is_that_of_its_record_but_for_examples(extra: Json) -> None:
    record = entry(plan(year="2024", extra=extra), year="2024").record(None, "")
    whole, decoded = from_record(record), DecodedEntries().entry(record)
    assert decoded == replace(whole, examples=())
    assert repr(decoded) == repr(replace(whole, examples=()))
