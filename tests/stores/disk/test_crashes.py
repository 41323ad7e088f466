"""Crashes: writers killed at random moments, damaged files, disks that are full or read-only."""

import contextlib
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from semcache.cache.context import CacheContext
from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Hit, Miss
from semcache.cache.view import views
from semcache.canonical import JsonObject
from semcache.errors import SemCacheError
from semcache.events import TierFailed
from semcache.settings import Settings
from semcache.stores.disk.sidecar import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import HashEmbedder, RecordingObserver
from semcache.wiring import SystemClock
from tests.calling import calling
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def plan(number: int) -> JsonObject:
    return calling("report", number=number)


def prompt(number: int) -> str:
    """Return a prompt of its own template; numbers would be values of one template."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    word = "".join(letters[number // 26**place % 26] for place in range(4))
    return f"report about {word}x"


def context_of(
    directory: Path, observer: RecordingObserver | None = None, *, busy_timeout_s: float = 30.0
) -> CacheContext:
    return CacheContext.of(
        Settings(directory=directory),
        store=DiskStore.open(directory, busy_timeout_s=busy_timeout_s),
        embedder=HashEmbedder(),
        clock=SystemClock(),
        make_index=lambda _: FaissIndex(),
        observer=observer,
        snapshots=SnapshotDirectory(directory / VIEWS),
    )


def opened(
    directory: Path, observer: RecordingObserver | None = None, *, busy_timeout_s: float = 30.0
) -> PlanCache:
    return PlanCache(context_of(directory, observer, busy_timeout_s=busy_timeout_s))


def served(cache: PlanCache, number: int) -> int | None:
    """Return the number in the plan that is served for a prompt; None for a miss."""
    found = cache.lookup(prompt(number))
    call: Any = found.plan.to_dict()["call"] if isinstance(found, Hit) else None
    return None if call is None else int(call["input"]["number"])


# Killed ──────────────────────────────────────────────────────────────────────────────────────────


def write(directory: Path, first: int, told: int) -> None:
    """Store plans until somebody kills us; tell of each when it is stored."""
    cache = opened(directory)
    number = first
    while True:
        stored = cache.store(prompt(number), plan(number))
        assert stored
        os.write(told, f"{number}\n".encode())
        if number % 3 == 0:
            cache.lookup(prompt(number))
            cache.flush()
        if number % 7 == 0:
            cache.invalidate(id=cache.store(prompt(900_000 + number), plan(number)).id)
        number += 1


def killed(directory: Path, first: int, choose: random.Random) -> list[int]:
    """Return what a writer told that it had stored before it was killed at a random moment."""
    heard, told = os.pipe()
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=write, args=(directory, first, told))
    writer.start()
    os.close(told)
    with os.fdopen(heard) as lines:
        numbers = [int(lines.readline()) for _ in range(choose.randrange(1, 7))]
        for _ in range(choose.randrange(30_000)):  # some of the next write
            pass
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        rest = [int(line) for line in lines if line.endswith("\n")]
    writer.join(60)
    writer.close()
    return numbers + rest


def audit(directory: Path, acknowledged: set[int]) -> None:
    """Fail unless all that was acknowledged is there, and everything agrees with it."""
    context = context_of(directory)
    with PlanCache(context) as cache:
        store: Any = context.store
        records = store.scan("default")
        view = context.views.current("default")
        assert {served(cache, number) for number in acknowledged} == acknowledged
        assert len(records) - len(acknowledged) in range(-1, 400)
        assert store.count("default") == store.room().entries == len(records)
        assert store.room().bytes == sum(record.size for record in records)
        assert len(view.index) == len(view.entries) == len(records)
        for record in records:
            assert record.id in [known.id for known in store.find("default", record.keys[0])]
            assert view.index.search(record.vector, 1)[0].similarity > 0.999
        numbers = [change.number for change in store.changes(0) or ()]
        assert numbers == [*range(1, store.last_change() + 1)]


def kill_again_and_again(directory: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "WORTHWHILE", 1)  # so that every view is worth a snapshot
    choose, acknowledged, first = random.Random(times), set[int](), 0
    opened(directory).close()  # loads what a child would load again and again
    for round_ in range(times):
        acknowledged.update(killed(directory, first, choose))
        first = max(acknowledged) + 2
        if round_ % 10 == 9:
            audit(directory, acknowledged)
    audit(directory, acknowledged)


def test_whatever_a_killed_writer_had_acknowledged_is_there_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_again_and_again(tmp_path / "plans", 20, monkeypatch)


@pytest.mark.slow
def test_hundreds_of_kills_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_again_and_again(tmp_path / "plans", 300, monkeypatch)


# Damaged ─────────────────────────────────────────────────────────────────────────────────────────

COUNT = 12


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound") / "plans"
    with pytest.MonkeyPatch.context() as patch, opened(directory) as cache:
        patch.setattr(views, "WORTHWHILE", 1)
        for number in range(COUNT):
            cache.store(prompt(number), plan(number))
        cache.lookup(prompt(0))
        cache.flush()
    assert list((directory / VIEWS).glob("*.view"))
    return directory


def flipped(path: Path, choose: random.Random, times: int) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(times):
        content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    path.write_bytes(bytes(content))


def cut(path: Path, choose: random.Random, _: int) -> None:
    with path.open("r+b") as file:
        file.truncate(choose.randrange(path.stat().st_size))


@pytest.mark.parametrize("damage", [flipped, cut])
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_database_serves_no_wrong_plan_and_is_repaired_when_told(
    sound: Path, tmp_path: Path, damage: Any, seed: int
) -> None:
    directory = tmp_path / "plans"
    shutil.copytree(sound, directory)
    damage(directory / "semcache.db", random.Random(seed), 1 + 4 * seed)
    with contextlib.suppress(SemCacheError), opened(directory) as cache:
        assert all(served(cache, number) in {number, None} for number in range(COUNT))
    with closing(DiskStore.open(directory, repair=True)) as store:
        told = store.repaired
    with opened(directory) as cache:
        assert all(served(cache, number) in {number, None} for number in range(COUNT))
        assert cache.store(prompt(99), plan(99))
        assert served(cache, 99) == 99
    assert bool(told) == any(directory.glob("damaged-*"))


@pytest.mark.parametrize("damage", [flipped, cut])
@pytest.mark.parametrize("ending", ["view", "index"])
def test_a_damaged_snapshot_is_derived_again_and_said_to_be(
    sound: Path, tmp_path: Path, damage: Any, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "plans"
    shutil.copytree(sound, directory)
    damage(next((directory / VIEWS).glob(f"*.{ending}")), random.Random(5), 1)
    with caplog.at_level(logging.WARNING), opened(directory) as cache:
        assert [served(cache, number) for number in range(COUNT)] == [*range(COUNT)]
    assert "derived from the store again" in caplog.text


# In the way ──────────────────────────────────────────────────────────────────────────────────────


def run(*command: str) -> int:
    """Run a command of the system; return its exit code."""
    return subprocess.run(command, check=False, capture_output=True).returncode  # noqa: S603 - ours


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB; whoever may not mount is skipped."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() or run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)):
        pytest.skip("only root may mount a small disk")
    try:
        yield place
    finally:
        run("umount", "--lazy", str(place))


def fill(disk: Path) -> Path:
    """Write to a disk until there is no room; return the file that took it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def trouble(observer: RecordingObserver, caplog: pytest.LogCaptureFixture) -> tuple[int, int]:
    """Return how many events and how many warnings told of a failing store."""
    warned = caplog.text.count("store failed and is passed over")
    return len(observer.of(TierFailed)), warned


