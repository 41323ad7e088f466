import base64
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from semcache import PlanCache
from semcache.errors import WeightsUnavailable
from semcache.stores.disk.sidecar import SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.testing import FakeClock, HashEmbedder, make_record
from semcache.upkeep.checks import Check, sound
from semcache.upkeep.doctor import examine

KEY = base64.b64encode(b"k" * 32).decode()


def looked(directory: Path, clock: FakeClock, **more: Any) -> dict[str, Check]:
    """Return the checks by their parts, those with trouble before the others."""
    more.setdefault("embedder", HashEmbedder())
    checks = examine(directory, clock=clock, **more)
    return {check.part: check for check in sorted(checks, key=lambda c: c.level != "ok")}


def test_a_sound_cache_is_said_to_be_sound_and_left_as_it_is(kept: Path, clock: FakeClock) -> None:
    before = {path: path.read_bytes() for path in kept.glob("views/*")}
    checks = examine(kept, clock=clock, embedder=HashEmbedder())
    assert [str(check) for check in checks if check.level != "ok"] == []
    assert {check.part for check in checks} >= {
        "directory", "permissions", "room", "versions", "database", "records", "clock",
        "embedder", "vectors", "index",
    }  # fmt: skip
    assert {path: path.read_bytes() for path in kept.glob("views/*")} == before


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda path: None, "there is no directory"),
        (lambda path: path.mkdir(), "no 'manifest.json'"),
        (lambda path: (path.mkdir(), (path / "manifest.json").write_text("{}")), "no manifest"),
        (
            lambda path: (
                path.mkdir(),
                (path / "manifest.json").write_text('{"format":"semcache-store","version":99}'),
            ),
            "has format 99",
        ),
    ],
)
def test_what_is_no_cache_is_told_and_not_made_one(
    made: Callable[[Path], object], says: str, tmp_path: Path, clock: FakeClock
) -> None:
    made(tmp_path / "cache")
    before = sorted(tmp_path.rglob("*"))
    (check,) = examine(tmp_path / "cache", clock=clock, repair=True)
    assert (check.level, check.cure != "") == ("broken", True)
    assert says in check.what
    assert sorted(tmp_path.rglob("*")) == before


class Ill(NamedTuple):
    """A way to break a cache, and what the doctor says of it."""

    break_it: Callable[[Path], object]
    part: str
    says: str


def readable_by_all(directory: Path) -> None:
    (directory / "semcache.db").chmod(0o644)


def left_by_a_crash(directory: Path) -> None:
    left = directory / "manifest.json1234.tmp"
    left.write_text("{", encoding="utf-8")
    os.utime(left, (1, 1))


