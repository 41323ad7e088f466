import base64
import logging
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import PlanCache, SemCache
from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.errors import (
    InvalidSettings,
    MissingExtra,
    PlanningError,
    StoreCorrupt,
    StoreError,
    WrongKey,
)
from semcache.ports import Bounds, PlanStore, ResponseStore
from semcache.responses.cache import Responses
from semcache.settings import Settings
from semcache.sources.functions import catalog_from, operation
from semcache.stores.cipher import Cipher
from semcache.stores.disk.responses import DiskResponses
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import EncryptedStore, unlocked
from semcache.stores.memory import MemoryStore
from semcache.testing import (
    HashEmbedder,
    PlanStoreContract,
    ResponseStoreContract,
    ScriptedModel,
    SharedStoreContract,
    make_record,
)

KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
PLAIN = ("springfield", "ord456", "acme-inc", "vip-tag", "count-visits", "evidence", "pinned-note")


class BoundedAsEncrypted(PlanStoreContract):
    """What bounds in bytes and the order of tenants come to where the store sees no plain ones."""

    def test_bytes_are_bounded_as_entries_are(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a"))
            one = store.room().bytes
            assert one > make_record("a").size
            store.put(make_record("b"))
            done = store.put(make_record("c"), bounds=Bounds(tenant_bytes=2 * one))
            assert done.evicted == ("a",)
            assert store.room("acme").bytes == 2 * one

    def test_over_the_bound_of_all_the_tenant_that_has_most_makes_room(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("x", "y", "z"):
                store.put(make_record(name, tenant="big"))
            done = store.put(make_record("a", tenant="small"), bounds=Bounds(entries=3))
            assert (done.evicted, dict(done.elsewhere)) == ((), {"big": ("x",)})

    def test_what_took_long_to_make_stays_and_what_takes_much_room_goes(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("cheap", cost_s=0.1))
            store.put(make_record("dear", cost_s=8.0))
            store.put(make_record("wide", cost_s=8.0, body=f'"{"x" * 90_000}"'))
            done = store.put(make_record("new"), bounds=Bounds(2))
            assert set(done.evicted) == {"cheap", "wide"}


class TestEncryptedMemoryStore(BoundedAsEncrypted):
    def make(self, tmp_path: Path) -> PlanStore:
        return EncryptedStore(MemoryStore(), Cipher(KEY))


class TestEncryptedDiskStore(BoundedAsEncrypted, SharedStoreContract):
    def make(self, tmp_path: Path) -> PlanStore:
        return unlocked(DiskStore.open(tmp_path / "store"), KEY, what="the store")

    def test_uses_and_leases_are_shared(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as left, closing(self.make(tmp_path)) as right:
            left.put(make_record("a"))
            left.use("acme", {"a": 2}, now_s=5.0)
            right.use("acme", {"a": 1}, now_s=6.0)
            assert left.uses("acme")["a"].count == right.uses("acme")["a"].count == 3
            assert left.lease("acme", "plan", "left", ttl_s=10, now_s=0.0)
            assert not right.lease("acme", "plan", "right", ttl_s=10, now_s=1.0)
            left.release("acme", "plan", "left")
            assert right.lease("acme", "plan", "right", ttl_s=10, now_s=1.0)
            assert left.room() == right.room("acme")


class TestEncryptedResponses(ResponseStoreContract):
    def make(self, tmp_path: Path) -> ResponseStore:
        return DiskResponses(tmp_path / "responses", cipher=Cipher(KEY))


def plan(town: str, order: str) -> JsonObject:
    return {"operation": "count-visits", "input": {"town": town, "order": order}}


def opened(directory: Path, key: str = KEY, **more: Any) -> PlanCache:
    return PlanCache.open(directory, embedder=HashEmbedder(), encryption_key=key, **more)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory with an encrypted plan in it."""
    with opened(tmp_path / "cache") as cache:
        params = {"town": "Springfield", "order": "ORD456"}
        cache.store(
            "visits to Springfield for ORD456", plan("Springfield", "ORD456"), params=params,
            tenant="acme-inc", tags=["vip-tag"],
        )  # fmt: skip
    with closing(unlocked(DiskStore.open(tmp_path / "cache"), KEY, what="the store")) as store:
        store.put_note("acme-inc", "pinned-note", '"pinned-note"')
    return tmp_path / "cache"


def readable(directory: Path, *words: str) -> set[str]:
    """Return those of `words` that somebody can read in the files."""
    files = [path.read_bytes().lower() for path in directory.rglob("*") if path.is_file()]
    return {word for word in words for content in files if word.encode() in content}


def test_nothing_of_a_cache_can_be_read_in_its_files(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.cache.view.views.WORTHWHILE", 1)
    with opened(kept, max_wrong=0.05) as cache:
        found = cache.lookup("visits to Springfield for ORD789", tenant="acme-inc")
        assert found.params == {"town": "Springfield", "order": "ORD789"}  # type: ignore[union-attr]  # a hit
        cache.feedback(found, right=True)
        assert readable(kept, *PLAIN) == set()
        with closing(unlocked(DiskStore.open(kept), KEY, what="the store")) as store:
            vector = store.scan("acme-inc")[0].vector
        assert vector is not None
        raw = {bytes(vector.tobytes()), base64.b64encode(vector.tobytes())}
        files = [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
        assert not [one for one in raw for content in files if one in content]
    assert readable(kept, *PLAIN) == set()


def test_without_a_key_the_same_words_can_be_read(tmp_path: Path) -> None:
    with opened(tmp_path, key="") as cache:
        cache.store("visits to Springfield", plan("Springfield", "-"), tenant="acme-inc")
    assert readable(tmp_path, *PLAIN) >= {"springfield", "acme-inc", "count-visits"}


def test_what_is_encrypted_is_found_by_every_tier_and_way(kept: Path) -> None:
    with opened(kept) as cache:
        assert cache.tenants() == ("acme-inc",)
        same = cache.lookup("visits to Springfield for ORD1", tenant="acme-inc")
        near = cache.lookup("please show me the visits to Springfield for ORD1", tenant="acme-inc")
        assert [found.tier for found in (same, near)] == ["template", "semantic"]  # type: ignore[union-attr]  # hits
        assert cache.entries(tenant="acme-inc")[0].tags == ("vip-tag",)
        assert cache.invalidate(tag="vip-tag", tenant="acme-inc") == 1
        assert not cache.lookup("visits to Springfield for ORD1", tenant="acme-inc")


def rows(directory: Path) -> list[Any]:
    with closing(sqlite3.connect(directory / "semcache.db")) as database:
        return list(database.iterdump())


@pytest.mark.parametrize(
    ("key", "says"), [(OTHER, "encrypted with another key"), ("", "is encrypted; give its key")]
)
def test_a_wrong_key_is_told_and_changes_nothing(kept: Path, key: str, says: str) -> None:
    before = rows(kept)
    with pytest.raises(WrongKey, match=says) as refused:
        opened(kept, key=key)
    assert not key or key not in str(refused.value)
    assert rows(kept) == before
    with opened(kept) as cache:
        assert cache.lookup("visits to Springfield for ORD1", tenant="acme-inc")


def test_a_key_for_plans_that_are_not_encrypted_is_told(tmp_path: Path) -> None:
    with opened(tmp_path, key="") as cache:
        cache.store("visits to Springfield", plan("Springfield", "-"))
    with pytest.raises(WrongKey, match="not encrypted; leave the key out"):
        opened(tmp_path)
    with opened(tmp_path, key="") as cache:
        assert cache.lookup("visits to Springfield")


def test_clearing_all_keeps_the_store_encrypted(kept: Path) -> None:
    with opened(kept) as cache:
        cache.clear()
    with pytest.raises(WrongKey):
        opened(kept, key=OTHER)


@pytest.mark.parametrize("key", ["short", "!" * 44, base64.b64encode(b"x" * 31).decode(), "é" * 44])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="expected 32") as refused:
        opened(tmp_path / "new", key=key)
    assert key not in str(refused.value)


def test_both_alphabets_of_base64_spell_the_same_key() -> None:
    raw = bytes(range(224, 256))
    spelled = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
    assert len({Cipher(key).check for key in spelled}) == 1


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(MissingExtra, match=r"semcache-plans\[encryption\]"):
        Cipher(KEY)


def test_a_record_in_another_records_place_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    inner = MemoryStore()
    store = EncryptedStore(inner, Cipher(KEY))
    for name in ("a", "b"):
        store.put(make_record(name))
    (tenant,) = inner.tenants()
    first, second = inner.scan(tenant)
    inner.put(replace(second, body=first.body))
    with pytest.raises(StoreCorrupt, match="record 'b' of tenant 'acme' is not what was written"):
        store.get("acme", "b")
    caplog.set_level(logging.WARNING)
    assert [record.id for record in store.scan("acme")] == ["a"]
    assert "passed over" in caplog.text


def test_a_note_that_was_changed_is_corrupt_and_begins_anew() -> None:
    inner, cipher = MemoryStore(), Cipher(KEY)
    store = EncryptedStore(inner, cipher)
    store.put_note("acme", "n", "1")
    inner.put_note(cipher.name("tenant", "acme"), cipher.digest("note", "n"), "AAAA")
    with pytest.raises(StoreCorrupt, match="note 'n' of tenant 'acme'"):
        store.get_note("acme", "n")
    store.update_note("acme", "n", lambda note: "2" if note is None else "wrong")
    assert store.get_note("acme", "n") == "2"


def test_what_models_answered_is_encrypted_and_counted_as_it_was(tmp_path: Path) -> None:
    with closing(Responses.open(tmp_path, encryption_key=KEY)) as responses:
        responses.set("springfield", {"town": "Springfield"}, group="vip-tag")
        assert responses.get("springfield") == {"town": "Springfield"}
        assert responses.keys(prefix="spring") == ["springfield"]
        assert responses.metrics().bytes == len('{"town":"Springfield"}')
        assert readable(tmp_path, "springfield", "vip-tag") == set()
        assert responses.bust_group("vip-tag") == 1


def test_responses_of_another_key_are_none(tmp_path: Path) -> None:
    with closing(Responses.open(tmp_path, encryption_key=KEY)) as responses:
        responses.set("springfield", 1)
    for key in (OTHER, ""):
        with closing(Responses.open(tmp_path, encryption_key=key)) as responses:
            assert not responses.has("springfield")
    with closing(Responses.open(tmp_path, encryption_key=KEY)) as responses:
        assert responses.get("springfield") == 1


@operation(effect="read")
def visits(town: str) -> str:
    """Count the visits to a town."""
    return town


@pytest.fixture
def catalog() -> Catalog:
    return catalog_from(visits)


def test_a_whole_semcache_is_encrypted_by_its_settings(tmp_path: Path, catalog: Catalog) -> None:
    told = Settings.load(environ={"SEMCACHE_ENCRYPTION_KEY": KEY}, directory=tmp_path)
    assert KEY not in repr(told)
    model = ScriptedModel(["who knows Springfield"] * 6)
    with SemCache.open(
        settings=told, catalog=catalog, model=model, embedder=HashEmbedder()
    ) as semcache:
        semcache.cache.store("visits to Springfield", plan("Springfield", "-"))
        with pytest.raises(PlanningError):
            semcache.run("what would Springfield think of it")
        assert readable(tmp_path, "springfield") == set()
    with pytest.raises(WrongKey):
        PlanCache.open(tmp_path)


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(max_size=20))
def test_every_text_and_name_comes_back(text: str, place: str) -> None:
    place = place.encode("utf-8", "replace").decode()
    cipher = Cipher(KEY)
    sealed = cipher.encrypt(text, place)
    assert sealed != cipher.encrypt(text, place)
    assert cipher.decrypt(sealed, place) == text
    assert cipher.named("id", cipher.name("id", text)) == text
    assert cipher.name("id", text) == cipher.name("id", text) != cipher.name("tenant", text)
    for wrong, where in ((cipher, f"{place}."), (Cipher(OTHER), place)):
        with pytest.raises(ValueError, match="cannot be decrypted"):
            wrong.decrypt(sealed, where)


def test_a_locked_database_is_told_as_without_a_key(kept: Path) -> None:
    with closing(sqlite3.connect(kept / "semcache.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError):
            EncryptedStore(DiskStore(kept, busy_timeout_s=0.01), Cipher(KEY)).clear("acme-inc")
