from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import PlanCache
from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.view.summaries import DecodedEntries
from semcache.cache.view.views import Views
from semcache.canonical import Json, JsonObject
from semcache.stores.memory import MemoryStore
from semcache.stores.vectors.faiss_index import FaissIndex
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


def test_of_the_entries_those_served_last_are_kept() -> None:
    decoded, record = DecodedEntries(keep=2), entry().record(None, "")
    first = decoded.entry(replace(record, id="first"))
    decoded.entry(replace(record, id="second"))
    assert decoded.known(record.tenant, "first", record.change) is first
    decoded.entry(replace(record, id="third"))
    assert decoded.known(record.tenant, "first", record.change) is first
    assert decoded.known(record.tenant, "second", record.change) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=9),
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


def test_nothing_is_held_of_an_entry_that_was_removed() -> None:
    store, decoded = MemoryStore(), DecodedEntries()
    views = Views(store, make_index=lambda _: FaissIndex(), embedder="", decoded=decoded)
    store.put(entry().record(None, ""))
    [record] = store.scan("default")
    views.current("default")
    decoded.entry(record)
    store.remove("default", [record.id])
    views.current("default")
    assert decoded.known("default", record.id, record.change) is None


def test_of_a_tenant_that_is_cleared_nothing_is_held() -> None:
    decoded, record = DecodedEntries(), entry().record(None, "")
    for tenant in ("acme", "umbrella"):
        decoded.entry(replace(record, tenant=tenant))
    decoded.forget("acme")
    assert decoded.known("acme", record.id, record.change) is None
    assert decoded.known("umbrella", record.id, record.change) is not None
