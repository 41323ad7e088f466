"""Frozen: what is there is served, and not a byte of the directory is written."""

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from semcache import Catalog, PlanCache, SemCache, Settings
from semcache.cache.result import Hit
from semcache.errors import ForeignDirectory, InvalidInput, StoreUnavailable
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.stores.proxies import FrozenStore
from semcache.testing import FakeClock, HashEmbedder, make_record, same_records
from tests.calling import calling

plan = partial(calling, "report")


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with PlanCache.open(tmp_path / "plans", embedder=HashEmbedder()) as cache:
        for name in ("sales", "taxes"):
            cache.store(f"{name} in 2024", plan(of=name, year=2024), params={"year": 2024})
    return tmp_path / "plans"


def contents(directory: Path) -> dict[str, tuple[str, int]]:
    """Return each file with its digest and the time of its last change."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted([directory, *directory.rglob("*")])
    }


def frozen(directory: Path, **more: Any) -> PlanCache:
    return PlanCache.open(directory, embedder=HashEmbedder(), frozen=True, **more)


def test_whatever_happens_nothing_in_the_directory_changes(filled: Path) -> None:
    before = contents(filled)
    with frozen(filled, max_entries=1, ttl_slides="always", max_wrong=0.1) as cache:
        found = cache.lookup("sales in 2019")
        assert isinstance(found, Hit)
        assert found.params == {"year": 2019}
        assert cache.lookup("could you show sales in 2019?") is not None
        cache.feedback(found, right=True)
        cache.feedback(found, right=False)
        stored = cache.store("rents in 2024", plan(year=2024), params={"year": 2024})
        assert (bool(stored), "frozen" in stored.reason) == (False, True)
        assert not cache.lookup("rents in 2024")
        assert cache.invalidate(id=found.entry) == cache.clear() == cache.remove_expired() == 0
        with cache.planning(cache.lookup("loans in 2024")) as again:
            assert not again
        for _ in range(1100):
            cache.lookup("taxes in 2018")
        cache.flush()
        assert cache.stats().hits["template"] >= 1100
    assert contents(filled) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_read_only_mount_is_served(filled: Path, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)):
        pytest.skip("nothing can be mounted here")
    try:
        shutil.copytree(filled, place / "plans")
        assert run("mount", "-o", "remount,ro", str(place)) == 0
        with pytest.raises(OSError, match="Read-only"):
            (place / "plans" / "x").touch()
        with frozen(place / "plans") as cache:
            assert cache.lookup("sales in 2019")
            assert not cache.store("rents in 2024", plan(year=2024))
        with PlanCache.open(place / "plans", embedder=HashEmbedder()) as cache:
            assert cache.lookup("sales in 2019")
            assert not cache.store("rents in 2024", plan(year=2024))
    finally:
        run("umount", "--lazy", str(place))


def run(*command: str) -> int:
    """Run a command of the system; return its exit code."""
    return subprocess.run(command, check=False, capture_output=True).returncode  # noqa: S603 - ours


def test_what_a_writer_adds_meanwhile_is_served_too(filled: Path) -> None:
    with frozen(filled) as reader:
        assert not reader.lookup("rents in 2019")
        with PlanCache.open(filled, embedder=HashEmbedder()) as writer:
            writer.store("rents in 2024", plan(of="rents", year=2024), params={"year": 2024})
            assert reader.lookup("rents in 2019")
            writer.invalidate(operation="report")
            assert not reader.lookup("rents in 2019")
        assert not reader.lookup("sales in 2019")


def test_a_directory_that_is_none_of_ours_or_empty_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store in"):
        frozen(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ForeignDirectory):
        frozen(tmp_path)


def test_what_a_killed_writer_left_in_the_log_is_served(filled: Path) -> None:
    code = (
        "import os, sys; from semcache.stores.disk.store import DiskStore; "
        "from semcache.testing import make_record; "
        "DiskStore.open(sys.argv[1]).put(make_record('late')); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(filled)], check=True)  # noqa: S603 - our own
    assert (filled / "semcache.db-wal").stat().st_size > 0
    with closing(DiskStore.open(filled, frozen=True)) as store:
        assert store.get("acme", "late") is not None


def test_a_frozen_store_is_not_repaired(filled: Path) -> None:
    with pytest.raises(InvalidInput, match="without `frozen`"):
        DiskStore.open(filled, frozen=True, repair=True)


def test_a_whole_semcache_runs_frozen(filled: Path) -> None:
    before = contents(filled)
    settings = Settings(directory=filled, frozen=True)
    with SemCache.open(
        catalog=Catalog([]), settings=settings, embedder=HashEmbedder(), clock=FakeClock()
    ) as semcache:
        assert not semcache.lookup("rents in 2024")
    assert contents(filled) == before


class TestFrozenStore:
    def test_records_are_served_and_never_changed(self) -> None:
        beneath = MemoryStore()
        beneath.put(make_record("a"))
        store = FrozenStore(beneath)
        assert same_records(store.get("acme", "a"), make_record("a"))
        assert [r.id for r in store.scan("acme")] == ["a"]
        assert [r.id for r in store.find("acme", "template:a")] == ["a"]
        assert list(store.labelled("acme", "tag:sales")) == ["a"]
        store.use("acme", {"a": 5}, now_s=1.0)
        assert (store.uses("acme")["a"].count, store.count("acme")) == (0, 1)
        for change in (
            lambda: store.put(make_record("b")),
            lambda: store.remove("acme", ["a"]),
            store.clear,
        ):
            with pytest.raises(StoreUnavailable, match="frozen"):
                change()
        assert (store.last_change(), list(store.changes(1) or ())) == (1, [])
        assert (store.room(), store.tenants()) == (beneath.room(), ["acme"])

    def test_notes_live_over_those_of_the_store(self) -> None:
        beneath = MemoryStore()
        beneath.put_note("acme", "n", "1")
        store = FrozenStore(beneath)
        store.update_note("acme", "n", lambda old: f"{old}2")
        assert (store.get_note("acme", "n"), beneath.get_note("acme", "n")) == ("12", "1")
        store.put_note("acme", "n", None)
        assert store.get_note("acme", "n") is None

    def test_leases_are_held_in_this_process(self) -> None:
        store = FrozenStore(MemoryStore())
        assert store.lease("acme", "plan", "one", ttl_s=10, now_s=0.0)
        assert not store.lease("acme", "plan", "two", ttl_s=10, now_s=1.0)
        store.release("acme", "plan", "one")
        assert store.lease("acme", "plan", "two", ttl_s=10, now_s=1.0)
        store.close()
