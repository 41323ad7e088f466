import pytest

from semcache.cache import vetoes as room
from semcache.cache.vetoes import Vetoes
from semcache.stores.memory import MemoryStore

TEMPLATE = "a" * 64


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_veto_stands_for_its_pair_in_its_tenant_alone(store: MemoryStore) -> None:
    vetoes = Vetoes(store)
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1")
    assert not vetoes.stands("acme", TEMPLATE, "e2")
    assert not vetoes.stands("acme", "b" * 64, "e1")
    assert not vetoes.stands("umbrella", TEMPLATE, "e1")


def test_a_veto_of_another_process_stands_at_once(store: MemoryStore) -> None:
    mine, other = Vetoes(store), Vetoes(store)
    assert not mine.stands("acme", TEMPLATE, "e1")
    other.add("acme", TEMPLATE, "e1")
    assert mine.stands("acme", TEMPLATE, "e1")


def test_the_oldest_vetoes_make_room(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT", 2)
    vetoes = Vetoes(store)
    for entry in ("e1", "e2", "e1", "e3"):
        vetoes.add("acme", TEMPLATE, entry)
    standing = [e for e in ("e1", "e2", "e3") if vetoes.stands("acme", TEMPLATE, e)]
    assert standing == ["e1", "e3"]


@pytest.mark.parametrize("note", ["", "not json", "{}", "[1, null]", "7"])
def test_a_note_that_cannot_be_read_holds_no_veto_and_takes_new_ones(
    store: MemoryStore, note: str
) -> None:
    store.put_note("acme", room.NOTE, note)
    vetoes = Vetoes(store)
    assert not vetoes.stands("acme", TEMPLATE, "e1")
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1")


@pytest.mark.parametrize("tenant", ["acme", None])
def test_forgetting_reads_the_notes_again(store: MemoryStore, tenant: str | None) -> None:
    vetoes = Vetoes(store)
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1")
    store.clear(tenant)
    vetoes.forget(tenant)
    assert not vetoes.stands("acme", TEMPLATE, "e1")