def page_of_zeros(directory: Path) -> None:
    with closing(sqlite3.connect(directory / "semcache.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((directory / "semcache.db").read_bytes())
    content[4096:8192] = bytes(4096)
    (directory / "semcache.db").write_bytes(content)


def no_entry(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        store.put(make_record("x", body='{"format": 99}', vector=None))


def flipped_record(directory: Path) -> None:
    statement = "UPDATE records SET body = replace(body, 'visits', 'vizits')"
    with closing(sqlite3.connect(directory / "semcache.db")) as database, database:
        assert database.execute(statement).rowcount > 0


def from_the_future(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        record = store.scan("acme")[0]
        store.put(replace(record, created_s=4e9, expires_s=4e9 + 100))


def embedded_by_another(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        store.put(replace(store.scan("acme")[0], embedder="model of before"))


def short_vector(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        record = store.scan("acme")[0]
        assert record.vector is not None
        store.put(replace(record, vector=np.asarray(record.vector / 2, np.float32)))


def keys_of_another(directory: Path) -> None:
    with closing(DiskStore.open(directory)) as store:
        store.put(replace(store.scan("acme")[0], keys=("template:0",)))


def no_entry_and_no_vector(directory: Path) -> None:
    no_entry(directory)
    embedded_by_another(directory)


ILLS = [
    Ill(no_entry_and_no_vector, "vectors", "1 entries have vectors of model of before"),
    Ill(readable_by_all, "permissions", "others can read"),
    Ill(left_by_a_crash, "leftovers", "1 files were being written"),
    Ill(page_of_zeros, "database", "damaged"),
    Ill(no_entry, "records", "1 entries cannot be read"),
    Ill(flipped_record, "records", "not what was written"),
    Ill(from_the_future, "clock", "from the future"),
    Ill(embedded_by_another, "vectors", "vectors of model of before"),
    Ill(short_vector, "index", "has length 0.5"),
    Ill(keys_of_another, "index", "its keys are"),
]


@pytest.mark.parametrize("ill", ILLS, ids=lambda ill: ill.break_it.__name__)
def test_what_is_broken_is_told_with_a_way_out_and_repaired_when_told(
    ill: Ill, kept: Path, clock: FakeClock
) -> None:
    ill.break_it(kept)
    check = looked(kept, clock)[ill.part]
    assert check.level != "ok"
    assert ill.says in check.what
    assert check.cure
    if ill.break_it is not flipped_record:  # the store sets that aside as soon as it meets it
        assert looked(kept, clock)[ill.part].level != "ok"
        repaired = looked(kept, clock, repair=True)[ill.part]
        assert repaired.repaired, repaired
    after = examine(kept, clock=clock, embedder=HashEmbedder())
    assert sound(after), [str(check) for check in after if check.level != "ok"]
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock) as cache:
        cache.store("visits in 2024", {"year": "2024"}, params={"year": "2024"})
        assert cache.lookup("visits in 2023")


def test_a_snapshot_that_is_wrong_is_found_and_forgotten(kept: Path, clock: FakeClock) -> None:
    with closing(DiskStore.open(kept)) as store:
        checksum = store.get_note("acme", "snapshot")
        assert checksum is not None
        snapshot = SnapshotDirectory(kept / "views").load("acme", checksum)
        assert snapshot is not None
        (known, *_) = [record.id for record in store.scan("acme")]
        snapshot.index.remove(known)
        SnapshotDirectory(kept / "views").save(
            "acme", snapshot.content, snapshot.index, change=snapshot.change
        )
    check = looked(kept, clock)["index"]
    assert (check.level, "does not find it by its own vector" in check.what) == ("broken", True)
    assert looked(kept, clock, repair=True)["index"].repaired
    assert sound(examine(kept, clock=clock, embedder=HashEmbedder()))
    with PlanCache.open(kept, embedder=HashEmbedder(), clock=clock) as cache:
        assert len(cache.entries(tenant="acme")) == 3  # nothing but the snapshot was wrong


def test_a_full_disk_is_foretold(
    kept: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(kept)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    check = looked(kept, clock)["room"]
    assert (check.level, "0 MB are free" in check.what) == ("warning", True)


def test_an_embedder_without_weights_is_told(kept: Path, clock: FakeClock) -> None:
    class NoWeights(HashEmbedder):
        def embed(self, texts: object) -> Any:
            raise WeightsUnavailable("there are no weights at '/models'")

    check = looked(kept, clock, embedder=NoWeights())["embedder"]
    assert (check.level, check.what) == ("broken", "there are no weights at '/models'")


def test_a_key_that_is_missing_or_wrong_is_told(tmp_path: Path, clock: FakeClock) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), encryption_key=KEY) as cache:
        cache.store("sales in 2024", {"year": "2024"}, params={"year": "2024"})
    assert looked(tmp_path, clock)["key"].what.endswith("SEMCACHE_ENCRYPTION_KEY")
    checks = examine(tmp_path, clock=FakeClock(4e9), embedder=HashEmbedder(), encryption_key=KEY)
    assert sound(checks), list(map(str, checks))


@pytest.mark.slow  # SQLite waits for seconds
def test_a_locked_database_is_told(kept: Path, clock: FakeClock) -> None:
    manifest = json.loads((kept / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == "semcache-store"
    (kept / "semcache.db").chmod(0o600)
    with closing(sqlite3.connect(kept / "semcache.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        checks = looked(kept, clock)
    assert checks["database"].level == "broken"
    assert "locked" in checks["database"].what
