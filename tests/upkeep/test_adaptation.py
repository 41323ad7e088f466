import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import semcache.models
from semcache import PlanCache
from semcache.errors import InvalidInput, MissingExtra, StoreUnavailable
from semcache.explore.streams import Row
from semcache.models.difference import LowRankDifference
from semcache.ports import Embedder
from semcache.testing import HashEmbedder
from semcache.upkeep.adaptation import (
    Adaptation,
    Performance,
    Replayed,
    adapt,
    replay,
    rows_of_entries,
    save,
)
from tests.calling import calling
from tests.jargon import jargon


def unchanged(rows: Sequence[Row], embedder: Embedder, *, since: int) -> Replayed:
    return Replayed(5, 1)


@pytest.fixture(scope="module")
def learned() -> Adaptation:
    """What a log of jargon teaches in a few seconds."""
    return adapt(jargon(160), replay=replay, steps=60)


def test_prompts_of_ones_own_teach_what_tells_plans_apart(learned: Adaptation) -> None:
    assert learned.ceiling == 40
    assert learned.after.first > learned.before.first + 5
    assert learned.refusal == ""


def test_a_difference_tells_how_it_was_trained_and_judged(learned: Adaptation) -> None:
    said = learned.difference.training
    assert (said["prompts"], said["held_back"], said["steps"]) == (120, 40, 60)
    assert said["after"] == {
        "first": learned.after.first,
        "right": learned.after.right,
        "wrong": learned.after.wrong,
    }


BEFORE = Performance(first=20, right=5, wrong=1)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (Performance(21, 5, 1), ""),
        (Performance(25, 9, 0), ""),
        (Performance(20, 9, 0), "first 20 times"),
        (Performance(25, 4, 0), "right hits fall from 5 to 4"),
        (Performance(25, 9, 2), "wrong hits rise from 1 to 2"),
    ],
)
def test_a_difference_is_taken_only_if_it_serves_better(after: Performance, why: str) -> None:
    found = Adaptation(LowRankDifference("w", b""), 30, BEFORE, after).refusal
    assert why in found
    assert bool(found) == bool(why)


def test_a_replay_that_serves_more_wrongly_speaks_against_what_is_nearer() -> None:
    served = iter([Replayed(5, 1), Replayed(9, 2)])
    found = adapt(jargon(160), replay=lambda *_, **__: next(served), steps=20)
    assert "wrong hits rise from 1 to 2" in found.refusal or "first" in found.refusal
    assert (found.before.wrong, found.after.wrong) == (1, 2)


def test_a_replay_counts_what_is_held_back_alone() -> None:
    plan = calling("o", year="2024")
    rows = [Row(str(n), "t", "total sales", (), plan) for n in range(5)]
    assert replay(rows, HashEmbedder(), since=0) == (4, 0)
    assert replay(rows, HashEmbedder(), since=3) == (2, 0)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (jargon(8), "6 plans with two prompts"),
        (jargon(60), "20 or more to judge by"),
        ([], "6 plans with two prompts"),
    ],
)
def test_too_few_prompts_teach_nothing(rows: list[Row], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        adapt(rows, replay=unchanged)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(semcache.models, "training", raising=False)
    monkeypatch.delitem(sys.modules, "semcache.models.training", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"'torch'.*semcache-plans\[sentence-transformers\]"):
        adapt(jargon(160), replay=unchanged)


def test_entries_are_prompts_to_train_on_the_oldest_first() -> None:
    cache = PlanCache.open(embedder=HashEmbedder())
    for prompt, town in (("visits to Springfield", "Springfield"), ("who saw Paris?", "Paris")):
        cache.store(prompt, calling("visits", town=town), params={"town": town})
    first, second = rows_of_entries(cache.entries())
    assert (first.text, second.text) == ("visits to Springfield", "who saw Paris?")
    assert first.shape == second.shape
    assert first.scope == "default"


def test_entries_whose_values_were_redacted_teach_nothing() -> None:
    def redact(text: str) -> str:
        return text.replace("Springfield", "somewhere")

    cache = PlanCache.open(embedder=HashEmbedder(), redact=redact)
    cache.store(
        "daily visits to Springfield", calling("visits", town="Springfield"),
        params={"town": "Springfield"},
    )  # fmt: skip
    assert len(cache.entries()) == 1
    assert rows_of_entries(cache.entries()) == []


def test_a_difference_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "embedder").write_text("a file", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        save(LowRankDifference("w", b""), tmp_path / "embedder")
