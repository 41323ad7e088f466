from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from semcache import Hit, PlanCache, Settings
from semcache.errors import EmbeddingError, InvalidInput
from semcache.ports import Vectors
from semcache.stores.disk.store import DiskStore
from semcache.testing import HashEmbedder, RecordingObserver
from semcache.wiring import open_plan_cache
from tests.calling import calling, missed
from tests.waiting import until

ASKED, PARAPHRASE = "total sales of all shops by state", "please total sales of all shops by state"
OLD, NEW = 64, 128


def opened(directory: Path, dim: int) -> PlanCache:
    return open_plan_cache(Settings(directory=directory), embedder=HashEmbedder(dim))


def found_by_meaning(cache: PlanCache, tenant: str = "acme") -> bool:
    found = cache.lookup("the total sales of all shops by state", tenant=tenant, threshold=0.95)
    nearest = found.nearest if not isinstance(found, Hit) else None
    return isinstance(found, Hit) or nearest is not None


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory with entries of two tenants, embedded by the old embedder."""
    with opened(tmp_path / "cache", OLD) as cache:
        for tenant in ("acme", "umbrella"):
            for n in range(3):
                cache.store(f"{ASKED} number{n}", calling(f"o{n}"), params={}, tenant=tenant)
    return tmp_path / "cache"


def embedders(directory: Path) -> set[str]:
    store = DiskStore.open(directory)
    try:
        return {r.embedder for tenant in store.tenants() for r in store.scan(tenant)}
    finally:
        store.close()


def test_entries_of_another_embedder_are_embedded_anew_and_found_by_meaning(kept: Path) -> None:
    with opened(kept, NEW) as cache:
        assert not found_by_meaning(cache)
        assert cache.embed_anew() == 6
        assert found_by_meaning(cache)
        assert cache.embed_anew() == 0
    assert embedders(kept) == {f"hash:{NEW}"}


def test_only_the_tenants_that_are_named_are_embedded_anew(kept: Path) -> None:
    with opened(kept, NEW) as cache:
        assert cache.embed_anew(tenants=["acme"]) == 3
        assert not found_by_meaning(cache, "umbrella")
        with pytest.raises(InvalidInput):
            cache.embed_anew(tenants=[""])


def test_who_still_has_the_embedder_before_goes_on_by_exact_keys(kept: Path) -> None:
    with opened(kept, OLD) as before, opened(kept, NEW) as cache:
        assert found_by_meaning(before)
        cache.embed_anew()
        assert isinstance(before.lookup(f"{ASKED} number1", tenant="acme"), Hit)
        assert not found_by_meaning(before)


class Interrupted(HashEmbedder):
    """Embeds a batch and fails at the next one."""

    calls = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.calls > 1:
            raise EmbeddingError("the process was killed")
        return super().embed(texts)


def interrupt(directory: Path) -> None:
    settings = Settings(directory=directory)
    with (
        open_plan_cache(settings, embedder=Interrupted(NEW)) as cache,
        pytest.raises(EmbeddingError, match="killed"),
    ):
        cache.embed_anew()


def test_who_opens_the_cache_with_that_embedder_goes_on_where_another_stopped(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.cache.vector_renewal.BATCH", 2)
    interrupt(kept)
    assert embedders(kept) == {f"hash:{OLD}", f"hash:{NEW}"}
    with opened(kept, OLD):
        pass  # turns nothing back: it is not the embedder that entries are to have
    assert embedders(kept) == {f"hash:{OLD}", f"hash:{NEW}"}
    with opened(kept, NEW):
        until(lambda: embedders(kept) == {f"hash:{NEW}"})


def test_trouble_while_going_on_is_told_and_raised_to_nobody(
    kept: Path, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.cache.vector_renewal.BATCH", 2)
    interrupt(kept)
    settings = Settings(directory=kept)
    with open_plan_cache(settings, embedder=Interrupted(NEW), observer=observer):
        until(lambda: any("killed" in str(event) for event in observer.events))


class Meanwhile(HashEmbedder):
    """Lets something happen while it embeds."""

    happens: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return super().embed(texts)


def test_a_plan_that_is_removed_meanwhile_stays_gone(kept: Path) -> None:
    embedder = Meanwhile(NEW)
    settings = Settings(directory=kept)
    with opened(kept, OLD) as other, open_plan_cache(settings, embedder=embedder) as cache:
        gone = other.entries(tenant="acme")[0].id
        embedder.happens = lambda: other.invalidate(tenant="acme", id=gone)
        assert cache.embed_anew(tenants=["acme"]) == 2
        assert gone not in {entry.id for entry in cache.entries(tenant="acme")}


def test_a_frozen_cache_embeds_nothing_anew(kept: Path) -> None:
    with open_plan_cache(
        Settings(directory=kept, frozen=True), embedder=HashEmbedder(NEW)
    ) as cache:
        assert cache.embed_anew() == 0
        missed(cache.lookup("the total sales of all shops", tenant="acme"))
    assert embedders(kept) == {f"hash:{OLD}"}
