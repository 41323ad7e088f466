"""An index of many rows finds what comparing with all of them finds, but for one in a thousand."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semcache.errors import IndexCorrupt
from semcache.ports import VectorIndex, Vectors
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import VectorIndexContract, unit

DIMENSION = 64
NEAREST = 16


class TestFaissIndexWithCodes(VectorIndexContract):
    """Of few rows all are compared, though they have codes."""

    def make(self, tmp_path: Path) -> VectorIndex:
        return FaissIndex(large=1)


def texts(count: int, *, seed: int = 5) -> Vectors:
    """Return unit rows that lie as vectors of texts do: in topics, of which some are near others.

    A tenth is there twice, and a tenth nearly so.
    """
    random = np.random.default_rng(seed)
    topics = random.standard_normal((40, DIMENSION)) + 2 * random.standard_normal(DIMENSION)
    rows = topics[random.integers(40, size=count)]
    rows += random.standard_normal((count, 8)) @ random.standard_normal((8, DIMENSION)) / 4
    rows += 0.3 * random.standard_normal(rows.shape)
    tenth = count // 10
    rows[count - tenth :] = rows[:tenth]
    near = slice(count - 2 * tenth, count - tenth)
    rows[near] = rows[:tenth] + 1e-3 * random.standard_normal((tenth, DIMENSION))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows, np.float32)


def filled(rows: Vectors, *, large: int) -> FaissIndex:
    index = FaissIndex(large=large)
    for number, row in enumerate(rows):
        index.add(f"{number:05}", row)
    return index


def recall(index: VectorIndex, kept: dict[str, np.ndarray], queries: Vectors) -> float:
    """Return the share of the nearest that the index finds, and see that all it finds is true."""
    if not kept:
        assert not any(index.search(query, NEAREST) for query in queries)
        return 1.0
    ids, rows = sorted(kept), np.array([kept[known] for known in sorted(kept)], np.float64)
    shares = []
    for query in queries:
        exact = rows @ query
        found = list(index.search(query, NEAREST))
        assert len(found) == min(NEAREST, len(ids))
        assert found == sorted(found, key=lambda one: (-one.similarity, one.id))
        truth = dict(zip(ids, exact, strict=True))
        assert all(abs(truth[one.id] - one.similarity) < 1e-5 for one in found)
        last = np.sort(exact)[-len(found)]
        shares.append(np.mean([truth[one.id] >= last - 1e-6 for one in found]))
    return float(np.mean(shares))


def test_of_the_nearest_all_but_one_in_a_thousand_are_found() -> None:
    rows = texts(6_000)
    index = filled(rows[:5_800], large=2_000)
    kept = {f"{number:05}": row for number, row in enumerate(rows[:5_800])}
    assert recall(index, kept, rows[5_800:]) >= 0.999
    assert recall(index, kept, rows[:200]) >= 0.999


def test_most_rows_are_never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = texts(6_000)
    index = filled(rows, large=2_000)
    expected = [one.id for one in index.search(rows[0], NEAREST)]

    def all_of_them(*_: object, **__: object) -> None:
        raise AssertionError("every row was compared")

    monkeypatch.setattr("semcache.stores.vectors.rows.IndexRows.nearest", all_of_them)
    assert [one.id for one in index.search(rows[0], NEAREST)] == expected


@settings(max_examples=15)
@example(seed=0, kept=2, changes=3, removed=1.0)
@given(
    seed=st.integers(0, 2**32 - 1),
    kept=st.integers(2, 900),
    changes=st.integers(0, 300),
    removed=st.floats(0, 1),
)
def test_an_index_of_few_rows_is_exact_whatever_is_added_replaced_and_removed(
    *, seed: int, kept: int, changes: int, removed: float
) -> None:
    random, rows = np.random.default_rng(seed), texts(kept + changes, seed=seed)
    index, left = filled(rows[:kept], large=10_000), dict(enumerate(rows[:kept]))
    for change in range(changes):
        number = int(random.integers(kept))
        if random.random() < removed:
            assert index.remove(f"{number:05}") == (left.pop(number, None) is not None)
        else:
            index.add(f"{number:05}", rows[kept + change])
            left[number] = rows[kept + change]
    named = {f"{number:05}": row for number, row in left.items()}
    assert len(index) == len(named)
    assert recall(index, named, rows[:20]) == 1


@pytest.mark.parametrize("reloaded", [False, True])
def test_recall_outlives_removals_replacements_growth_and_reloads(
    tmp_path: Path, *, reloaded: bool
) -> None:
    rows = texts(6_000)
    index = filled(rows[:2_000], large=1_000)
    kept = {f"{number:05}": row for number, row in enumerate(rows[:2_000])}
    assert recall(index, kept, rows[:50]) >= 0.999
    random = np.random.default_rng(3)
    for number in range(2_000, 5_800):  # more than twice as many, so that codes are learned anew
        index.add(f"{number:05}", rows[number])
        kept[f"{number:05}"] = rows[number]
        gone = f"{random.integers(number):05}"
        if number % 3 == 0:  # so often that tombstones are cleared away
            assert index.remove(gone) == (kept.pop(gone, None) is not None)
        elif number % 3 == 1:
            index.add(gone, rows[-number])
            kept[gone] = rows[-number]
        if number % 1_000 == 0 and reloaded:
            index.save(str(tmp_path / "snapshot"), change=number)
            index, change = FaissIndex.load(str(tmp_path / "snapshot"), large=1_000)
            assert (len(index), change) == (len(kept), number)
    assert len(index) == len(kept)
    assert recall(index, kept, rows[5_800:]) >= 0.999


def test_an_index_that_shrank_is_exact_again() -> None:
    rows = texts(3_000)
    index = filled(rows, large=1_000)
    index.search(rows[0], 1)
    for number in range(2_700):
        assert index.remove(f"{number:05}")
    kept = {f"{number:05}": rows[number] for number in range(2_700, 3_000)}
    assert recall(index, kept, rows[:100]) == 1


def test_who_asks_for_more_than_are_compared_by_codes_gets_them_all() -> None:
    rows = texts(1_500)
    index = filled(rows, large=500)
    for count in (64, 65, 700, 1_500, 2_000):
        assert len(index.search(rows[3], count)) == min(count, 1_500)


def test_equal_indexes_give_equal_answers() -> None:
    rows = texts(3_000)
    one, other = filled(rows, large=1_000), filled(rows, large=1_000)
    for query in rows[::100]:
        assert list(one.search(query, 9)) == list(other.search(query, 9))


def test_a_snapshot_keeps_the_codes_so_that_nobody_learns_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = texts(3_000)
    index = filled(rows, large=1_000)
    index.save(str(tmp_path / "snapshot"), change=1)

    def learned(*_: object) -> None:
        raise AssertionError("the codes were learned again")

    monkeypatch.setattr("faiss.ProductQuantizer.train", learned)
    again, _ = FaissIndex.load(str(tmp_path / "snapshot"), large=1_000)
    for query in rows[::100]:
        assert [n.id for n in again.search(query, 5)] == [n.id for n in index.search(query, 5)]


def test_a_removed_vector_is_in_no_snapshot(tmp_path: Path) -> None:
    rows = texts(1_500)
    index = filled(rows, large=500)
    index.search(rows[0], 1)
    assert index.remove("00700")
    index.save(str(tmp_path / "snapshot"), change=1)
    assert rows[700].tobytes() not in (tmp_path / "snapshot").read_bytes()
    assert b"00700" not in (tmp_path / "snapshot").read_bytes()


def rewritten(path: Path, **members: object) -> None:
    """Change members of the head of a snapshot, and make its checksum anew."""
    first, said, content = path.read_bytes().split(b"\n", 2)
    body = json.dumps({**json.loads(said), **members}).encode() + b"\n" + content
    check = hashlib.sha256(body).hexdigest().encode()
    path.write_bytes(first[: first.rindex(b" ") + 1] + check + b"\n" + body)


def test_codes_that_another_faiss_packed_otherwise_are_learned_again(tmp_path: Path) -> None:
    rows, path = texts(2_000), tmp_path / "snapshot"
    filled(rows, large=1_000).save(str(path), change=1)
    content = path.read_bytes()
    packed = bytearray(content[-2_016 * DIMENSION // 2 :])  # of 63 blocks of 32 rows
    packed[::2], packed[1::2] = packed[1::2], packed[::2]
    path.write_bytes(content[: -len(packed)] + packed)
    rewritten(path)
    index, _ = FaissIndex.load(str(path), large=1_000)
    kept = {f"{number:05}": row for number, row in enumerate(rows)}
    assert recall(index, kept, rows[:200]) >= 0.999


@pytest.mark.parametrize(
    "coded", [{"rows": 0}, {"rows": "5"}, {"lists": 2**40}, {"lists": 0}, {"probes": 0}, {}, None]
)
def test_a_snapshot_with_a_wrong_head_of_codes_is_found_out(
    tmp_path: Path, coded: dict[str, object] | None
) -> None:
    path = tmp_path / "snapshot"
    filled(texts(2_000), large=1_000).save(str(path), change=1)
    had = json.loads(path.read_bytes().split(b"\n")[1])["coded"]
    assert had == {"lists": 1, "probes": 1, "rows": 2_000}
    rewritten(path, coded={**had, **coded} if coded else coded)
    with pytest.raises(IndexCorrupt, match="rebuilt from the store"):
        FaissIndex.load(str(path))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_snapshot_with_codes_of_fewer_or_more_rows_is_found_out(
    tmp_path: Path, more: int
) -> None:
    path = tmp_path / "snapshot"
    filled(texts(2_000), large=1_000).save(str(path), change=1)
    content = path.read_bytes()
    path.write_bytes(content[:more] if more < 0 else content + b"\0")
    rewritten(path)
    with pytest.raises(IndexCorrupt, match="bytes for the codes of 2000 rows"):
        FaissIndex.load(str(path))


@pytest.mark.parametrize("member", ["bounds", "codes", "lists"])
def test_a_snapshot_of_a_version_that_kept_something_else_is_read_without_it(
    tmp_path: Path, member: str
) -> None:
    path = tmp_path / "snapshot"
    index = FaissIndex()
    for number in range(9):
        index.add(f"{number}", unit(1, number))
    index.save(str(path), change=7)
    path.write_bytes(path.read_bytes() + b"something else")
    rewritten(path, **{member: {"count": 9, "width": 16}})
    again, change = FaissIndex.load(str(path))
    assert (len(again), change, again.search(unit(1, 5), 1)[0].id) == (9, 7, "5")
