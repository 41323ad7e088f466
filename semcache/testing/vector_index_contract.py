"""The contract of vector indexes."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from pathlib import Path

import numpy as np

from semcache.errors import InvalidVector
from semcache.ports import (
    Vector,
    VectorIndex,
)
from semcache.testing.fakes import refused, together, unit


class VectorIndexContract:
    """What every `VectorIndex` promises."""

    def make(self, tmp_path: Path) -> VectorIndex:
        """Return a new index of any dimension; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how an index is made")

    def test_an_empty_index_finds_nothing(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        assert (len(index), list(index.search(unit(1, 0), 3))) == (0, [])

    def test_the_nearest_come_first_with_their_cosine(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for name, vector in {"x": unit(1, 0), "y": unit(0, 1), "xy": unit(1, 1)}.items():
            index.add(name, vector)
        found = index.search(unit(1, 0), 3)
        assert [n.id for n in found] == ["x", "xy", "y"]
        assert np.allclose([n.similarity for n in found], [1, 0.5**0.5, 0], atol=1e-6)

    def test_a_cosine_never_leaves_its_range(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        rows = np.random.default_rng(1).standard_normal((50, 384))
        for i, row in enumerate(rows):
            index.add(f"{i}", unit(*row))
        for row in rows:
            found = [*index.search(unit(*row), 1), *index.search(unit(*-row), 50)]
            assert all(-1.0 <= n.similarity <= 1.0 for n in found)

    def test_no_more_are_found_than_asked_for_or_kept(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for i in range(5):
            index.add(f"{i}", unit(1, i))
        assert [len(index.search(unit(1, 0), count)) for count in (0, 1, 4, 9)] == [0, 1, 4, 5]

    def test_ties_are_broken_by_id_wherever_the_rows_stand(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        vector = unit(*np.random.default_rng(2).standard_normal(384))
        names = [f"{i:02}" for i in range(60)]
        for name in reversed(names):
            index.add(name, vector)
        index.add("far", -vector)
        assert [n.id for n in index.search(vector, 3)] == names[:3]
        assert len({n.similarity for n in index.search(vector, 60)}) == 1

    def test_an_id_added_again_has_its_new_vector_alone(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        index.add("b", unit(0, 1))
        index.add("a", unit(-1, 0))
        assert len(index) == 2
        assert [n.id for n in index.search(unit(1, 0), 5)] == ["b", "a"]

    def test_a_removed_vector_is_never_found(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for i in range(6):
            index.add(f"{i}", unit(1, i))
        assert [index.remove(name) for name in ("0", "5", "2", "2", "x")] == [True] * 3 + [
            False
        ] * 2
        assert [n.id for n in index.search(unit(1, 0), 9)] == ["1", "3", "4"]
        index.add("2", unit(1, 0))
        assert [n.id for n in index.search(unit(1, 0), 9)] == ["2", "1", "3", "4"]

    def test_every_answer_is_that_of_comparing_with_all(self, tmp_path: Path) -> None:
        random = np.random.default_rng(3)
        index, kept = self.make(tmp_path), dict[str, Vector]()
        for _ in range(300):
            name = f"{random.integers(80):02}"
            if random.random() < 0.3:
                assert index.remove(name) == (kept.pop(name, None) is not None)
            else:
                kept[name] = unit(*random.standard_normal(8))
                index.add(name, kept[name])
        query = unit(*random.standard_normal(8))
        best = sorted(kept, key=lambda name: (-float(kept[name] @ query), name))
        assert len(index) == len(kept)
        assert [n.id for n in index.search(query, 7)] == best[:7]

    def test_vectors_that_cannot_be_compared_arerefused(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        wrong = [unit(1, 0, 0), unit(1, np.nan), np.array([1, 0]), np.zeros((1, 2), np.float32)]
        for vector in wrong:
            with refused(InvalidVector):
                index.add("b", vector)
            with refused(InvalidVector):
                index.search(vector, 1)
        assert len(index) == 1

    def test_a_vector_is_the_indexs_own(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        vector = unit(1, 0)
        index.add("a", vector)
        vector[:] = (0, 1)
        assert index.search(unit(1, 0), 1)[0].similarity == 1.0

    def test_searches_and_changes_from_many_threads_do_not_disturb_each_other(
        self, tmp_path: Path
    ) -> None:
        index = self.make(tmp_path)
        index.add("always", unit(1, 0, 0, 0))

        def work(thread: int) -> None:
            for i in range(60):
                index.add(f"{thread}-{i}", unit(0, 1, i, thread))
                assert index.search(unit(1, 0, 0, 0), 1)[0].id == "always"
                if i % 2:
                    assert index.remove(f"{thread}-{i}")

        together(4, work)
        assert len(index) == 1 + 4 * 30

    def test_saving_writes_one_file_and_leaves_nothing_beside_it(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        before = {path.name for path in tmp_path.iterdir()}
        for change in (1, 2):
            index.save(str(tmp_path / "snapshot"), change=change)
        assert {path.name for path in tmp_path.iterdir()} - before == {"snapshot"}
