import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semcache import Parameter
from semcache.ports import Embedder

SMALL = Path(__file__).parents[1] / "data" / "small.jsonl"


@pytest.fixture(scope="module")
def replay(script: Any) -> Any:
    return script("replay")


def row(replay: Any, text: str, year: str, *, null: bool = False) -> Any:
    plan = None if null else {"call": {"input": {"year": year}}}
    return replay.Row("1", "acme", text, (Parameter("year", year, mention=year),), plan)


class Fixed:
    """A cache that serves the same plan to every prompt."""

    def __init__(self, plan: dict[str, Any] | None) -> None:
        self.plan, self.stored = plan, 0

    def lookup(self, row: Any, *, given: bool) -> tuple[dict[str, Any] | None, str, float]:
        return self.plan, "fixed", 0.0

    def store(self, row: Any, *, given: bool) -> None:
        self.stored += 1


def score(replay: Any, cache: Fixed, rows: list[Any]) -> Any:
    return replay.replay(cache, rows, replay.Score("s", "c", given=False), bar=False)


def test_a_served_plan_that_differs_is_wrong_and_so_is_any_for_a_null_row(
    replay: Any,
) -> None:
    rows = [
        row(replay, "in 2024", "2024"),
        row(replay, "in 2023", "2023"),
        row(replay, "?", "", null=True),
    ]
    got = score(replay, Fixed({"call": {"input": {"year": 2024}}}), rows)
    assert (got.hits, got.wrong, got.ceiling) == (3, 3, 0)
    got = score(replay, Fixed({"call": {"input": {"year": "2024"}}}), rows)
    assert (got.hits, got.wrong) == (3, 2)


def test_the_ceiling_counts_rows_whose_plan_shape_was_stored_before(replay: Any) -> None:
    rows = [row(replay, "in 2024", "2024"), row(replay, "in 2023", "2023")]
    cache = Fixed(None)
    got = score(replay, cache, rows)
    assert (got.hits, got.ceiling, cache.stored) == (0, 1, 2)


@pytest.mark.parametrize(
    "line", ["{", '{"id": 1}', '{"id":1,"scope":"a","text":"b","params":[],"plan":3}']
)
def test_a_bad_stream_is_refused_with_file_and_line(replay: Any, tmp_path: Path, line: str) -> None:
    stream = tmp_path / "bad.jsonl"
    stream.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"bad\.jsonl:1"):
        replay.read(stream, None)


def test_a_small_stream_is_replayed_beside_the_relatives_with_no_wrong_hit_of_ours(
    replay: Any, tmp_path: Path, minilm: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MiniLMEmbedder", lambda _: minilm)
    out = tmp_path / "out.json"
    assert replay.main([str(SMALL), "--json", str(out)]) == 0
    streams = json.loads(out.read_text(encoding="utf-8"))["streams"]
    ours = [s for s in streams if s["cache"] == "semcache"]
    others = [s for s in streams if s["cache"].startswith("response")]
    assert [s["wrong"] for s in ours] == [0, 0]
    assert min(s["right_of_ceiling"] for s in ours) > 0.8
    assert all(s["wrong"] > 0 for s in others)


def test_a_simulated_selector_serves_what_words_alone_miss(replay: Any, minilm: Embedder) -> None:
    stored = row(replay, "total sales in 2024", "2024")
    asked = row(replay, "what did all sales of 2023 come to", "2023")
    scores = {}
    for accuracy in (None, 1.0, 0.0):
        cache = replay.Semcache(replay.Timed(minilm), accuracy=accuracy)
        cache.store(stored, given=False)
        scores[accuracy] = cache.lookup(asked, given=True)[:2]
    assert scores[1.0] == ({"call": {"input": {"year": "2023"}}}, "selected")
    assert scores[None][0] is scores[0.0][0] is None


def test_a_stubborn_selector_chooses_the_nearest_wrong_plan_each_time(
    replay: Any, minilm: Embedder
) -> None:
    cache = replay.Semcache(replay.Timed(minilm), accuracy=0.0, stubborn=True)
    stored = row(replay, "total sales in 2024", "2024")
    cache.store(stored, given=False)
    asked = row(replay, "what did all sales of 2023 come to", "2023")
    other = replace(asked, plan={"call": {"input": {"year": "2023", "of": "returns"}}})
    served, tier, _ = cache.lookup(other, given=True)
    assert (served, tier) == ({"call": {"input": {"year": "2023"}}}, "selected")
