from contextlib import ExitStack
from pathlib import Path

import pytest

from semcache import Hit, PlanCache
from semcache.cache.feedback import corrections as room
from semcache.cache.feedback.corrections import Vetoes
from semcache.stores.memory import MemoryStore
from tests.cache.conftest import ScriptedEmbedder

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


def test_a_veto_of_another_process_stands_at_once(
    tmp_path: Path, scripted_embedder: type[ScriptedEmbedder]
) -> None:
    with ExitStack() as stack:
        mine, other = (
            stack.enter_context(PlanCache.open(tmp_path, embedder=scripted_embedder([1.0, 0.0])))
            for _ in range(2)
        )
        mine.store("total sales by state", {"by": "state"})
        found = mine.lookup("please show the total sales by state now")
        assert isinstance(found, Hit)
        other.feedback(found, right=False)
        missed = mine.lookup("please show the total sales by state now")
        assert (bool(missed), missed.trace.candidates[0].verdicts[-1].gate) == (False, "vetoed")


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
