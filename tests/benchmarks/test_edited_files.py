"""Files that were edited: taken, and then all works, or refused by name with nothing lost."""

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

IN_MEMORY = ("plans", "evidence", "settings")
ON_DISK = ("record", "snapshot", "index", "correction", "manifest", "version1")


@pytest.fixture(scope="module")
def edited(script: Any) -> Any:
    return script("edited_files")


@pytest.fixture(scope="module")
def bench(edited: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    logging.disable(logging.WARNING)  # each file that is set aside is told
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semcache.cache.view.views.WORTHWHILE", 1)
        yield edited.Bench.made(tmp_path_factory.mktemp("edited"))
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("formats", "count"), [(IN_MEMORY, 1_200), (ON_DISK, 40)])
def test_an_edited_file_is_taken_and_all_works_or_refused_by_name_and_nothing_is_lost(
    edited: Any, bench: Any, formats: tuple[str, ...], count: int
) -> None:
    said = Counter(edited.run(seed, bench, formats)[1].taken for seed in range(count))
    assert said[True] > count // 20, "files that are taken show most"
    assert said[True] + said[False] == count


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(1_000_000, 2**40), named=st.sampled_from(IN_MEMORY))
def test_no_edit_that_hypothesis_finds_does_otherwise(
    edited: Any, bench: Any, seed: int, named: str
) -> None:
    edited.run(seed, bench, (named,))
