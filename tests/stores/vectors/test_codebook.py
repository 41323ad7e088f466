"""Of very many rows a search looks through some lists; how many is measured as they are made."""

import json
from pathlib import Path
from threading import Event
from typing import Any

import faiss
import numpy as np
import pytest

from semcache.errors import IndexCorrupt
from semcache.ports import Vectors
from semcache.stores.vectors.faiss_index import FaissIndex
from tests.stores.vectors.test_codes import DIMENSION, NEAREST, filled, recall, rewritten, texts


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.stores.vectors.codebook.MANY", 1_000)
    monkeypatch.setattr("semcache.stores.vectors.faiss_index.SLOW", 1_000)


def named(rows: Vectors) -> dict[str, np.ndarray]:
    return {f"{number:05}": row for number, row in enumerate(rows)}


def head(path: Path) -> dict[str, int]:
    coded: dict[str, int] = json.loads(path.read_bytes().split(b"\n")[1])["coded"]
    return coded


def learned(rows: Vectors) -> FaissIndex:
    index = filled(rows, large=500)
    index.learn()
    return index


def test_in_few_lists_are_all_but_one_in_a_thousand_of_the_nearest(tmp_path: Path) -> None:
    rows = texts(6_000)
    index = learned(rows[:5_800])
    assert recall(index, named(rows[:5_800]), rows[5_800:]) >= 0.999
    assert recall(index, named(rows[:5_800]), rows[:200]) >= 0.999
    index.save(str(tmp_path / "snapshot"), change=1)
    made = head(tmp_path / "snapshot")
    assert made["lists"] > 100
    assert made["probes"] < made["lists"] / 2


def test_more_lists_are_looked_through_where_rows_share_no_place(tmp_path: Path) -> None:
    near, far = texts(3_000), np.random.default_rng(1).standard_normal((3_000, DIMENSION))
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    probes = []
    for rows in (near, far.astype(np.float32)):
        index = learned(rows[:2_900])
        assert recall(index, named(rows[:2_900]), rows[2_900:]) >= 0.995
        index.save(str(tmp_path / "snapshot"), change=1)
        probes.append(head(tmp_path / "snapshot")["probes"])
    assert probes[1] > 1.5 * probes[0]


@pytest.mark.parametrize("reloaded", [False, True])
def test_recall_in_lists_outlives_removals_replacements_growth_and_reloads(
    tmp_path: Path, *, reloaded: bool
) -> None:
    rows, path = texts(6_000), str(tmp_path / "snapshot")
    index, kept = learned(rows[:2_000]), named(rows[:2_000])
    random = np.random.default_rng(3)
    for number in range(2_000, 5_800):  # more than twice as many, so that lists are made anew
        index.add(f"{number:05}", rows[number])
        kept[f"{number:05}"] = rows[number]
        gone = f"{random.integers(number):05}"
        if number % 3 == 0:  # so often that tombstones are cleared away
            assert index.remove(gone) == (kept.pop(gone, None) is not None)
        elif number % 3 == 1:
            index.add(gone, rows[-number])
            kept[gone] = rows[-number]
        if number % 1_000 == 0 and reloaded:
            index.save(path, change=number)
            index, change = FaissIndex.load(path, large=500)
            assert (len(index), change) == (len(kept), number)
        if number % 500 == 0:
            assert recall(index, kept, rows[5_980:]) >= 0.99
    index.learn()
    assert len(index) == len(kept)
    assert recall(index, kept, rows[5_800:]) >= 0.999


def test_who_asks_for_more_than_the_lists_hold_gets_them_all() -> None:
    rows = texts(1_500)
    index = learned(rows)
    for count in (64, 65, 700, 1_500, 2_000):
        assert len(index.search(rows[3], count)) == min(count, 1_500)


def test_searches_and_changes_go_on_while_lists_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = Event(), Event()
    train = faiss.Kmeans.train

    def slow(self: Any, rows: Vectors) -> object:
        begun.set()
        assert go_on.wait(60)
        return train(self, rows)

    monkeypatch.setattr("faiss.Kmeans.train", slow)
    rows = texts(3_000)
    index, kept = filled(rows[:2_000], large=500), named(rows[:2_000])
    try:
        assert recall(index, kept, rows[2_900:]) == 1
        assert begun.wait(60)
        for number in range(2_000, 2_500):
            index.add(f"{number:05}", rows[number])
            kept[f"{number:05}"] = rows[number]
            assert index.remove(f"{number - 2_000:05}")
            del kept[f"{number - 2_000:05}"]
        assert recall(index, kept, rows[2_900:]) == 1
    finally:
        go_on.set()
    index.learn()
    assert recall(index, kept, rows[2_900:]) >= 0.999


def test_a_snapshot_keeps_the_lists_so_that_nobody_makes_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = texts(3_000)
    index = filled(rows, large=500)
    index.save(str(tmp_path / "snapshot"), change=1)

    def made(*_: object) -> None:
        raise AssertionError("the lists were made again")

    monkeypatch.setattr("faiss.Kmeans.train", made)
    again, _ = FaissIndex.load(str(tmp_path / "snapshot"), large=500)
    for query in rows[::100]:
        assert list(again.search(query, NEAREST)) == list(index.search(query, NEAREST))
    assert recall(again, named(rows), rows[::100]) >= 0.999


def test_a_snapshot_whose_lists_have_a_row_twice_is_found_out(tmp_path: Path) -> None:
    path, rows = tmp_path / "snapshot", texts(2_000)
    learned(rows).save(str(path), change=1)
    first, said, content = path.read_bytes().split(b"\n", 2)
    lists = json.loads(said)["coded"]["lists"]
    start = 4 * (2_000 * DIMENSION + DIMENSION * (16 + lists) + lists)
    content = content[:start] + content[start + 4 : start + 8] + content[start + 4 :]
    path.write_bytes(b"\n".join([first, said, content]))
    rewritten(path)
    with pytest.raises(IndexCorrupt, match="not of each row"):
        FaissIndex.load(str(path), large=500)


def test_a_changed_bit_of_the_lists_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    learned(texts(2_000)).save(str(path), change=1)
    content = bytearray(path.read_bytes())
    content[-1_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(IndexCorrupt, match="checksum"):
        FaissIndex.load(str(path), large=500)
