"""What a warm-up loads, no lookup loads: told by counting reads and modules, not by a clock."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from semcache import AsyncPlanCache, PlanCache, Settings
from semcache.errors import InvalidInput, StoreUnavailable, WeightsUnavailable
from semcache.events import TierFailed
from semcache.ports import Vectors
from semcache.stores.disk.store import DiskStore
from semcache.testing import HashEmbedder, RecordingObserver
from semcache.wiring import open_plan_cache
from tests.calling import calling

plan = partial(calling, "report")
SALES = "sales of chairs in 2024"


class LoadingEmbedder(HashEmbedder):
    """Says whether it was asked for a vector, as one with weights loads them then."""

    def __init__(self) -> None:
        super().__init__()
        self.query = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.query.set()
        return super().embed(texts)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with PlanCache.open(tmp_path / "cache", embedder=HashEmbedder()) as cache:
        for tenant in ("acme", "zeta"):
            assert cache.store(SALES, plan(year=2024), params={"year": 2024}, tenant=tenant)
    return tmp_path / "cache"


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each read of a whole tenant or of a note."""
    read: list[str] = []
    for name in ("pages", "get_note"):
        method = getattr(DiskStore, name)

        def counted(
            store: DiskStore, *given: object, method: object = method, name: str = name
        ) -> object:
            read.append(f"{name} {given[0]}")
            assert callable(method)
            return method(store, *given)

        monkeypatch.setattr(DiskStore, name, counted)
    return read


def test_after_a_warm_up_no_tenant_is_read_by_its_first_lookup(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = count_reads(monkeypatch)
    with PlanCache.open(filled, embedder=HashEmbedder()) as cache:
        done = cache.warm_up()
        assert (done.tenants, done.entries, done.failures) == (2, 2, ())
        assert {line for line in read if line.startswith("pages")} == {"pages acme", "pages zeta"}
        read.clear()
        for tenant in ("acme", "zeta"):
            assert cache.lookup("sales of chairs in 2021", tenant=tenant)
            assert not cache.lookup("sales of green chairs in 2021", tenant=tenant)
        assert read == []


def test_only_the_tenants_that_are_named_are_loaded(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = count_reads(monkeypatch)
    with PlanCache.open(filled, embedder=HashEmbedder()) as cache:
        assert cache.warm_up(tenants=["zeta"]).tenants == 1
    assert "pages acme" not in read
    assert "pages zeta" in read


def test_an_empty_cache_loads_the_embedder(tmp_path: Path) -> None:
    embedder = LoadingEmbedder()
    with PlanCache.open(tmp_path / "cache", embedder=embedder) as cache:
        assert not embedder.query.is_set()
        assert cache.warm_up().tenants == 0
        assert embedder.query.is_set()


def test_a_warm_up_is_neither_counted_nor_told(filled: Path, observer: RecordingObserver) -> None:
    with PlanCache.open(filled, embedder=HashEmbedder(), observer=observer) as cache:
        cache.warm_up()
        assert cache.stats(tenant="acme").lookups == 0
    assert observer.events == []


def test_a_cache_in_memory_is_warmed_up_too() -> None:
    with PlanCache.open(embedder=HashEmbedder(), warm_up="before") as cache:
        assert cache.warm_up().entries == 0


@pytest.mark.parametrize("when", ["before", "background", "never"])
def test_a_setting_says_when_a_service_is_warmed_up(
    filled: Path, when: Literal["before", "background", "never"]
) -> None:
    embedder = LoadingEmbedder()
    with open_plan_cache(Settings(directory=filled, warm_up=when), embedder=embedder):
        if when == "background":
            assert embedder.query.wait(30)
        else:
            assert embedder.query.is_set() == (when == "before")


def test_lookups_are_answered_while_another_thread_warms_up(filled: Path) -> None:
    held = threading.Event()

    class PinnedWords(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            assert held.wait(30)
            return super().embed(texts)

    with PlanCache.open(filled, embedder=PinnedWords(), warm_up="background") as cache:
        found = cache.lookup("sales of chairs in 2021", tenant="acme")
        held.set()
    assert found


def test_missing_weights_are_told_and_plans_are_loaded_all_the_same(
    filled: Path, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise WeightsUnavailable("no weights are installed")

    read = count_reads(monkeypatch)
    with PlanCache.open(filled, embedder=Missing(), observer=observer) as cache:
        done = cache.warm_up()
        assert done.failures == ("embedder: no weights are installed",)
        assert done.tenants == 2
        read.clear()
        assert cache.lookup("sales of chairs in 2021", tenant="acme")
    assert [event.part for event in observer.of(TierFailed)] == ["embedder"]
    assert "pages acme" not in read


def test_a_store_that_fails_is_told(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise StoreUnavailable("the disk is gone")

    with PlanCache.open(filled, embedder=HashEmbedder()) as cache:
        monkeypatch.setattr(DiskStore, "tenants", failing)
        assert cache.warm_up().failures == ("store: the disk is gone",)


def test_a_tenant_that_nobody_can_have_is_refused(filled: Path) -> None:
    with (
        PlanCache.open(filled, embedder=HashEmbedder()) as cache,
        pytest.raises(InvalidInput, match="tenant is ''"),
    ):
        cache.warm_up(tenants=[""])


async def _warmed(cache: PlanCache) -> int:
    async with AsyncPlanCache(cache) as door:
        await door.begin_warm_up(tenants=["zeta"])
        return (await door.warm_up()).entries


def test_async_callers_warm_up_without_blocking(filled: Path) -> None:
    import asyncio

    assert asyncio.run(_warmed(PlanCache.open(filled, embedder=HashEmbedder()))) == 2


def test_the_first_lookup_after_a_warm_up_imports_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from semcache import PlanCache\n"
        "with PlanCache.open(sys.argv[1]) as cache:\n"
        "    assert cache.store('sales of chairs in 2024', {'call': 'report', 'year': 2024})\n"
        "with PlanCache.open(sys.argv[1]) as cache:\n"
        "    assert not cache.warm_up().failures\n"
        "    before = set(sys.modules)\n"
        "    assert not cache.lookup('what was sold of chairs, and how many of them?')\n"
        "    print(sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    done = subprocess.run(  # noqa: S603 - our own words, no shell
        command, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
