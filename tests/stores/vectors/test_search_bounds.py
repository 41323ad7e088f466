"""An index of many rows answers as one that compares with all of them."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.errors import IndexCorrupt
from semcache.ports import Vector, VectorIndex, Vectors
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.stores.vectors.matrix import MemoryIndex
from semcache.stores.vectors.search_bounds import SearchBounds
from semcache.testing import VectorIndexContract, unit

DIMENSION = 96
"""The least for which bounds are kept."""


class TestBoundedFaissIndex(VectorIndexContract):
    def make(self, tmp_path: Path) -> VectorIndex:
        return FaissIndex(many=1)


def vectors(random: np.random.Generator, count: int, *, rank: int, spread: float) -> Vectors:
    """Return unit rows near a subspace of `rank`, some of them twice and some nearly so."""
    basis = random.standard_normal((rank, DIMENSION))
    rows = random.standard_normal((count, rank)) @ basis / rank**0.5
    rows += spread * random.standard_normal(rows.shape)
    again = random.integers(count, size=count // 4)
    rows[: len(again)] = rows[again]
    rows[: len(again) // 2] += 1e-7 * random.standard_normal(rows[: len(again) // 2].shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows, np.float32)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    kept=st.integers(2, 300),
    rank=st.integers(1, DIMENSION),
    spread=st.sampled_from([0.0, 1e-4, 0.05, 1.0]),
    count=st.integers(1, 12),
    changes=st.integers(0, 40),
)
def test_bounds_never_change_an_answer_whatever_is_added_replaced_and_removed(
    *, seed: int, kept: int, rank: int, spread: float, count: int, changes: int
) -> None:
    random = np.random.default_rng(seed)
    rows = vectors(random, kept + changes, rank=rank, spread=spread)
    bounded, all_of_them, numpy = FaissIndex(many=2), FaissIndex(many=10**9), MemoryIndex()
    indexes = (bounded, all_of_them, numpy)

    def add(number: int, row: Vector) -> None:
        for index in indexes:
            index.add(f"{number:03}", row)

    def compare(query: Vector) -> None:
        found = list(bounded.search(query, count))
        assert found == list(all_of_them.search(query, count))
        assert found == list(numpy.search(query, count))

    for number in range(kept):
        add(number, rows[number])
    compare(rows[0])
    for change in range(changes):
        number = int(random.integers(kept + change))
        if random.random() < 0.4:
            assert len({index.remove(f"{number:03}") for index in indexes}) == 1
        else:
            add(number, rows[kept + change])
    for query in (rows[0], rows[-1], -rows[1], unit(*random.standard_normal(DIMENSION))):
        compare(query)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    rank=st.integers(1, DIMENSION),
    spread=st.sampled_from([0.0, 1e-6, 1e-3, 0.3]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_no_product_is_above_its_bound(seed: int, rank: int, spread: float, scale: float) -> None:
    random = np.random.default_rng(seed)
    rows = np.float32(scale) * vectors(random, 120, rank=rank, spread=spread)
    leading = SearchBounds.of(rows[:100])
    fitting = [leading.write(place, rows[place]) for place in range(100, 120)]
    rows = rows[: 100 + (fitting.index(False) if False in fitting else len(fitting))]
    for query in rows[:10]:
        exact = rows.astype(np.float64) @ query.astype(np.float64)
        bounds, places = leading.nearest(query, len(rows), len(rows))
        assert sorted(places) == [*range(len(rows))]
        assert (np.diff(bounds) <= 0).all()
        assert (exact[places] <= bounds).all()


def test_of_many_rows_near_few_directions_only_some_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(5)
    rows = vectors(random, 2_000, rank=8, spread=0.01)
    index, expected = FaissIndex(many=1_000), MemoryIndex()
    for number, row in enumerate(rows):
        index.add(f"{number:04}", row)
        expected.add(f"{number:04}", row)

    def compared_with_all(*_: object, **__: object) -> None:
        raise AssertionError("every row was compared")

    monkeypatch.setattr("faiss.knn", compared_with_all)
    for query in rows[::100]:
        assert list(index.search(query, 5)) == list(expected.search(query, 5))


def bounded(count: int) -> tuple[FaissIndex, Vectors]:
    """Return an index of rows that bounds part well, and its rows."""
    rows = vectors(np.random.default_rng(8), count, rank=8, spread=0.01)
    index = FaissIndex(many=100)
    for number, row in enumerate(rows):
        index.add(f"{number:04}", row)
    return index, rows


def test_a_snapshot_keeps_the_bounds_so_that_nobody_works_them_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, rows = bounded(400)
    index.save(str(tmp_path / "snapshot"), change=1)
    again, _ = FaissIndex.load(str(tmp_path / "snapshot"))
    again.many = 100

    def worked_out(*_: object) -> None:
        raise AssertionError("the bounds were worked out again")

    monkeypatch.setattr("numpy.linalg.eigh", worked_out)
    monkeypatch.setattr("faiss.knn", worked_out)
    for query in rows[::40]:
        assert list(again.search(query, 5)) == list(index.search(query, 5))


def test_an_index_with_the_bounds_of_its_snapshot_goes_on_as_any_other(tmp_path: Path) -> None:
    index, rows = bounded(200)
    index.save(str(tmp_path / "snapshot"), change=1)
    again, _ = FaissIndex.load(str(tmp_path / "snapshot"))
    again.many = 100
    expected = MemoryIndex()
    for number, row in enumerate(rows):
        expected.add(f"{number:04}", row)
    for either in (again, expected):
        either.add("0007", rows[3])
        either.add("new", -rows[5])
        assert either.remove("0100")
    for query in (rows[3], -rows[5], rows[100], rows[199]):
        assert list(again.search(query, 9)) == list(expected.search(query, 9))


def test_a_snapshot_with_bounds_that_do_not_fit_its_rows_is_found_out(tmp_path: Path) -> None:
    index, _ = bounded(120)
    path = tmp_path / "snapshot"
    index.save(str(path), change=1)
    head, _, body = path.read_bytes().partition(b"\n")
    for wrong in (b'"width":15', b'"width":17', b'"width":-1', b'"width":"1"', b'"width":0'):
        changed = body.replace(b'"width":16', wrong, 1)
        check = hashlib.sha256(changed).hexdigest().encode()
        path.write_bytes(head[: head.rindex(b" ") + 1] + check + b"\n" + changed)
        with pytest.raises(IndexCorrupt, match="rebuilt from the store"):
            FaissIndex.load(str(path))


def test_a_row_unlike_all_before_is_found_and_bounds_begin_anew() -> None:
    index, rows = bounded(200)
    expected = MemoryIndex()
    for number, row in enumerate(rows):
        expected.add(f"{number:04}", row)
    assert list(index.search(rows[0], 3)) == list(expected.search(rows[0], 3))
    random = np.random.default_rng(9)
    others = [unit(*row) for row in random.standard_normal((5, DIMENSION))]
    for number, row in enumerate(others):
        for either in (index, expected):
            either.add(f"other {number}", row)
        for query in (row, rows[number], -row):
            assert list(index.search(query, 4)) == list(expected.search(query, 4))


def test_many_rows_removed_leave_no_trace_in_what_bounds_the_others() -> None:
    index, rows = bounded(900)
    expected = MemoryIndex()
    for number in range(0, 900, 3):
        expected.add(f"{number:04}", rows[number])
    assert index.search(rows[1], 1)[0].id == "0001"
    for number in range(900):
        if number % 3:
            assert index.remove(f"{number:04}")
    for query in rows[::50]:
        assert list(index.search(query, 6)) == list(expected.search(query, 6))


def test_rows_in_all_directions_are_compared_one_and_all() -> None:
    random = np.random.default_rng(6)
    rows = [unit(*row) for row in random.standard_normal((500, DIMENSION))]
    index, expected = FaissIndex(many=100), MemoryIndex()
    for number, row in enumerate(rows):
        index.add(f"{number:03}", row)
        expected.add(f"{number:03}", row)
    query = unit(*random.standard_normal(DIMENSION))
    assert list(index.search(query, 20)) == list(expected.search(query, 20))


def test_a_loaded_index_of_many_rows_answers_as_the_saved_one(tmp_path: Path) -> None:
    rows = vectors(np.random.default_rng(7), 300, rank=10, spread=0.01)
    saved = FaissIndex()
    for number, row in enumerate(rows):
        saved.add(f"{number:03}", row)
    saved.save(str(tmp_path / "snapshot"), change=1)
    loaded, _ = FaissIndex.load(str(tmp_path / "snapshot"))
    loaded.many = 100
    assert list(loaded.search(rows[9], 5)) == list(saved.search(rows[9], 5))
    loaded.add("new", rows[9])
    assert [near.id for near in loaded.search(rows[9], 2)] == ["009", "new"]
