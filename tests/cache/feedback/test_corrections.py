"""What callers say is wrong holds, whatever becomes of the store."""

import contextlib
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from semcache import Hit, PlanCache, Settings
from semcache.cache.feedback.correction import Correction
from semcache.errors import StoreCorrupt
from semcache.stores.disk.sidecar import FileJournal
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.testing import HashEmbedder
from semcache.wiring import open_plan_cache
from tests.calling import calling, hit

ASKED = "sales in 2019"


def opened(directory: Path, *, key: str = "") -> PlanCache:
    store = DiskStore.open(directory, busy_timeout_s=0.01)
    return open_plan_cache(
        Settings(directory=directory, encryption_key=key),
        store=unlocked(store, key, what="the store"),
        embedder=HashEmbedder(),
    )


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with opened(tmp_path / "plans") as cache:
        for name in ("sales", "taxes"):
            cache.store(
                f"{name} in 2024",
                calling("report", of=name, year=2024),
                params={"year": 2024},
                tags=[name],
            )
    return tmp_path / "plans"


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    with closing(sqlite3.connect(directory / "semcache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def hit_of(cache: PlanCache, prompt: str = ASKED) -> Hit:
    return hit(cache.lookup(prompt))


WAYS: dict[str, Callable[[PlanCache], str]] = {
    "feedback": lambda cache: cache.feedback(hit_of(cache), right=False).pending,
    "id": lambda cache: cache.invalidate(id=hit_of(cache).entry).pending,
    "tag": lambda cache: cache.invalidate(tag="sales").pending,
    "clear": lambda cache: cache.clear(tenant="default").pending,
    "clear all": lambda cache: cache.clear().pending,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_correction_holds_at_once_and_is_made_when_the_store_answers(
    filled: Path, way: str
) -> None:
    with opened(filled) as cache:
        with locked(filled):
            assert "kept beside the store" in WAYS[way](cache)
            assert not cache.lookup(ASKED)
            assert bool(cache.lookup("taxes in 2019")) == (not way.startswith("clear"))
        cache.flush()
        assert not cache.lookup(ASKED)
        with opened(filled) as other:
            assert not other.lookup(ASKED)
            assert bool(other.lookup("taxes in 2019")) == (not way.startswith("clear"))
        assert cache.store("sales in 2024", calling("report", year=2024), params={"year": 2024})
        assert cache.lookup(ASKED)


@pytest.mark.parametrize("way", WAYS)
def test_a_correction_is_found_by_the_next_process_if_this_one_ends(filled: Path, way: str) -> None:
    cache = opened(filled)
    with locked(filled):
        assert WAYS[way](cache)
        with opened(filled) as after:  # the first one was killed: it never closes
            assert not after.lookup(ASKED)
    with opened(filled) as after:
        after.flush()
        assert not after.lookup(ASKED)
        assert not [entry for entry in after.entries() if entry.prompt == "sales in 2024"]
    assert [path.name for path in (filled / "corrections").iterdir()] == ["reserve"]
    cache.close()


def test_a_correction_that_waits_holds_in_a_frozen_cache_too(filled: Path) -> None:
    cache = opened(filled)
    with locked(filled):
        assert cache.invalidate(tag="sales").pending
        with PlanCache.open(filled, embedder=HashEmbedder(), frozen=True) as frozen:
            assert not frozen.lookup(ASKED)
            assert frozen.lookup("taxes in 2019")
    assert len([*(filled / "corrections").iterdir()]) == 2  # nothing of it was written
    cache.close()


def test_what_was_taken_back_is_not_exported_while_it_waits(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as cache, locked(filled):
        assert cache.invalidate(tag="sales").pending
        assert [entry.prompt for entry in cache.entries()] == ["taxes in 2024"]
        assert cache.export(tmp_path / "plans.jsonl") == 1


def test_what_is_imported_is_not_taken_back_by_what_waited(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as cache:
        assert cache.export(tmp_path / "plans.jsonl") == 2
        with locked(filled):
            assert cache.clear().pending
        assert cache.import_(tmp_path / "plans.jsonl") == 2
        cache.flush()
        assert cache.lookup(ASKED)


def test_a_wrong_hit_by_meaning_is_vetoed_while_the_store_is_locked(filled: Path) -> None:
    with opened(filled) as cache:
        found = hit_of(cache, "please could you give me the sales in 2019")
        if found.tier != "semantic":
            pytest.skip("its words are courtesy alone")
        with locked(filled):
            judged = cache.feedback(found, right=False)
            assert (judged.outcome, bool(judged.pending)) == ("vetoed", True)
            assert not cache.lookup(found.trace.prompt)
            assert cache.lookup(ASKED)


def test_a_correction_that_was_made_says_so(filled: Path) -> None:
    with opened(filled) as cache:
        removed = cache.invalidate(tag="taxes")
        assert (removed, removed.pending) == (1, "")
        judged = cache.feedback(hit_of(cache), right=False)
        assert (judged.outcome, judged.pending) == ("removed", "")
        assert (cache.clear(), cache.clear().pending) == (0, "")


def test_a_frozen_cache_says_that_nothing_is_removed_and_goes_on(filled: Path) -> None:
    with PlanCache.open(filled, embedder=HashEmbedder(), frozen=True) as cache:
        removed = cache.invalidate(tag="sales")
        assert (removed, "frozen" in removed.pending) == (0, True)
        assert cache.lookup(ASKED)


def test_a_correction_is_kept_on_a_full_disk_by_what_was_reserved(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603 - our own
        pytest.skip("only root may mount a small disk")
    try:
        journal = FileJournal(place / "corrections")
        journal.reserve()
        with (
            contextlib.suppress(OSError),
            (place / "filler").open("wb", buffering=0) as file,
        ):
            while True:
                file.write(b"x" * 4096)
        journal.keep("one", Correction("clear", None).to_text())
        assert [*journal.texts()] == ["one"]
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)  # noqa: S603, S607 - our own


def test_what_waits_for_an_encrypted_store_is_encrypted(tmp_path: Path) -> None:
    key = "A" * 43 + "="
    with opened(tmp_path, key=key) as cache:
        cache.store(
            "sales in 2024", calling("r", year=2024), params={"year": 2024}, tags=["Springfield"]
        )
        with locked(tmp_path):
            assert cache.invalidate(tag="Springfield").pending
            (kept,) = [p for p in (tmp_path / "corrections").iterdir() if p.name != "reserve"]
            assert b"Springfield" not in kept.read_bytes()
        cache.flush()
        assert not cache.entries()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind":"remove"}', Correction("clear", None).to_text()[:-2]]
)
def test_what_is_no_correction_is_told(text: str) -> None:
    with pytest.raises(StoreCorrupt, match="correction"):
        Correction.of(text)


def test_a_correction_comes_back_as_it_was_written() -> None:
    for correction in (
        Correction("remove", "acme", ("a", "b"), ("tag:x",)),
        Correction("veto", "acme", ("a",), template="0f" * 16, why="feedback"),
        Correction("clear", None, why="cleared"),
    ):
        assert Correction.of(correction.to_text()) == correction
