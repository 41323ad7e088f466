import json
from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.errors import InvalidStream
from semcache.testing import HashEmbedder
from semcache.upkeep.warm import BadLine, warm

STREAM = {
    "id": "1", "scope": "acme", "text": "sales in 2024",
    "params": [{"name": "year", "value": "2024", "text": "2024"}], "plan": {"year": "2024"},
}  # fmt: skip
PLAIN = {
    "prompt": "daily visits to Springfield",
    "plan": {"town": "Springfield"},
    "params": {"town": "Springfield"},
}


def written(path: Path, *lines: object) -> Path:
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


@pytest.fixture
def cache() -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder())


def test_both_formats_are_stored_for_their_tenants(cache: PlanCache, tmp_path: Path) -> None:
    done = warm(cache, written(tmp_path / "w.jsonl", STREAM, PLAIN))
    assert (done.stored, done.bad) == (2, ())
    assert cache.lookup("sales in 2023", tenant="acme").params == {"year": "2023"}  # type: ignore[union-attr]  # a hit
    assert cache.lookup("daily visits to Shelbyville", params={"town": "Shelbyville"})


def test_one_tenant_may_have_them_all(cache: PlanCache, tmp_path: Path) -> None:
    warm(cache, written(tmp_path / "w.jsonl", STREAM, PLAIN), tenant="umbrella")
    assert cache.tenants() == ("umbrella",)


def test_bad_lines_are_told_by_their_numbers_and_lose_nothing_else(
    cache: PlanCache, tmp_path: Path
) -> None:
    bad: list[object] = [
        b"{",
        b"[]",
        b"\xff",
        {"prompt": "x"},
        {"plan": {}},
        {"prompt": "x", "plan": 7},
    ]
    bad += [{"prompt": " ", "plan": {"a": 1}}, {**PLAIN, "params": 5}]
    bad += [{"prompt": "x", "plan": {"a": "{{params.b}}"}}]
    lines = [line for one in bad for line in (one, b"")]
    done = warm(
        cache, written(tmp_path / "w.jsonl", PLAIN, *lines, {**PLAIN, "plan": None}, STREAM)
    )
    assert (done.stored, done.without_plan) == (2, 1)
    assert [line.number for line in done.bad] == [2 + 2 * n for n in range(len(bad))]
    assert done.bad[0] == BadLine(2, done.bad[0].why)
    assert "no field 'plan'" in done.bad[3].why
    assert all(line.why for line in done.bad)


def test_a_file_that_is_not_there_is_told(cache: PlanCache, tmp_path: Path) -> None:
    with pytest.raises(InvalidStream, match=r"none\.jsonl"):
        warm(cache, tmp_path / "none.jsonl")


def test_progress_is_told_of_each_line(cache: PlanCache, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = written(tmp_path / "w.jsonl", STREAM, b"no JSON", PLAIN)
    warm(cache, path, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]