def test_a_full_disk_keeps_serving_and_stores_again_when_there_is_room(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observer = RecordingObserver()
    with opened(small_disk / "plans", observer) as cache:
        assert cache.store(prompt(0), plan(0))
        filler = fill(small_disk)
        failed = [n for n in range(1, 40) if not cache.store(prompt(n), plan(n))]
        assert failed
        assert "full" in cache.store(prompt(failed[0]), plan(failed[0])).reason
        assert served(cache, 0) == 0
        assert trouble(observer, caplog) == (len(failed) + 1, 1)
        filler.unlink()
        assert cache.store(prompt(failed[0]), plan(failed[0]))
        assert served(cache, failed[0]) == failed[0]


def test_a_full_disk_can_be_opened_again_and_serves(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(small_disk / "plans") as cache:
        assert cache.store(prompt(0), plan(0))
    filler = fill(small_disk)
    with opened(small_disk / "plans") as cache:
        assert "is served as it is" in caplog.text
        assert served(cache, 0) == 0
        assert "the disk is full" in cache.store(prompt(1), plan(1)).reason
        filler.unlink()
        assert cache.store(prompt(1), plan(1))
        assert (served(cache, 0), served(cache, 1)) == (0, 1)


def test_a_cache_that_is_begun_on_a_full_disk_keeps_plans_once_there_is_room(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filler = fill(small_disk)
    with PlanCache.open(small_disk / "plans", embedder=HashEmbedder()) as cache:
        assert "No space left" in caplog.text
        assert "No space left" in cache.store(prompt(0), plan(0)).reason
        filler.unlink()
        until(lambda: bool(cache.store(prompt(0), plan(0))))
        assert served(cache, 0) == 0


def test_a_read_only_disk_can_be_opened_again_and_serves(small_disk: Path, sound: Path) -> None:
    shutil.copytree(sound, small_disk / "plans")
    assert run("mount", "-o", "remount,ro", str(small_disk)) == 0
    with opened(small_disk / "plans") as cache:
        assert served(cache, 0) == 0
        stored = cache.store(prompt(99), plan(99))
        assert (bool(stored), "cannot be used" in stored.reason) == (False, True)
        assert run("mount", "-o", "remount,rw", str(small_disk)) == 0
        assert cache.store(prompt(99), plan(99))
        assert served(cache, 99) == 99


def test_a_disk_that_becomes_read_only_keeps_serving_and_stores_again_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, connections: list[sqlite3.Connection]
) -> None:
    observer = RecordingObserver()
    with opened(tmp_path / "plans", observer) as cache:
        assert cache.store(prompt(0), plan(0))
    with opened(tmp_path / "plans", observer) as cache:
        assert served(cache, 0) == 0
        # An open file may be written whatever the mount.
        connections[-1].execute("PRAGMA query_only = 1")
        for _ in range(3):
            stored = cache.store(prompt(1), plan(1))
            assert (bool(stored), "read-only" in stored.reason) == (False, True)
            assert served(cache, 0) == 0
        assert trouble(observer, caplog) == (3, 1)
        connections[-1].execute("PRAGMA query_only = 0")
        assert cache.store(prompt(1), plan(1))


def test_a_database_that_is_locked_keeps_serving_and_stores_again_when_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observer = RecordingObserver()
    with opened(tmp_path / "plans", observer, busy_timeout_s=0.05) as cache:
        assert cache.store(prompt(0), plan(0))
        other = sqlite3.connect(tmp_path / "plans" / "semcache.db", isolation_level=None)
        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            for number in range(1, 4):
                stored = cache.store(prompt(number), plan(number))
                assert (bool(stored), "locked" in stored.reason) == (False, True)
                assert served(cache, 0) == 0
            assert trouble(observer, caplog) == (3, 1)
            other.execute("ROLLBACK")
        assert cache.store(prompt(1), plan(1))
        assert served(cache, 1) == 1


def test_a_directory_that_vanishes_is_a_miss_and_no_error(tmp_path: Path) -> None:
    with opened(tmp_path / "plans", busy_timeout_s=0.05) as cache:
        assert cache.store(prompt(0), plan(0))
        shutil.rmtree(tmp_path / "plans")
        for number in range(3):
            assert isinstance(cache.lookup(prompt(number)), Hit | Miss)
            cache.store(prompt(number), plan(number))
