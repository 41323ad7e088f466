import pytest

from semcache.cache.feedback import corrections as room
from semcache.cache.feedback.corrections import Vetoes
from semcache.stores.memory import MemoryStore

TEMPLATE = "a" * 64


class CountingStore(MemoryStore):
    """A store that counts how often a note is read."""

    notes_read = 0

    def get_note(self, tenant: str, name: str) -> str | None:
        """Count, and return the note."""
        self.notes_read += 1
        return super().get_note(tenant, name)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_veto_stands_for_its_pair_in_its_tenant_alone(store: MemoryStore) -> None:
    vetoes = Vetoes(store)
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1", change=0)
    assert not vetoes.stands("acme", TEMPLATE, "e2", change=0)
    assert not vetoes.stands("acme", "b" * 64, "e1", change=0)
    assert not vetoes.stands("umbrella", TEMPLATE, "e1", change=0)


def test_a_hit_reads_no_veto_while_the_store_stands_still() -> None:
    store = CountingStore()
    vetoes = Vetoes(store)
    for _ in range(3):
        vetoes.stands("acme", TEMPLATE, "e1", change=7)
    assert store.notes_read == 1


def test_the_oldest_vetoes_make_room(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "VETOES_KEPT", 2)
    vetoes = Vetoes(store)
    for entry in ("e1", "e2", "e1", "e3"):
        vetoes.add("acme", TEMPLATE, entry)
    standing = [e for e in ("e1", "e2", "e3") if vetoes.stands("acme", TEMPLATE, e, change=0)]
    assert standing == ["e1", "e3"]


@pytest.mark.parametrize("note", ["", "not json", "{}", "[1, null]", "7"])
def test_a_note_that_cannot_be_read_holds_no_veto_and_takes_new_ones(
    store: MemoryStore, note: str
) -> None:
    store.put_note("acme", room.VETOES_NOTE, note)
    vetoes = Vetoes(store)
    assert not vetoes.stands("acme", TEMPLATE, "e1", change=0)
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1", change=0)


@pytest.mark.parametrize("tenant", ["acme", None])
def test_forgetting_reads_the_notes_again(store: MemoryStore, tenant: str | None) -> None:
    vetoes = Vetoes(store)
    vetoes.add("acme", TEMPLATE, "e1")
    assert vetoes.stands("acme", TEMPLATE, "e1", change=0)
    store.clear(tenant)
    vetoes.forget(tenant)
    assert not vetoes.stands("acme", TEMPLATE, "e1", change=0)
