from pathlib import Path

import numpy as np
import pytest

from semcache.errors import IndexCorrupt, StoreUnavailable
from semcache.ports import VectorIndex
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import VectorIndexContract, unit


class TestFaissIndex(VectorIndexContract):
    def make(self, tmp_path: Path) -> VectorIndex:
        return FaissIndex()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    index = FaissIndex()
    for i in range(20):
        index.add(f"id {i}/é", unit(1, i, 2))
    index.save(str(tmp_path / "snapshot"), change=42)
    return tmp_path / "snapshot"


def test_a_loaded_index_answers_as_the_saved_one_and_goes_on(saved: Path) -> None:
    index, change = FaissIndex.load(str(saved))
    assert (len(index), change) == (20, 42)
    assert index.search(unit(1, 7, 2), 1)[0].id == "id 7/é"
    index.add("new", unit(0, 0, -1))
    assert index.remove("id 0/é")
    assert index.search(unit(0, 0, -1), 1)[0].id == "new"


def test_an_empty_index_is_saved_and_loaded_too(tmp_path: Path) -> None:
    for dimension in (None, 3):
        FaissIndex(dimension).save(str(tmp_path / "snapshot"), change=0)
        index, change = FaissIndex.load(str(tmp_path / "snapshot"))
        assert (len(index), change, list(index.search(unit(1, 0, 0), 2))) == (0, 0, [])


def test_any_flipped_bit_of_a_snapshot_is_found_out(saved: Path) -> None:
    content = saved.read_bytes()
    random = np.random.default_rng(0)
    places = [*range(120), *random.integers(len(content), size=80).tolist(), len(content) - 1]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(random.integers(8))
        saved.write_bytes(flipped)
        with pytest.raises(IndexCorrupt, match="rebuilt from the store"):
            FaissIndex.load(str(saved))


def test_a_snapshot_cut_short_or_with_more_behind_it_is_found_out(saved: Path) -> None:
    content = saved.read_bytes()
    for wrong in (b"", content[:10], content[:85], content[:200], content[:-1], content + b"\0"):
        saved.write_bytes(wrong)
        with pytest.raises(IndexCorrupt, match="cannot be trusted"):
            FaissIndex.load(str(saved))


def test_a_missing_snapshot_is_told_as_one_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(IndexCorrupt, match="cannot be read"):
        FaissIndex.load(str(tmp_path / "none"))


def test_an_index_that_faiss_wrote_itself_is_not_taken_for_ours(tmp_path: Path) -> None:
    import faiss

    faiss.write_index(faiss.IndexFlatIP(3), str(tmp_path / "snapshot"))
    with pytest.raises(IndexCorrupt, match="it begins with"):
        FaissIndex.load(str(tmp_path / "snapshot"))


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        FaissIndex().save(str(saved), change=43)
    assert [path.name for path in saved.parent.iterdir()] == ["snapshot"]
    assert saved.read_bytes() == before


def test_a_search_leaves_the_number_of_threads_as_it_was(saved: Path) -> None:
    import faiss

    index, _ = FaissIndex.load(str(saved))
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    try:
        index.search(unit(1, 2, 3), 1)
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(threads)
